import { WebSocket } from "ws";
import type { ServerWire } from "./server-wire.ts";
import { toFrameText } from "./ws-frame.ts";

export interface ServerAddress {
  /** See `readLoopbackUrl`. */
  readonly url: URL;
  /** What the server wants to be shown, if anything. */
  readonly token?: () => string;
  readonly frameMaxBytes: number;
}

const connectTimeoutMs = 5_000;
const goneCode = 1;

/** Speaks to an App Server that listens on a WebSocket of this machine: one message a text frame. */
export function connectServer({ url, token, frameMaxBytes }: ServerAddress): ServerWire {
  const socket = new WebSocket(url, {
    maxPayload: frameMaxBytes,
    perMessageDeflate: false,
    followRedirects: false,
    handshakeTimeout: connectTimeoutMs,
    ...(token === undefined ? {} : { headers: { authorization: `Bearer ${token()}` } }),
  });
  // What a client says before the server is there.
  const early: string[] = [];
  socket.on("open", () => {
    for (const line of early.splice(0)) socket.send(line);
  });
  const ended = new Promise<number>((resolve) => {
    let isFailed = false;
    socket.on("error", () => {
      isFailed = true;
    });
    // Normal closure, and the server going away, are its ends.
    socket.on("close", (code) => resolve(!isFailed && (code === 1000 || code === 1001) ? 0 : goneCode));
  });
  return {
    send(line) {
      if (socket.readyState === WebSocket.OPEN) socket.send(line);
      else if (socket.readyState === WebSocket.CONNECTING) early.push(line);
    },
    onLine(take) {
      socket.on("message", (data, isBinary) => {
        const line = toFrameText(data, isBinary);
        if (line === null) socket.close(1003, "text frames only");
        else take(line);
      });
    },
    ended,
    finish: () => socket.close(1000),
    stop: () => socket.terminate(),
  };
}
