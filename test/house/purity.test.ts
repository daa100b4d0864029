import { ESLint } from "eslint";
import tseslint from "typescript-eslint";
import { describe, expect, it } from "vitest";
import { ROOT } from "./files.ts";

// The texts below are no files of the project, so the rules that need types are left out.
const { name: _name, ...withoutTypes } = tseslint.configs.disableTypeChecked;
const eslint = new ESLint({ cwd: ROOT, overrideConfig: [{ files: ["**/*.ts"], ...withoutTypes }] });

/** Rules that fire on `text` when it stands in `path`. */
async function findings(path: string, text: string): Promise<string[]> {
  const [result] = await eslint.lintText(`${text}\n`, { filePath: `${ROOT}/${path}` });
  return (result?.messages ?? []).map(({ ruleId, message }) => ruleId ?? message);
}

const impure = {
  "the clock": "export const now = Date.now();",
  "the date": "export const today = new Date();",
  "the stopwatch": "export const at = performance.now();",
  randomness: "export const dice = Math.random();",
  "a new id": "export const id = crypto.randomUUID();",
  "a timer": "setTimeout(() => undefined, 1);",
  "a file": 'export { readFileSync } from "node:fs";',
  "the network": 'export { request } from "node:http";',
  "the process": "export const folder = process.cwd();",
};

describe("the purity rules", () => {
  const pure = [
    "schemas/envelope.ts",
    "processors/audit/audit.ts",
    "services/gate/stages/decide.ts",
    "services/gate/shell/words.ts",
    "services/adapters/planted/translate.ts",
  ];
  it.each(pure)("keep effects, clock and randomness out of %s", async (path) => {
    for (const [what, text] of Object.entries(impure)) {
      expect(await findings(path, text), what).not.toEqual([]);
    }
    expect(await findings(path, "export const at = new Date(0);")).toEqual([]);
  });

  it("leave the files of effects alone", async () => {
    for (const [what, text] of Object.entries(impure)) {
      expect(await findings("services/platform/clock.ts", text), what).toEqual([]);
    }
  });
});

describe("the environment", () => {
  const readings = [
    'export const port = process.env["PORT"];',
    "const { env } = process;\nexport const port = env;",
    'export const port = globalThis.process.env["PORT"];',
    'import { env } from "node:process";\nexport const port = env;',
  ];
  it.each(readings)("is read by the configuration alone: %s", async (text) => {
    expect(await findings("services/gate/store.ts", text)).toEqual(["no-restricted-syntax"]);
    expect(await findings("services/platform/config.ts", text)).toEqual([]);
  });
});
