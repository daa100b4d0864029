import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { Common } from "../cli/actions.ts";
import { givenBundle } from "../gate/policy/given-bundle.ts";
import { policyActions } from "./policy-actions.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

const common = { screen: { colour: false, json: false } } as Common;
const actions = policyActions(() => Promise.reject(new Error("a check needs no configuration")));

function writeBundle(changes: Readonly<Record<string, string | null>>): string {
  const dir = join(mkdtempSync(join(tmpdir(), "bundle-")), "small");
  folders.push(dirname(dir));
  for (const [path, text] of givenBundle(changes)) {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), text);
  }
  return dir;
}

describe("fabric policy check", () => {
  it("refuses, as `test` does, a bundle that can deny nothing", { timeout: 60_000 }, async () => {
    const dir = writeBundle({ "static-deny.cedar": "", "cases/all.yaml": null });
    const checked = await actions.policyCheck(common, { dir });
    expect(checked).toEqual(await actions.policyTest(common, { dir }));
    expect(checked.exit).toBe(1);
    expect(checked.text).toMatch(
      /is refused: no case proves that it can deny anything\ncases: .*deny nothing/,
    );
    expect(checked.json).toMatchObject({ ok: false, problems: [], failures: [{ file: "cases" }] });
    expect(JSON.stringify(checked.json)).not.toContain('"line"');
  });

  it("says one clear thing of a folder that is not there", { timeout: 60_000 }, async () => {
    const checked = await actions.policyCheck(common, { dir: "nonexist" });
    expect([checked.exit, checked.text]).toEqual([
      1,
      "nonexist is refused: 1 fault\nnonexist: there is no such folder",
    ]);
    expect(checked.json).toEqual({
      ok: false,
      revision: null,
      problems: [{ file: "nonexist", text: "there is no such folder" }],
      failures: [],
    });
  });
});
