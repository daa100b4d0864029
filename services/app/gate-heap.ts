/**
 * Flags of `node` for a process that serves the gate. Its old generation may grow this far (MiB) before V8 first marks all that lives. By
 * V8's own choice that is little more than what lives, so that at a thousand decisions a second all of it is marked
 * every two to four seconds, and calls wait for tens of milliseconds (`make bench NAME=gate`).
 */
export const gateHeapFlags: readonly string[] = ["--initial-old-space-size=128"];
