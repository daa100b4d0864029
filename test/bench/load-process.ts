import { runAsChild } from "./child-process.ts";
import { percentile } from "./figure.ts";
import type { HttpAnswer, HttpConnection } from "./http-connection.ts";
import { createRequests, openConnection } from "./http-connection.ts";
import type { LoadOrder, LoadResult } from "./http-load.ts";
import { openLoop } from "./open-loop.ts";

/** On schedule, more than this many calls at once wait for a connection, and the wait counts. */
const maxConnections = 64;

/** What came back, checked: a run with a broken connection or an answer that is not 2xx is no measurement. */
function createTally(url: string): {
  note(answer: HttpAnswer | null, tookMs: number): void;
  result(spentMs: number): LoadResult;
} {
  const latencies: number[] = [];
  let refused = 0;
  return {
    note(answer, tookMs) {
      if (answer === null) throw new Error(`${url} broke a connection off`);
      if (answer.status < 200 || answer.status > 299)
        throw new Error(`${url} answered ${String(answer.status)}`);
      if (answer.isWanted) latencies.push(tookMs);
      else refused += 1;
    },
    result: (spentMs) => ({
      perSecond: (latencies.length / spentMs) * 1000,
      requests: latencies.length,
      p50: percentile(latencies, 0.5),
      p99: percentile(latencies, 0.99),
      refused,
    }),
  };
}

async function loadClosed(order: LoadOrder, connections: number): Promise<LoadResult> {
  const { url, wanted, seconds } = order;
  const next = createRequests(order);
  const tally = createTally(url);
  const open = await Promise.all(Array.from({ length: connections }, () => openConnection(url, wanted)));
  const startedMs = performance.now();
  const untilMs = startedMs + seconds * 1000;
  await Promise.all(
    open.map(
      (connection, agent) =>
        new Promise<void>((resolve) => {
          let sentMs = startedMs;
          const send = (): void => {
            sentMs = performance.now();
            connection.send(next(agent), onAnswer);
          };
          const onAnswer = (answer: HttpAnswer | null): void => {
            const nowMs = performance.now();
            tally.note(answer, nowMs - sentMs);
            if (nowMs < untilMs) send();
            else resolve();
          };
          send();
        }),
    ),
  );
  const spentMs = performance.now() - startedMs;
  for (const connection of open) connection.close();
  return tally.result(spentMs);
}

async function loadOpen(order: LoadOrder, perSecond: number): Promise<LoadResult> {
  const { url, wanted, seconds } = order;
  const next = createRequests(order);
  const tally = createTally(url);
  const free = await Promise.all(Array.from({ length: maxConnections }, () => openConnection(url, wanted)));
  const waiting: ((connection: HttpConnection) => void)[] = [];
  const startedMs = performance.now();
  await openLoop(
    perSecond,
    seconds,
    (index, scheduledMs) =>
      new Promise<void>((resolve, reject) => {
        const send = (connection: HttpConnection): void =>
          connection.send(next(index), (answer) => {
            tally.note(answer, performance.now() - scheduledMs);
            const first = waiting.shift();
            if (first === undefined) free.push(connection);
            else first(connection);
            resolve();
          });
        const connection = free.pop();
        if (connection === undefined) waiting.push(send);
        else if (connection.isOpen) send(connection);
        else openConnection(url, wanted).then(send).catch(reject);
      }),
  );
  const spentMs = performance.now() - startedMs;
  for (const connection of free) connection.close();
  return tally.result(spentMs);
}

/** Puts load on a server, alone in a process: nothing else of the run takes its time, and its pauses are its own. */
runAsChild<LoadOrder>((order) =>
  Promise.resolve({
    answer: () =>
      order.pace.kind === "closed"
        ? loadClosed(order, order.pace.connections)
        : loadOpen(order, order.pace.perSecond),
    stop: () => Promise.resolve(),
  }),
);
