import type { AddressInfo, Server, Socket } from "node:net";
import { connect, createServer } from "node:net";

type Direction = "toServer" | "toClient";

/** What a link does to the connections that go over it, from `begin` to `end`. */
export type LinkFault =
  | { readonly kind: "latency"; readonly ms: number }
  | { readonly kind: "bandwidth"; readonly bytesPerSecond: number }
  /** Every connection is reset, again and again. */
  | { readonly kind: "reset"; readonly everyMs: number }
  /** No byte, no end; what was open or opened meanwhile stays dead, as when a router forgot it. */
  | { readonly kind: "black-hole" }
  /** Questions arrive, answers vanish; what was open or opened meanwhile stays so. */
  | { readonly kind: "half-open" }
  /** Each connection is reset in the middle of a frame, a few chunks after it met the fault. */
  | { readonly kind: "cut" }
  /** Nobody listens, and what was open is reset. */
  | { readonly kind: "refuse" };

/** What the fault did: the proof that it bit. */
export interface LinkHits {
  /** Connections that were slowed, swallowed, cut or reset. */
  readonly connections: number;
  readonly chunks: number;
  readonly bytes: number;
}

/** A TCP proxy on one link, for faults that begin and end while connections are open. */
export interface FaultLink {
  readonly host: string;
  readonly port: number;
  /** Bytes that came through unharmed since the start, in both directions. */
  readonly passedBytes: number;
  /** Connections that the server ended or refused since the start. */
  readonly serverEnds: number;
  begin(fault: LinkFault): Promise<void>;
  /** Ends the fault; says what it did. */
  end(): Promise<LinkHits>;
  hits(): LinkHits;
  close(): Promise<void>;
}

/** More than this waiting in one direction stops the reading, so that a slow link is felt at its other end. */
const longestQueueBytes = 64 * 1024;

/** One direction of one connection: a queue, so that bytes stay in order whatever the fault was and is. */
interface Lane {
  readonly from: Socket;
  readonly to: Socket;
  readonly direction: Direction;
  readonly queue: { readonly chunk: Buffer; readonly dueMs: number }[];
  queuedBytes: number;
  freeAtMs: number;
  timer: NodeJS.Timeout | null;
}

interface Connection {
  readonly ends: readonly [Socket, Socket];
  readonly lanes: Lane[];
  /** Directions whose bytes vanish for good. */
  readonly dead: Set<Direction>;
  chunksUntilCut: number;
  isHit: boolean;
}

/** Chunks that a connection still passes before it is cut: some die in the greeting, some in the work. */
const chunksBeforeCut = 7;

