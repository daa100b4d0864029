import { beforeAll, describe, expect, it } from "vitest";
import type { GateRequest, JsonObject } from "../../schemas/gate.ts";
import { loadBundle } from "./bundle.ts";
import { classify, namedPathsMax, pathMaxChars } from "./classify.ts";
import { decide } from "./decide.ts";
import type { Facts } from "./decide.ts";
import type { Bundle } from "./rules.ts";

let bundle: Bundle;
beforeAll(async () => {
  bundle = await loadBundle("deploy/policy/default");
});
const facts: Facts = { tenant: { state: "active", version: 1 }, session: { version: 0, labels: [] } };
const request = (tool: string, input: JsonObject, workingDirectory = "/w"): GateRequest => ({
  runtime: "own",
  session_id: "s",
  phase: "before_tool",
  tool,
  input,
  working_directory: workingDirectory,
});
const patchOf = (files: number): string =>
  Array.from({ length: files }, (_, file) => `*** Add File: ${String(file)}`).join("\n");
/** A working folder that costs the most to resolve against. */
const deep = `/${"a/".repeat(2_000)}`;

const denialOf = (asked: GateRequest): string => {
  const ruling = decide(asked, facts, bundle);
  expect(ruling).toMatchObject({ decision: "deny", reason: "INPUT_UNREADABLE" });
  return ruling.message;
};

describe("what one call may name", () => {
  it("judges a patch of as many files as may be named, each of them", () => {
    const asked = request("file.patch", { command: patchOf(namedPathsMax) });
    expect(classify(asked, bundle).paths).toHaveLength(namedPathsMax);
    expect(decide(asked, facts, bundle)).toMatchObject({ decision: "allow" });
    const last = request("file.patch", { command: `${patchOf(namedPathsMax - 1)}\n*** Add File: .env` });
    expect(decide(last, facts, bundle)).toMatchObject({ decision: "deny", reason: "STATIC_DENY" });
  });

  it("denies a patch of more, and says what to do", () => {
    const message = denialOf(request("file.patch", { command: patchOf(namedPathsMax + 1) }));
    expect(message).toMatch(/more than 1000 files; split it/);
  });

  it("counts the files of all its fields together", () => {
    const asked = request("file.patch", {
      command: patchOf(900),
      patch: patchOf(1_100).slice(patchOf(900).length),
    });
    expect(denialOf(asked)).toMatch(/more than 1000 files/);
  });

  it("denies a path, a working folder and a sum of both that are too long", () => {
    expect(denialOf(request("file.write", { file_path: "a".repeat(pathMaxChars + 1) }))).toMatch(
      /a path is longer/,
    );
    expect(denialOf(request("file.write", { file_path: "a" }, `/${"w".repeat(pathMaxChars)}`))).toMatch(
      /working folder is longer/,
    );
    expect(denialOf(request("file.patch", { command: patchOf(900) }, deep))).toMatch(/together; split it/);
  });

  it("takes no longer for the largest patch in the deepest folder than for a body of its size", () => {
    const patch = patchOf(45_000);
    const startedMs = performance.now();
    for (const folder of [deep, "/w"]) denialOf(request("file.patch", { command: patch }, folder));
    decide(request("file.patch", { command: patchOf(65) }, deep), facts, bundle);
    expect(performance.now() - startedMs).toBeLessThan(1_000);
  });

  it("reads a list that does not fit on the stack", () => {
    const asked = request("shell.run", { command: "ls", list: Array.from({ length: 300_000 }, () => "a") });
    expect(decide(asked, facts, bundle)).toMatchObject({ decision: "allow" });
    expect(classify(asked, bundle).allTexts()).toHaveLength(300_001);
  });
});
