import { connect } from "node:net";
import { idMarker } from "./id-marker.ts";

/** An answer, as far as the load needs to know it. */
export interface HttpAnswer {
  readonly status: number;
  /** The body holds the text that a good answer has. */
  readonly isWanted: boolean;
}

/** One keep-alive connection that has one request at a time on its way. */
export interface HttpConnection {
  /** Sends a request that `toRequest` made; calls back with its answer, or with null when the connection broke. */
  send(request: Buffer, onAnswer: (answer: HttpAnswer | null) => void): void;
  /** A server closes what nothing comes over for a while. */
  readonly isOpen: boolean;
  close(): void;
}

/** Answers of the gate are a kilobyte and a half; more than this is a fault. */
const answerMaxBytes = 65_536;

/**
 * Just enough HTTP/1.1 for answers with a length, straight on a socket: load and server share the processors, so what a
 * client spends on a request is taken from the server.
 */
export function openConnection(url: string, wanted: string): Promise<HttpConnection> {
  const { hostname, port } = new URL(url);
  const answerBytes = Buffer.alloc(answerMaxBytes);
  let filled = 0;
  let waiting: ((answer: HttpAnswer | null) => void) | null = null;
  const settle = (answer: HttpAnswer | null): void => {
    const tell = waiting;
    waiting = null;
    filled = 0;
    tell?.(answer);
  };
  return new Promise((resolve, reject) => {
    const socket = connect({
      host: hostname,
      port: Number(port),
      noDelay: true,
      onread: {
        buffer: Buffer.alloc(answerMaxBytes),
        callback(size, chunk) {
          if (filled + size > answerMaxBytes) socket.destroy();
          filled += Buffer.from(chunk.buffer, chunk.byteOffset, size).copy(answerBytes, filled);
          const answer = toAnswer(answerBytes.subarray(0, filled), wanted);
          if (answer !== null) settle(answer);
          return true;
        },
      },
    });
    socket.on("connect", () =>
      resolve({
        send(request, onAnswer) {
          waiting = onAnswer;
          if (socket.destroyed) settle(null);
          else socket.write(request);
        },
        get isOpen() {
          return !socket.destroyed && !socket.readableEnded;
        },
        close: () => socket.destroy(),
      }),
    );
    socket.on("error", reject);
    socket.on("close", () => settle(null));
  });
}

/** The answer when it is there to its last byte. */
function toAnswer(bytes: Buffer, wanted: string): HttpAnswer | null {
  const bodyAt = bytes.indexOf("\r\n\r\n") + 4;
  if (bodyAt < 4) return null;
  const head = bytes.toString("latin1", 0, bodyAt);
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (length === undefined || bytes.length < bodyAt + Number(length)) return null;
  return { status: Number(head.slice(9, 12)), isWanted: bytes.indexOf(wanted, bodyAt, "latin1") >= 0 };
}

/** Makes the bytes of a request; in place of `idMarker` each one has the next id. */
export function createRequests(options: {
  readonly url: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly bodies: readonly string[];
  readonly idPrefix: string;
}): (agent: number) => Buffer {
  const templates = options.bodies.map((body) => {
    const fields = Object.entries(options.headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const head = `POST ${options.path} HTTP/1.1\r\nhost: ${new URL(options.url).host}\r\n${fields.join("")}content-length: ${String(Buffer.byteLength(body))}\r\n\r\n`;
    const bytes = Buffer.from(head + body, "utf8");
    return { bytes, idAt: bytes.indexOf(idMarker) };
  });
  const { idPrefix } = options;
  let calls = 0;
  return (agent) => {
    const { bytes, idAt } = templates[agent % templates.length] ?? { bytes: Buffer.alloc(0), idAt: -1 };
    const request = Buffer.from(bytes);
    calls += 1;
    if (idAt >= 0) {
      const number = calls.toString(36).padStart(idMarker.length - idPrefix.length, "0");
      request.write(idPrefix + number, idAt, "latin1");
    }
    return request;
  };
}
