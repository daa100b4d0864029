import { Fault } from "../../schemas/faults.ts";
import { errorName } from "./kafka-wire.ts";
import type { Wire } from "./kafka-wire.ts";

/** Leaders of a topic's partitions, by partition number; null: there is none now. */
export type Leaders = readonly (number | null)[];

/** One answer of a broker: who the brokers are, and what it knows of the topics that were asked for. */
export interface ClusterView {
  readonly nodes: ReadonlyMap<number, { readonly host: string; readonly port: number }>;
  /** A fault: TOPIC_MISSING or BROKER_UNAVAILABLE. */
  readonly topics: ReadonlyMap<string, Leaders | Fault>;
}

interface MetadataAnswer {
  readonly brokers: readonly { readonly nodeId: number; readonly host: string; readonly port: number }[];
  readonly topicMetadata: readonly {
    readonly topic: string;
    readonly topicErrorCode: number;
    readonly partitionMetadata: readonly { readonly partitionId: number; readonly leader: number }[];
  }[];
}

/** Asks for named topics, each answered on its own: a missing one says nothing of the others. */
export async function askMetadata(wire: Wire, topics: readonly string[]): Promise<ClusterView> {
  const prepared = wire.prepare("Metadata", { topics: [...topics], allowAutoTopicCreation: false });
  const answer = (await wire.send({
    request: prepared.request,
    // kafkajs throws the first error of any topic.
    response: {
      decode: (raw) => prepared.response.decode(raw),
      parse: (decoded) => Promise.resolve(decoded),
    },
  })) as MetadataAnswer;
  return {
    nodes: new Map(answer.brokers.map(({ nodeId, host, port }) => [nodeId, { host, port }])),
    topics: new Map(answer.topicMetadata.map((one) => [one.topic, toLeaders(one)])),
  };
}

function toLeaders(one: MetadataAnswer["topicMetadata"][number]): Leaders | Fault {
  if (one.topicErrorCode !== 0) return toTopicFault(one.topic, errorName(one.topicErrorCode));
  const leaders: (number | null)[] = one.partitionMetadata.map(() => null);
  for (const { partitionId, leader } of one.partitionMetadata)
    leaders[partitionId] = leader < 0 ? null : leader;
  return leaders;
}

/** What Kafka's answer means for the records of a topic or partition. */
export function toTopicFault(topic: string, name: string): Fault {
  switch (name) {
    case "UNKNOWN_TOPIC_OR_PARTITION":
      return new Fault("TOPIC_MISSING", `\`${topic}\`: create it with \`fabric topics apply\``);
    // The topic's fault, not the record's: it heals when somebody grants the right, and nothing is lost till then.
    case "TOPIC_AUTHORIZATION_FAILED":
      return new Fault("TOPIC_MISSING", `\`${topic}\` is not open to us: grant WRITE and DESCRIBE`);
    case "MESSAGE_TOO_LARGE":
    case "RECORD_LIST_TOO_LARGE":
      return new Fault("RECORD_TOO_LARGE", `\`${topic}\` answered ${name}`);
    case "INVALID_RECORD":
    case "INVALID_TIMESTAMP":
    case "INVALID_TOPIC_EXCEPTION":
    case "UNSUPPORTED_FOR_MESSAGE_FORMAT":
    case "POLICY_VIOLATION":
      return new Fault("BROKER_REJECTED", `\`${topic}\` answered ${name}`);
    // Anything else, known or not, may pass: a record is never given up for a reason that is not its own.
    default:
      return new Fault("BROKER_UNAVAILABLE", `\`${topic}\` answered ${name}`);
  }
}
