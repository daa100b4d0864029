import http from "node:http";
import https from "node:https";

/** What came back; `json` is undefined when the body is none. */
export interface JsonReply {
  readonly status: number;
  readonly json: unknown;
}
/** Asks a server with JSON. Rejects when there is no whole answer in time. */
export type JsonSender = (
  method: "GET" | "POST",
  path: string,
  body: string | null,
  timeoutMs: number,
) => Promise<JsonReply>;

/** No answer of the gate is as long as this. */
const answerMaxBytes = 8 * 1024 * 1024;

/** The gate names what it sends: a page that happens to read like an answer is none. */
const jsonType = /^application\/(?:problem\+)?json\b/i;

/** Connections to one server, kept open: a decision waits for no handshake. */
export function createJsonSender(url: string, token: () => string): JsonSender & { close(): void } {
  const base = new URL(url);
  if (base.protocol !== "http:" && base.protocol !== "https:")
    throw new RangeError(`${url} is no address of a gate`);
  const { request, Agent } = base.protocol === "https:" ? https : http;
  const agent = new Agent({ keepAlive: true });
  const prefix = base.pathname.replace(/\/$/, "");
  const send: JsonSender = (method, path, body, timeoutMs) =>
    new Promise((resolve, reject) => {
      const sent = request(
        new URL(`${prefix}${path}`, base),
        {
          method,
          agent,
          headers: {
            authorization: `Bearer ${token()}`,
            ...(body === null
              ? {}
              : { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
          },
        },
        (response) => {
          const chunks: Buffer[] = [];
          let bytes = 0;
          response.on("data", (chunk: Buffer) => {
            bytes += chunk.length;
            if (bytes > answerMaxBytes) sent.destroy(new Error("the answer is too long"));
            else chunks.push(chunk);
          });
          response.on("error", reject);
          response.on("end", () => {
            clearTimeout(timer);
            const isJson = jsonType.test(response.headers["content-type"] ?? "");
            resolve({
              status: response.statusCode ?? 0,
              json: isJson ? parse(Buffer.concat(chunks).toString("utf8")) : undefined,
            });
          });
        },
      );
      const timer = setTimeout(() => {
        sent.destroy(new Error(`no answer within ${String(timeoutMs)} ms`));
      }, timeoutMs);
      sent.on("error", (error) => {
        clearTimeout(timer);
        reject(error);
      });
      // Cut off in the middle of an answer: neither `end` nor `error` of the request tells.
      sent.on("close", () => {
        clearTimeout(timer);
        reject(new Error("the connection was closed"));
      });
      sent.end(body ?? undefined);
    });
  return Object.assign(send, {
    close() {
      agent.destroy();
    },
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
