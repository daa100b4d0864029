import { Fault } from "../../../../schemas/faults.ts";

const loopbackHosts: ReadonlySet<string> = new Set(["127.0.0.1", "localhost", "[::1]"]);

/** Whether a URL or a `Host` header names this machine by its loopback. */
export function isLoopback(host: string): boolean {
  return loopbackHosts.has(host.replace(/:\d+$/, "").toLowerCase());
}

/** A WebSocket address on this machine; nothing here is encrypted, so no other is taken. */
export function readLoopbackUrl(text: string, what: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol !== "ws:" || !isLoopback(url.host) || url.username !== "" || url.password !== "")
    throw new Fault("USAGE", `${what} has the form \`ws://127.0.0.1:7430\`, on this machine alone`);
  return url;
}
