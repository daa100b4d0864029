import { startProcess } from "./child-process.ts";

/** What a server is asked, by the number of the connection or agent. */
export interface HttpTarget {
  readonly url: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  body(agent: number): string;
}

/** What a load process is told. */
export interface LoadOrder {
  readonly url: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly bodies: readonly string[];
  /** Ids of its requests begin with this. */
  readonly idPrefix: string;
  readonly seconds: number;
  /** What a good answer holds; one without it is refused. */
  readonly wanted: string;
  readonly pace:
    | { readonly kind: "closed"; readonly connections: number }
    | { readonly kind: "open"; readonly perSecond: number };
}

export interface LoadResult {
  readonly perSecond: number;
  readonly requests: number;
  readonly p50: number;
  readonly p99: number;
  /** Answers that do not say what is wanted; none of the numbers above counts them. */
  readonly refused: number;
}

let runs = 0;

async function load(
  target: HttpTarget,
  agents: number,
  order: Pick<LoadOrder, "seconds" | "wanted" | "pace">,
): Promise<LoadResult> {
  // Ids do not repeat, however many runs there are.
  runs += 1;
  const process = await startProcess("load-process", {
    ...order,
    url: target.url,
    path: target.path,
    headers: target.headers,
    bodies: Array.from({ length: agents }, (_, agent) => target.body(agent)),
    idPrefix: `${runs.toString(36)}-`,
  } satisfies LoadOrder);
  try {
    return (await process.ask("load")) as LoadResult;
  } finally {
    await process.stop();
  }
}

/**
 * As fast as `connections` can, each waiting for its answer. An answer without `wanted` in it is refused and counts for
 * nothing. Throws when one answer is not 2xx.
 */
export function closedLoop(
  target: HttpTarget,
  connections: number,
  seconds: number,
  wanted: string,
): Promise<LoadResult> {
  return load(target, connections, { seconds, wanted, pace: { kind: "closed", connections } });
}

/**
 * On schedule, from the scheduled moment to the last byte of the answer: a slow answer counts for all behind it.
 * An answer without `wanted` in it is counted as refused.
 */
export function openLoopHttp(
  target: HttpTarget,
  perSecond: number,
  seconds: number,
  agents: number,
  wanted: string,
): Promise<LoadResult> {
  return load(target, agents, { seconds, wanted, pace: { kind: "open", perSecond } });
}
