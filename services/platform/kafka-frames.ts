import { createRequire } from "node:module";

const mended = Symbol("frames are mended");

interface Connection {
  [mended]?: true;
  readonly socket?: { removeAllListeners(event: "data"): void; destroy(error: Error): void };
  chunks: Buffer[];
  bytesBuffered: number;
  bytesNeeded: number;
  isConnected(): boolean;
  connect(): Promise<true>;
  processData(data: Buffer): void;
}

const sizeBytes = 4;
/** An answer names its request in its first bytes. */
const frameMinBytes = 4;
/** Far above what any fetch asks for; a stream that is out of step reads like this. */
const frameMaxBytes = 512 * 1024 * 1024;

/**
 * Mends how every kafkajs connection of this process reads answers. As it comes (2.2.4), a connection that is made again
 * keeps the half of an answer that it had read before it was cut, and takes what comes then for the other half: it throws
 * in the socket's event, which ends the process, or waits for ever. Bytes that are no answer do the same. Here each
 * connection begins anew, and one that is out of step is closed as any that fails. Calling it twice does no harm.
 */
export function mendFrames(): void {
  const { prototype } = createRequire(import.meta.url)("kafkajs/src/network/connection.js") as {
    prototype: Connection;
  };
  if (prototype[mended] === true) return;
  prototype[mended] = true;
  const { connect, processData } = prototype;
  prototype.connect = function (this: Connection) {
    if (!this.isConnected()) {
      this.socket?.removeAllListeners("data");
      beginAnew(this);
    }
    return connect.call(this);
  };
  prototype.processData = function (this: Connection, data: Buffer) {
    try {
      processData.call(this, data);
      if (this.bytesBuffered < sizeBytes) return;
      // What is left is the beginning of one answer: its size is known by now.
      const size = this.bytesNeeded - sizeBytes;
      if (size < frameMinBytes || size > frameMaxBytes)
        throw new RangeError(`an answer of ${String(size)} bytes`);
    } catch (error) {
      beginAnew(this);
      this.socket?.destroy(new Error("the broker's answer cannot be read", { cause: error }));
    }
  };
}

function beginAnew(connection: Connection): void {
  connection.chunks = [];
  connection.bytesBuffered = 0;
  connection.bytesNeeded = sizeBytes;
}
