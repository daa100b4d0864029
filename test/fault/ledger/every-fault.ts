import type { LinkFault } from "../../harness/fault-link.ts";

/** One of each kind, as hard as it has to be to be felt by every client. */
export const everyFault: readonly LinkFault[] = [
  { kind: "latency", ms: 400 },
  { kind: "bandwidth", bytesPerSecond: 6_000 },
  { kind: "reset", everyMs: 150 },
  { kind: "black-hole" },
  { kind: "half-open" },
  { kind: "cut" },
  { kind: "refuse" },
];
