import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { InstallPlan } from "../../services/install/plan-install.ts";
import type { HookForm } from "../../services/platform/runtime-room.ts";

/** One way in which the part inside the client breaks while it is at work. */
export type Breakage = (plan: InstallPlan) => void;

const shims = ["hook.sh", "hook.mjs"];
const inFabricDir = (plan: InstallPlan, name: string): string => join(plan.target.fabricDir, name);

const shimBreakages: Readonly<Record<string, Breakage>> = {
  "the shim is killed": (plan) => {
    writeFileSync(inFabricDir(plan, "hook.sh"), "kill -9 $$\n");
    writeFileSync(inFabricDir(plan, "hook.mjs"), "process.kill(process.pid, 'SIGKILL');\n");
  },
  "the shim is gone": (plan) => {
    for (const name of shims) rmSync(inFabricDir(plan, name), { force: true });
  },
  "the shim hangs": (plan) => {
    writeFileSync(inFabricDir(plan, "hook.sh"), "sleep 60\n");
    writeFileSync(inFabricDir(plan, "hook.mjs"), "setTimeout(() => undefined, 60_000);\n");
  },
  "its settings are gone": (plan) => {
    for (const name of ["url", "token"]) rmSync(inFabricDir(plan, name), { force: true });
  },
};

/** The plugin's way to the gate, laid out anew around what was installed. */
function rewireGate(plan: InstallPlan, body: { readonly mjs: string; readonly py: string }): void {
  const paths = plan.changes.map(({ path }) => path);
  const [mjs] = paths.filter((path) => path.endsWith("/gate-client.mjs"));
  const [py] = paths.filter((path) => path.endsWith("/gate_client.py"));
  if (mjs !== undefined) {
    renameSync(mjs, mjs.replace(/\.mjs$/, "-whole.mjs"));
    writeFileSync(
      mjs,
      `import { openGate as open } from "./gate-client-whole.mjs";\nexport const openGate = (options) => ({ ...open(options), ask() { ${body.mjs} } });\n`,
    );
  } else if (py !== undefined) {
    writeFileSync(
      py,
      `${readFileSync(py, "utf8")}\n\ndef _broken(self, payload):\n    ${body.py}\n\n\nGate.ask = _broken\n`,
    );
  } else throw new Error("the installation has no gate client to break");
}
const settingsOf = (plan: InstallPlan): string => {
  const found = plan.changes.map(({ path }) => path).find((path) => path.endsWith("/fabric.json"));
  if (found === undefined) throw new Error("the installation has no settings to break");
  return found;
};

const pluginBreakages: Readonly<Record<string, Breakage>> = {
  "asking throws": (plan) =>
    rewireGate(plan, { mjs: 'throw new Error("crashed");', py: 'raise RuntimeError("crashed")' }),
  "asking answers nonsense": (plan) => rewireGate(plan, { mjs: "return undefined;", py: "return None" }),
  "its settings are gone": (plan) => rmSync(settingsOf(plan)),
  "its settings are half a document": (plan) => writeFileSync(settingsOf(plan), '{"gate_url": "http://12'),
  "its token is gone": (plan) => rmSync(plan.target.tokenFile),
};

/** Ways to break what runs in the client, by its form; an HTTP hook has nothing there. */
export const breakagesOf = (form: HookForm): readonly (readonly [string, Breakage])[] =>
  form === "http" ? [] : Object.entries(form === "plugin" ? pluginBreakages : shimBreakages);
