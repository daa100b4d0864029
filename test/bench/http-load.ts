import { Agent, request } from "node:http";
import autocannon from "autocannon";
import { openLoop } from "./open-loop.ts";
import { percentile } from "./figure.ts";

/** In place of this each request gets an id of its own. */
export const idMarker = "ID-OF-THE-CALL";

let calls = 0;
/** Ids do not repeat within a process, however many runs there are. */
function withId(body: string): string {
  calls += 1;
  return body.replaceAll(idMarker, calls.toString(36).padStart(idMarker.length, "0"));
}

/** What a server is asked, by the number of the connection or agent. */
export interface HttpTarget {
  readonly url: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  body(agent: number): string;
}

export interface LoadResult {
  readonly perSecond: number;
  readonly requests: number;
  readonly p50: number;
  readonly p99: number;
  /** Answers that do not say what is wanted; none of the numbers above counts them. */
  readonly refused: number;
}

/**
 * As fast as `connections` can, each waiting for its answer. An answer without `wanted` in it is refused and counts for
 * nothing. Throws when one answer is not 2xx.
 */
export async function closedLoop(
  target: HttpTarget,
  connections: number,
  seconds: number,
  wanted: string,
): Promise<LoadResult> {
  let agent = 0;
  let refused = 0;
  const latencies: number[] = [];
  const instance = autocannon({
    url: target.url,
    connections,
    duration: seconds,
    setupClient: (client) => {
      const body = target.body(agent);
      agent += 1;
      client.setRequests([
        {
          method: "POST",
          path: target.path,
          headers: { ...target.headers },
          setupRequest: (parts) => ({ ...parts, body: withId(body) }),
          onResponse: (_status, answer) => {
            if (!answer.includes(wanted)) refused += 1;
          },
        },
      ]);
    },
  });
  instance.on("response", (_client: unknown, _status: number, _bytes: number, tookMs: number) => {
    latencies.push(tookMs);
  });
  const result = await instance;
  if (result.errors + result.timeouts + result.non2xx > 0 || result["2xx"] === 0) {
    throw new Error(
      `${target.url}${target.path}: ${String(result.errors)} errors, ${String(result.timeouts)} timeouts, ${String(result.non2xx)} answers that are not 2xx, ${String(result["2xx"])} good ones`,
    );
  }
  return {
    perSecond: (result["2xx"] - refused) / result.duration,
    requests: result["2xx"] - refused,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    refused,
  };
}

/**
 * On schedule, from the scheduled moment to the last byte of the answer: a slow answer counts for all behind it.
 * An answer without `wanted` in it is counted as refused.
 */
export async function openLoopHttp(
  target: HttpTarget,
  perSecond: number,
  seconds: number,
  agents: number,
  wanted: string,
): Promise<LoadResult> {
  const pool = new Agent({ keepAlive: true, maxSockets: 64 });
  const { hostname, port } = new URL(target.url);
  const bodies = Array.from({ length: agents }, (_, agent) => target.body(agent));
  const latencies: number[] = [];
  let refused = 0;
  const send = (index: number, scheduledMs: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const body = withId(bodies[index % agents] ?? "");
      const asked = request(
        {
          agent: pool,
          hostname,
          port,
          method: "POST",
          path: target.path,
          headers: { ...target.headers, "content-length": Buffer.byteLength(body) },
        },
        (response) => {
          let text = "";
          response.setEncoding("utf8");
          response.on("data", (chunk: string) => (text += chunk));
          response.on("end", () => {
            const status = response.statusCode ?? 0;
            if (status < 200 || status > 299) {
              reject(new Error(`${target.url}${target.path} answered ${String(status)}`));
              return;
            }
            if (text.includes(wanted)) latencies.push(performance.now() - scheduledMs);
            else refused += 1;
            resolve();
          });
          response.on("error", reject);
        },
      );
      asked.on("error", reject);
      asked.end(body);
    });
  const startedMs = performance.now();
  await openLoop(perSecond, seconds, send);
  pool.destroy();
  return {
    perSecond: (latencies.length / (performance.now() - startedMs)) * 1000,
    requests: latencies.length,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    refused,
  };
}
