import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync, existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
// JSON is YAML too.
import { parse } from "yaml";
import { runtimeRooms } from "../../services/app/runtime-rooms.ts";
import type { RuntimeRoom } from "../../services/platform/runtime-room.ts";
import { applyChanges } from "../../services/install/config-files.ts";
import { inspectInstall } from "../../services/install/inspect-install.ts";
import type { InstallPlan, InstallRequest } from "../../services/install/plan-install.ts";
import { planInstall, planUninstall, toRecordFile, toTarget } from "../../services/install/plan-install.ts";
import { renderChanges } from "../../services/install/render-changes.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "fabric-install-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const requestOf = (room: RuntimeRoom, changes: Partial<InstallRequest> = {}): InstallRequest => ({
  room,
  home,
  form: room.setup.forms[0],
  gateUrl: "http://127.0.0.1:7411",
  token: "made-up-token",
  program: "/usr/bin/client",
  clientVersion: "9.9.9",
  tools: { hasTimeout: true, node: "/usr/bin/node" },
  ...changes,
});
async function install(request: InstallRequest): Promise<InstallPlan> {
  const plan = await planInstall(request);
  await applyChanges([...plan.ownFiles, ...plan.changes]);
  const record = { ...plan.record, installedAt: "2026-11-30T12:00:00.000Z" };
  await applyChanges([toRecordFile(plan.target.fabricDir, record)]);
  return plan;
}
const write = (path: string, text: string): void => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
};
const pathsOf = (room: RuntimeRoom): readonly string[] =>
  room.setup
    .edits(toTarget(requestOf(room)))
    .map(({ path }) => path)
    // Files of the client; what lies in our own folder is nobody else's.
    .filter((path) => !/\/\.fabric\/|\/policy[-_]hook[-_]fabric\//.test(path));

/** Settings of somebody else, as no printer would lay them out. */
function toOddText(path: string): string {
  if (path.endsWith(".json")) return '{ "x":1,\n\n  "hooks":{} }';
  if (path.endsWith(".yaml")) return "x:   1   # mine\n\nhooks: {}\n";
  return "a=1   # mine\n\n[features]\nx = true\n";
}

describe.each([...runtimeRooms])("an installation for %s", (_name, room) => {
  it("changes nothing the second time, and ends to the byte as it was", async () => {
    for (const path of pathsOf(room)) write(path, toOddText(path));
    await install(requestOf(room));
    const again = await install(
      requestOf(room, { token: "another-token", form: room.setup.forms[1] ?? room.setup.forms[0] }),
    );
    const third = await planInstall(
      requestOf(room, { token: "another-token", form: room.setup.forms[1] ?? room.setup.forms[0] }),
    );
    expect(third.changes.every(({ before, after }) => before === after)).toBe(true);
    await applyChanges(await planUninstall(room, again.target));
    for (const path of pathsOf(room)) expect(readFileSync(path, "utf8")).toBe(toOddText(path));
  });

  it("leaves no file where there was none, and what others wrote since", async () => {
    const { target } = await install(requestOf(room));
    const [first] = pathsOf(room);
    if (first !== undefined) {
      const settings = parse(readFileSync(first, "utf8")) as object;
      writeFileSync(first, JSON.stringify({ ...settings, theirs: true }));
    }
    await applyChanges(await planUninstall(room, target));
    if (first !== undefined) expect(parse(readFileSync(first, "utf8"))).toEqual({ theirs: true });
    for (const { path } of room.setup.edits(target)) expect(existsSync(path)).toBe(path === first);
  });

  it("keeps the token to its owner, and out of what is shown", async () => {
    const plan = await install(requestOf(room));
    expect(statSync(plan.target.tokenFile).mode & 0o077).toBe(0);
    for (const path of pathsOf(room))
      if (readFileSync(path, "utf8").includes("made-up-token")) expect(statSync(path).mode & 0o077).toBe(0);
    const shown = renderChanges([...plan.changes, ...plan.ownFiles], "made-up-token");
    expect(shown).not.toContain("made-up-token");
    expect(JSON.stringify(plan.target.gatingCommand)).not.toContain("made-up-token");
  });

  it("is known again by its hash: as installed, changed since, gone", async () => {
    const { target } = await install(requestOf(room));
    const { consent: _consent, ...setup } = room.setup;
    const plain = { ...room, setup };
    const client = { argv: [], env: {}, workingDirectory: home, home };
    const stateOf = async (): Promise<string> => (await inspectInstall(plain, target, client)).state;
    expect(await stateOf()).toBe("trusted");
    const loaded = room.setup.edits(target).map(({ path }) => path);
    const [first = ""] = loaded.filter((path) =>
      readFileSync(path, "utf8").includes(target.configurationHash),
    );
    const text = readFileSync(first, "utf8");
    writeFileSync(first, text.replaceAll(target.configurationHash, "0000000000000000"));
    expect(await stateOf()).toBe("modified");
    rmSync(first);
    expect(await stateOf()).toBe("missing");
  });

  it("has another hash in another form, and the same for another token", () => {
    const hashOf = (changes: Partial<InstallRequest>): string =>
      toTarget(requestOf(room, changes)).configurationHash;
    expect(hashOf({ token: "other" })).toBe(hashOf({}));
    if (room.setup.forms.length > 1)
      expect(hashOf({ form: room.setup.forms[1] ?? "node" })).not.toBe(hashOf({}));
  });
});