/** Starts the proxy in front of a server. */
export async function startFaultLink(target: { host: string; port: number }): Promise<FaultLink> {
  const connections = new Set<Connection>();
  const sockets = new Set<Socket>();
  let fault: LinkFault | null = null;
  let resets: NodeJS.Timeout | null = null;
  let accepted = 0;
  let passedBytes = 0;
  let serverEnds = 0;
  let hits = { connections: 0, chunks: 0, bytes: 0 };

  const meets = (connection: Connection, bytes: number): void => {
    if (!connection.isHit) hits.connections += 1;
    connection.isHit = true;
    hits.chunks += 1;
    hits.bytes += bytes;
  };
  const pass = (lane: Lane, chunk: Buffer): void => {
    passedBytes += chunk.length;
    lane.to.write(chunk);
  };
  /** Sends what is due; all of it once no fault holds it up. */
  const pump = (lane: Lane): void => {
    if (lane.timer !== null) clearTimeout(lane.timer);
    lane.timer = null;
    const isSlow = fault?.kind === "latency" || fault?.kind === "bandwidth";
    for (let [next] = lane.queue; next !== undefined; [next] = lane.queue) {
      const waitMs = next.dueMs - performance.now();
      if (isSlow && waitMs > 0) {
        lane.timer = setTimeout(() => pump(lane), waitMs);
        break;
      }
      lane.queue.shift();
      lane.queuedBytes -= next.chunk.length;
      pass(lane, next.chunk);
    }
    if (lane.queuedBytes < longestQueueBytes) lane.from.resume();
  };
  const hold = (lane: Lane, chunk: Buffer, dueMs: number): void => {
    lane.queue.push({ chunk, dueMs });
    lane.queuedBytes += chunk.length;
    if (lane.queuedBytes >= longestQueueBytes) lane.from.pause();
    pump(lane);
  };
  const reset = ({ ends }: Connection): void => {
    for (const socket of ends) socket.resetAndDestroy();
  };

  const take = (connection: Connection, lane: Lane, chunk: Buffer): void => {
    if (fault?.kind === "black-hole") connection.dead.add("toServer").add("toClient");
    if (fault?.kind === "half-open") connection.dead.add("toClient");
    if (connection.dead.has(lane.direction)) {
      if (fault !== null) meets(connection, chunk.length);
      return;
    }
    const nowMs = performance.now();
    if (fault?.kind === "latency") {
      meets(connection, chunk.length);
      hold(lane, chunk, nowMs + fault.ms);
    } else if (fault?.kind === "bandwidth") {
      meets(connection, chunk.length);
      lane.freeAtMs = Math.max(nowMs, lane.freeAtMs) + (chunk.length / fault.bytesPerSecond) * 1_000;
      hold(lane, chunk, lane.freeAtMs);
    } else if (fault?.kind === "cut" && connection.chunksUntilCut <= 0 && chunk.length > 1) {
      meets(connection, chunk.length);
      // What comes before the reset is done must not follow the torn frame: no TCP stream has a hole.
      connection.dead.add("toServer").add("toClient");
      lane.to.write(chunk.subarray(0, Math.floor(chunk.length / 2)), () => reset(connection));
    } else {
      connection.chunksUntilCut -= 1;
      if (lane.queue.length > 0) hold(lane, chunk, 0);
      else pass(lane, chunk);
    }
  };

  const accept = (client: Socket): void => {
    accepted += 1;
    const upstream = connect(target.port, target.host);
    const connection: Connection = {
      ends: [client, upstream],
      lanes: [],
      dead: new Set(),
      chunksUntilCut: accepted % chunksBeforeCut,
      isHit: false,
    };
    connections.add(connection);
    for (const [from, to, direction] of [
      [client, upstream, "toServer"],
      [upstream, client, "toClient"],
    ] as const) {
      const lane: Lane = { from, to, direction, queue: [], queuedBytes: 0, freeAtMs: 0, timer: null };
      connection.lanes.push(lane);
      sockets.add(from);
      from.setNoDelay(true);
      from.on("data", (chunk: Buffer) => take(connection, lane, chunk));
      from.on("error", () => undefined);
      from.on("close", () => {
        if (from === upstream && !client.destroyed) serverEnds += 1;
        connections.delete(connection);
        sockets.delete(from);
        if (lane.timer !== null) clearTimeout(lane.timer);
        // Over a dead link nobody is told that the other end has gone: a server keeps what that session holds.
        if (connection.dead.size === 0) to.destroy();
      });
    }
  };
  let server: Server = createServer(accept);
  const listen = (port: number): Promise<void> =>
    new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, "127.0.0.1", () => {
        server.off("error", reject);
        resolve();
      });
    });
  const stopListening = (): Promise<void> => new Promise((resolve) => server.close(() => resolve()));
  const resetAll = (): void => {
    for (const connection of connections) {
      meets(connection, 0);
      reset(connection);
    }
  };

  await listen(0);
  const { port } = server.address() as AddressInfo;
  return {
    host: "127.0.0.1",
    port,
    get passedBytes() {
      return passedBytes;
    },
    get serverEnds() {
      return serverEnds;
    },
    async begin(next) {
      hits = { connections: 0, chunks: 0, bytes: 0 };
      for (const connection of connections) {
        connection.isHit = false;
        connection.chunksUntilCut = 0;
        // Also those that say nothing now: what was open is forgotten.
        if (next.kind === "black-hole") connection.dead.add("toServer").add("toClient");
        if (next.kind === "half-open") connection.dead.add("toClient");
      }
      fault = next;
      if (next.kind === "reset") {
        resetAll();
        resets = setInterval(resetAll, next.everyMs);
      } else if (next.kind === "refuse") {
        const closed = stopListening();
        resetAll();
        await closed;
      }
    },
    async end() {
      const was = fault;
      fault = null;
      if (resets !== null) clearInterval(resets);
      resets = null;
      if (was?.kind === "refuse") {
        server = createServer(accept);
        await listen(port);
      }
      for (const { lanes } of connections) for (const lane of lanes) pump(lane);
      return hits;
    },
    hits: () => ({ ...hits }),
    async close() {
      if (resets !== null) clearInterval(resets);
      const closed = server.listening ? stopListening() : Promise.resolve();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
