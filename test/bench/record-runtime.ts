import { runtimeRooms } from "../../services/app/runtime-rooms.ts";
import { renderChanges } from "../runtimes/payload-changes.ts";
import { recordRuntime } from "../runtimes/record-runtime.ts";

// Records what a client's hooks send and shows what changed against the corpus:
//   node dist/test/bench/record-runtime.js codex [0.171.0]
// Ends with 0 when the adapter understands all of it and nothing changed, with 1 when a person has to look.
const [name = "", version = ""] = process.argv.slice(2);
const room = runtimeRooms.get(name);
if (room === undefined) {
  process.stderr.write(
    `name one of ${[...runtimeRooms.keys()].join(", ")}: make record-runtime NAME=codex\n`,
  );
  process.exitCode = 2;
} else {
  const found = await recordRuntime(room, version === "" ? null : version);
  const lines = [
    `${name} ${found.version}: ${String(found.payloads)} payloads in ${found.folder}`,
    "",
    ...renderChanges(found.changes),
    ...found.unrecognized.map(
      (event) => `the adapter does not understand ${event}: such calls would be refused`,
    ),
    ...(found.unknownFields.length === 0 ? [] : ["the adapter has never seen:"]),
    ...found.unknownFields.map((field) => `  ${field}`),
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
  const { newEvents, changes } = found.changes;
  if (found.payloads === 0 || newEvents.length + changes.length + found.unrecognized.length > 0)
    process.exitCode = 1;
}
