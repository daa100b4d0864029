import { homedir } from "node:os";
import { fileURLToPath } from "node:url";

/**
 * `fabric hook <runtime> [observe]`: the Node form of a command hook, with the settings that `fabric install` wrote. What
 * is on standard input goes to the gate; without an answer of the gate it ends with code 2 and a text.
 */
const [runtime = "", mode = "gate"] = process.argv.slice(3);
if (!/^[a-z][a-z0-9-]*$/.test(runtime)) {
  process.stderr.write("fabric hook: name a runtime, such as `fabric hook codex`; nothing was allowed\n");
  process.exitCode = 2;
} else {
  const shim = new URL("../install/shim/hook.mjs", import.meta.url);
  process.argv.splice(1, Infinity, fileURLToPath(shim), mode, "", `${homedir()}/.fabric/hooks/${runtime}`);
  await import(shim.href);
}
