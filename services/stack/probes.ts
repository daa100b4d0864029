import { connect } from "node:net";
import type { Socket } from "node:net";

/** What a probe may wait for one answer. */
const PROBE_TIMEOUT_MS = 2_000;

/** Connects, sends, and hands over what came until `enough` says so; undefined when nobody answers in time. */
const ask = (
  host: string,
  port: number,
  question: Buffer,
  enough: (answer: Buffer) => boolean,
): Promise<Buffer | undefined> =>
  new Promise((resolve) => {
    let answer: Buffer = Buffer.alloc(0);
    const socket: Socket = connect({ host, port });
    const end = (value: Buffer | undefined): void => {
      socket.destroy();
      resolve(value);
    };
    socket.setTimeout(PROBE_TIMEOUT_MS, () => {
      end(undefined);
    });
    socket.once("error", () => {
      end(undefined);
    });
    socket.once("close", () => {
      end(undefined);
    });
    socket.once("connect", () => {
      if (enough(answer)) end(answer);
      else socket.write(question);
    });
    socket.on("data", (chunk) => {
      answer = Buffer.concat([answer, chunk]);
      if (enough(answer)) end(answer);
    });
  });

/** True when somebody accepts connections there. */
export const probeTcp = async (host: string, port: number): Promise<boolean> =>
  (await ask(host, port, Buffer.alloc(0), () => true)) !== undefined;

/** Kafka's Metadata request, version 2, for no topic: the oldest one that answers with the cluster id. */
export const metadataRequest = (): Buffer => {
  const body = Buffer.concat([
    Buffer.from([0, 3, 0, 2]), // api key 3, version 2
    Buffer.from([0, 0, 0, 7]), // correlation id
    Buffer.from([0, 5]),
    Buffer.from("probe"),
    Buffer.from([0, 0, 0, 0]), // empty array of topics
  ]);
  const size = Buffer.alloc(4);
  size.writeInt32BE(body.length);
  return Buffer.concat([size, body]);
};

export interface KafkaMetadata {
  readonly brokerPorts: readonly number[];
  readonly clusterId: string | null;
}

/** The live brokers and the cluster id of a Metadata v2 answer. */
export const parseMetadata = (answer: Buffer): KafkaMetadata => {
  let at = 8; // size, correlation id
  const text = (): string | null => {
    const length = answer.readInt16BE(at);
    at += 2;
    if (length < 0) return null;
    at += length;
    return answer.toString("utf8", at - length, at);
  };
  const count = answer.readInt32BE(at);
  at += 4;
  const brokerPorts: number[] = [];
  for (let index = 0; index < count; index += 1) {
    at += 4; // node id
    text(); // host
    brokerPorts.push(answer.readInt32BE(at));
    at += 4;
    text(); // rack
  }
  return { brokerPorts, clusterId: text() };
};

const hasFrame = (answer: Buffer): boolean =>
  answer.length >= 4 && answer.length >= 4 + answer.readInt32BE(0);

/** A broker that is registered, unfenced and, when a cluster id is given, of that cluster. */
export const probeKafka = async (host: string, port: number, clusterId?: string): Promise<boolean> => {
  const answer = await ask(host, port, metadataRequest(), hasFrame);
  if (!answer) return false;
  try {
    const metadata = parseMetadata(answer);
    return metadata.brokerPorts.length > 0 && (clusterId === undefined || metadata.clusterId === clusterId);
  } catch {
    return false;
  }
};

/** PostgreSQL's startup packet, protocol 3.0. */
export const startupPacket = (user: string, database: string): Buffer => {
  const words = Buffer.from(`user\0${user}\0database\0${database}\0\0`);
  const packet = Buffer.alloc(8 + words.length);
  packet.writeInt32BE(packet.length, 0);
  packet.writeInt32BE(0x0003_0000, 4);
  words.copy(packet, 8);
  return packet;
};

/** A server that is past recovery asks for a password ("R"); before that it answers with an error ("E"). */
export const probePostgres = async (host: string, port: number): Promise<boolean> => {
  const answer = await ask(host, port, startupPacket("fabric", "postgres"), (bytes) => bytes.length > 0);
  return answer?.toString("latin1", 0, 1) === "R";
};

/** A registry that reads its storage. */
export const probeRegistry = async (registryUrl: string): Promise<boolean> => {
  try {
    const answer = await fetch(`${registryUrl}/subjects`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    await answer.arrayBuffer();
    return answer.status === 200;
  } catch {
    return false;
  }
};
