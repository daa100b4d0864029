import { createHash } from "node:crypto";
import { createServer } from "node:net";

export type PortName = "kafka" | "kafkaController" | "registry" | "postgres";
export type Ports = Partial<Record<PortName, number>>;

/** Below the range that systems give to outgoing connections (32768 up), so that a port kept for a restart is rarely taken meanwhile. */
const FIRST_PORT = 20_000;
const PORT_COUNT = 12_000;

/** The same stack asks for the same ports again, other stacks for others. */
export const firstChoice = (stackDir: string, name: PortName): number => {
  const digest = createHash("sha256").update(`${stackDir}\n${name}`).digest();
  return FIRST_PORT + (digest.readUInt32BE(0) % PORT_COUNT);
};

export const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => {
      resolve(false);
    });
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => {
      server.close(() => {
        resolve(true);
      });
    });
  });

/** The port kept from the last start when it is still free, else the next free one; never one in `avoid`. */
export const pickPort = async (
  stackDir: string,
  name: PortName,
  kept: number | undefined,
  avoid: ReadonlySet<number>,
): Promise<number> => {
  if (kept !== undefined && !avoid.has(kept) && (await isFree(kept))) return kept;
  const first = firstChoice(stackDir, name) - FIRST_PORT;
  for (let step = 0; step < PORT_COUNT; step += 1) {
    const port = FIRST_PORT + ((first + step) % PORT_COUNT);
    if (!avoid.has(port) && (await isFree(port))) return port;
  }
  throw new Error(`no free port between ${String(FIRST_PORT)} and ${String(FIRST_PORT + PORT_COUNT)}`);
};

/** A port of 127.0.0.1 that the system gives and nobody holds at this moment. */
export const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => {
        if (address === null || typeof address === "string") reject(new Error("the system gave no port"));
        else resolve(address.port);
      });
    });
  });
