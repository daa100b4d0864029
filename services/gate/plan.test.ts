import { describe, expect, it } from "vitest";
import type { GateRequest, JsonObject } from "../../schemas/gate.ts";
import type { PlanParts } from "./plan.ts";
import { intentDigest, planDigest, toPlan } from "./plan.ts";
import type { ParsedCommand } from "./shell/parsed-command.ts";

const request = (input: JsonObject, rest: Partial<GateRequest> = {}): GateRequest => ({
  runtime: "own",
  session_id: "s",
  phase: "before_tool",
  tool: "shell.run",
  input,
  working_directory: "/w",
  ...rest,
});
const shell = { entry: { volatile: ["description", "timeout"] }, action: "run", resource: "make" };
const ticket = { entry: { volatile: [] }, action: "write", resource: null };
const parts: PlanParts = { environment: "dev", operands: [], constraints: {} };
const digestOf = (
  asked: GateRequest,
  source: Parameters<typeof toPlan>[1] = shell,
  more: Partial<PlanParts> = {},
) => planDigest(toPlan(asked, source, { ...parts, ...more }));
const plain = request({ command: "make" });
const inForeignShell: ParsedCommand = {
  commands: [],
  writes: [],
  reads: [],
  unresolvedReads: [],
  unknownReads: [],
  operands: [],
  assignments: [],
  opaque: [{ kind: "foreign_shell", detail: "make", program: "PowerShell" }],
};

describe("the digest of a plan", () => {
  it("is the same for the same command with two descriptions, two time limits and two orders of keys", () => {
    const one = digestOf(request({ command: "make", sandbox: true, description: "builds", timeout: 5 }));
    expect(digestOf(request({ description: "builds it", sandbox: true, command: "make" }))).toBe(one);
  });

  it.each([
    ["another folder", digestOf(request({ command: "make" }, { working_directory: "/x" }))],
    ["no folder", digestOf(toRequestWithoutFolder())],
    ["a sandbox flag", digestOf(request({ command: "make", dangerouslyDisableSandbox: true }))],
    ["another environment", digestOf(plain, shell, { environment: "prod" })],
    ["another tool", digestOf(request({ command: "make" }, { tool: "shell.other" }))],
    ["another action", digestOf(plain, { ...shell, action: "deploy" })],
    ["another resource", digestOf(plain, { ...shell, resource: "make all" })],
    ["a limit", digestOf(plain, shell, { constraints: { network: "none" } })],
    ["a script", digestOf(plain, shell, { operands: [{ path: "/w/a.sh", digest: "sha256:1" }] })],
    [
      "a script with other content",
      digestOf(plain, shell, { operands: [{ path: "/w/a.sh", digest: "sha256:2" }] }),
    ],
    ["another shell", digestOf(plain, { ...shell, command: inForeignShell })],
    ["a link", digestOf(plain, { ...shell, links: [{ path: "/w/a", real: "/w/b" }] })],
    [
      "a script that cannot be read",
      digestOf(plain, shell, { operands: [{ path: "/w/a.sh", digest: null }] }),
    ],
  ])("is another one for %s", (_what, digest) => {
    expect(digest).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(digest).not.toBe(digestOf(plain));
  });

  it("takes a field out only where the catalogue lists it: what a ticket says is what the tool does", () => {
    const one = digestOf(request({ title: "t", description: "a" }), ticket);
    expect(digestOf(request({ title: "t", description: "b" }), ticket)).not.toBe(one);
  });

  it("is another one when a link leads elsewhere", () => {
    const leadingTo = (real: string) => digestOf(plain, { ...shell, links: [{ path: "/w/a", real }] });
    expect(leadingTo("/etc/passwd")).not.toBe(leadingTo("/w/b"));
  });

  it("does not depend on the order of the scripts", () => {
    const [a, b] = [
      { path: "/w/a.sh", digest: "sha256:1" },
      { path: "/w/b.sh", digest: "sha256:2" },
    ];
    expect(digestOf(plain, shell, { operands: [a, b] })).toBe(digestOf(plain, shell, { operands: [b, a] }));
  });

  it("is none for an input that has no canonical form", () => {
    expect(digestOf(request({ command: "\ud800" }))).toBeNull();
  });
});

describe("the digest of the intent", () => {
  it("stays when a script, a link or a limit changes, and only then", () => {
    const intent = (
      asked: GateRequest,
      more: Partial<PlanParts> = {},
      source: Parameters<typeof toPlan>[1] = shell,
    ) => intentDigest(toPlan(asked, source, { ...parts, ...more }));
    const one = intent(plain);
    expect(intent(plain, {}, { ...shell, links: [{ path: "/w/a", real: "/w/b" }] })).toBe(one);
    expect(intent(plain, {}, { ...shell, command: inForeignShell })).not.toBe(one);
    expect(intent(plain, { operands: [{ path: "/w/a.sh", digest: "sha256:1" }] })).toBe(one);
    expect(intent(plain, { constraints: { network: "none" } })).toBe(one);
    expect(intent(plain, { environment: "prod" })).not.toBe(one);
    expect(intent(request({ command: "make all" }))).not.toBe(one);
  });
});

function toRequestWithoutFolder(): GateRequest {
  const { working_directory: _folder, ...rest } = request({ command: "make" });
  return rest;
}
