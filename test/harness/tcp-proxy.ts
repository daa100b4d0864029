import type { AddressInfo, Socket } from "node:net";
import { connect, createServer } from "node:net";

/** What a proxy does to the bytes that pass. All of it can be changed while connections are open. */
export interface Disturbance {
  /** Each chunk waits so long, in each direction. */
  latencyMs: number;
  /** Bytes of this direction vanish; the connection stays open. `both` is a black hole: no byte, no reset. */
  swallow: "none" | "toServer" | "toClient" | "both";
}

export interface TcpProxy extends Disturbance {
  readonly host: string;
  readonly port: number;
  /** Connections accepted so far. */
  readonly accepted: number;
  /** Ends every connection with a reset. */
  reset(): void;
  /** Refuses new connections and resets the open ones; `open` makes it listen again on the same port. */
  shut(): Promise<void>;
  open(): Promise<void>;
  /** Sees each chunk before it is passed on; returning false swallows it. */
  onChunk: ((direction: "toServer" | "toClient", chunk: Buffer) => boolean) | null;
  close(): Promise<void>;
}

/** A TCP proxy in front of a server, for faults on one link. */
export const startTcpProxy = async (target: { host: string; port: number }): Promise<TcpProxy> => {
  const sockets = new Set<Socket>();
  let accepted = 0;

  const server = createServer((client) => {
    accepted += 1;
    const upstream = connect(target.port, target.host);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        (socket === client ? upstream : client).destroy();
      });
    }
    const pass = (from: Socket, to: Socket, direction: "toServer" | "toClient"): void => {
      from.on("data", (chunk: Buffer) => {
        if (proxy.onChunk?.(direction, chunk) === false) return;
        if (proxy.swallow === "both" || proxy.swallow === direction) return;
        if (proxy.latencyMs === 0) to.write(chunk);
        else setTimeout(() => to.write(chunk), proxy.latencyMs);
      });
    };
    pass(client, upstream, "toServer");
    pass(upstream, client, "toClient");
  });

  const listen = (port: number): Promise<void> =>
    new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, "127.0.0.1", () => {
        server.off("error", reject);
        resolve();
      });
    });
  const reset = (): void => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  const shut = async (): Promise<void> => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    reset();
    await closed;
  };

  await listen(0);
  const { port } = server.address() as AddressInfo;
  const proxy: TcpProxy = {
    host: "127.0.0.1",
    port,
    latencyMs: 0,
    swallow: "none",
    onChunk: null,
    get accepted() {
      return accepted;
    },
    reset,
    shut,
    open: () => listen(port),
    close: async () => {
      if (server.listening) await shut();
    },
  };
  return proxy;
};
