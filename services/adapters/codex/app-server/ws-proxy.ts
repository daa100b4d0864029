import { timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import { WebSocketServer } from "ws";
import { createGateLink } from "./gate-link.ts";
import { isLoopback } from "./loopback.ts";
import type { ProxyRules } from "./proxy.ts";
import { joinClient } from "./proxy.ts";
import type { ServerWire } from "./server-wire.ts";
import { createThreadBook } from "./thread-book.ts";
import { toFrameText } from "./ws-frame.ts";

export interface WebSocketProxyOptions extends ProxyRules {
  /** See `readLoopbackUrl`; port 0 takes a free one. */
  readonly listen: URL;
  /** What a client has to show, as `authorization: Bearer …`. */
  readonly clientToken: string;
  /** Opens the server for one client. */
  readonly openServer: () => ServerWire;
  readonly frameMaxBytes: number;
}
export interface RunningWebSocketProxy {
  readonly url: string;
  /** Ends every connection; resolves when everything was recorded. */
  close(): Promise<void>;
}

/** So long a client may take to ask for its connection. */
const upgradeTimeoutMs = 5_000;

/**
 * Listens for a client on this machine, with the gate between it and the App Server. Who has no token is told no, and so is
 * every browser: any page could open a socket to this machine, and says so by its origin. One client at a time; what is known
 * of threads outlives its connection, so that a question that comes again is asked in full.
 */
export async function startWebSocketProxy(options: WebSocketProxyOptions): Promise<RunningWebSocketProxy> {
  const gate = createGateLink(options);
  const book = createThreadBook();
  const http = createServer(
    { headersTimeout: upgradeTimeoutMs, requestTimeout: upgradeTimeoutMs },
    (_, response) => {
      response.writeHead(426, { connection: "close" }).end();
    },
  );
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: options.frameMaxBytes,
    perMessageDeflate: false,
  });
  const running = new Set<Promise<void>>();
  const closers = new Set<() => void>();

  http.on("upgrade", (request, stream, head) => {
    const no = whyNoClient(request, options.clientToken) ?? (closers.size > 0 ? "409 Conflict" : null);
    if (no !== null) {
      refuse(stream, no);
      return;
    }
    sockets.handleUpgrade(request, stream, head, (socket) => {
      const served = serve(socket).finally(() => running.delete(served));
      running.add(served);
    });
  });
  const { hostname, port } = options.listen;
  await new Promise<void>((resolve, reject) => {
    http.once("error", reject);
    http.listen(Number(port), hostname.replace(/^\[|\]$/g, ""), resolve);
  });
  const taken = (http.address() as AddressInfo).port;
  return { url: `ws://${hostname}:${String(taken)}`, close };

  async function serve(socket: WebSocket): Promise<void> {
    const server = options.openServer();
    const mediator = joinClient(
      server,
      (line) => {
        if (socket.readyState === socket.OPEN) socket.send(line);
      },
      gate,
      options,
      book,
    );
    const end = (): void => {
      mediator.close();
      server.finish();
    };
    closers.add(end);
    socket.on("message", (data, isBinary) => {
      const line = toFrameText(data, isBinary);
      if (line === null) socket.close(1003, "text frames only");
      else mediator.fromClient(line);
    });
    // A frame past the limit, or half of one: the library closes the connection.
    socket.on("error", () => undefined);
    socket.on("close", end);
    const code = await server.ended.catch(() => 1);
    mediator.close();
    closers.delete(end);
    socket.close(code === 0 ? 1000 : 1011, "the App Server has ended");
    await mediator.settled();
  }

  async function close(): Promise<void> {
    http.close();
    for (const end of closers) end();
    await Promise.all(running);
    for (const socket of sockets.clients) socket.terminate();
    http.closeAllConnections();
    await gate.lastWords();
  }
}

/** Why a client gets no connection, as the status line of the refusal. */
function whyNoClient(request: IncomingMessage, clientToken: string): string | null {
  const { origin, host, authorization } = request.headers;
  // Only browsers say where a page came from; another name than the loopback's is a page that had its name changed.
  if (origin !== undefined || host === undefined || !isLoopback(host)) return "403 Forbidden";
  const [scheme, shown = ""] = (authorization ?? "").split(" ");
  const [is, wanted] = [Buffer.from(shown), Buffer.from(clientToken)];
  const isKnown =
    scheme?.toLowerCase() === "bearer" && is.length === wanted.length && timingSafeEqual(is, wanted);
  return isKnown ? null : "401 Unauthorized";
}

function refuse(stream: Duplex, status: string): void {
  stream.on("error", () => undefined);
  stream.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
}
