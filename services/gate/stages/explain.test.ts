import { describe, expect, it } from "vitest";
import type { GateRequest } from "../../../schemas/gate.ts";
import type { Classified } from "../classified.ts";
import type { Facts } from "../facts-of-call.ts";
import type { CedarAnswer, CedarMatch, Policy, ToolEntry, Verdict, When } from "../policy/policy.ts";
import { decide } from "./decide.ts";
import { explainRuling } from "./explain.ts";

const always: When = {
  tools: [],
  effects: [],
  runtimes: [],
  environments: [],
  signalsAny: [],
  signalsAll: [],
  signalsNone: [],
  labelsAny: [],
  labelsNone: [],
  riskAtLeast: null,
};
const rule = (id: string, priority = 0) => ({ id, when: always, message: `says ${id}`, priority });
const match = (id: string, priority = 0): CedarMatch => ({
  id,
  reason: "STATIC_DENY",
  message: `says ${id}`,
  priority,
});
const entry: ToolEntry = {
  tool: "shell.run",
  effect: "execute",
  dataClass: "internal",
  action: "run",
  resource: { kind: "command", fields: ["command"], required: true },
  volatile: [],
  constraints: {},
  inputProblems: () => [],
};
const policy = (cedar: Partial<CedarAnswer>, rest: Partial<Policy> = {}): Policy => ({
  name: "p",
  revision: "policy@2026-01-01.1+0",
  digest: "0",
  tools: [entry],
  signals: [],
  cedar: { ask: () => ({ denied: [], forbidden: [], permitted: [], ...cedar }) },
  risk: { rules: [], levels: { medium: 30, high: 60, critical: 85 } },
  approvals: [],
  facts: [],
  constraints: [],
  labels: [],
  rewrites: [],
  rates: [],
  budgets: [],
  localTools: [],
  ...rest,
});
const request: GateRequest = {
  runtime: "own",
  session_id: "s",
  phase: "before_tool",
  tool: "shell.run",
  input: { command: "make", sandbox: false },
};
const facts: Facts = {
  nowMs: 1_000,
  environment: "dev",
  tenant: { id: "acme", state: "active", version: 1 },
  session: { version: 1, labels: [], openApprovals: 0, deferredSinceMs: null },
  approval: null,
  isRevoked: false,
  counters: {},
  dated: {},
};
const classified: Classified = {
  entry,
  effect: "execute",
  dataClass: "internal",
  action: "run",
  resource: "make",
  findings: [],
  touched: [],
  command: null,
  operandPaths: [],
  signals: [],
};
const judge = (one: Policy, known: Partial<Facts> = {}, added: readonly Verdict[] = []) =>
  decide(request, { ...facts, ...known }, one, { classify: () => classified, operands: [], added });
const winnerOf = (ruling: ReturnType<typeof judge>): string[] =>
  explainRuling(ruling).flatMap(({ stage, rules }) =>
    rules.flatMap((one) => (one.won === null ? [] : [`${stage} ${one.rule}: ${one.won}`])),
  );
const permitted = [match("allow.run")];

describe("the explanation of a ruling", () => {
  it("lists every rule by stage, also those that lost and those that only add something", () => {
    const ruling = judge(
      policy(
        { denied: [match("deny.a")], permitted },
        {
          risk: {
            rules: [{ ...rule("risk.a"), points: 40 }],
            levels: { medium: 30, high: 60, critical: 85 },
          },
          constraints: [{ ...rule("limit.a"), constraints: { network: "none", paths: ["/w"] } }],
          labels: [{ ...rule("label.a"), labels: ["seen"] }],
          budgets: [{ ...rule("budget.a"), scope: "tenant", windowMs: null, limit: 5, cost: 2 }],
          rewrites: [{ ...rule("rewrite.a"), set: { sandbox: true }, remove: [] }],
        },
      ),
    );
    expect(ruling).toMatchObject({ decision: "deny", risk: "medium", labels: [], spends: [] });
    expect(explainRuling(ruling).map(({ stage, rules }) => [stage, rules.map((one) => one.rule)])).toEqual([
      ["static-deny", ["deny.a"]],
      ["authorize", ["allow.run"]],
      ["risk", ["budget.a", "label.a", "limit.a", "risk.a"]],
      ["normalize", ["rewrite.a"]],
    ]);
    expect(explainRuling(ruling)[2]?.rules.map((one) => one.message)).toEqual([
      "0 of 5 spent before, this call costs 2",
      "labels the session once it is let through: seen",
      "limits it: network none, paths /w",
      "adds 40 risk points",
    ]);
    expect(winnerOf(ruling)).toEqual(["static-deny deny.a: absolute deny of static-deny leads over 1 other"]);
  });

  it.each<[string, ReturnType<typeof judge>, string[]]>([
    [
      "by its priority",
      judge(policy({ denied: [match("deny.a"), match("deny.b", 10)], permitted })),
      ["static-deny deny.b: absolute deny of static-deny leads over 2 others; priority 10 before 0"],
    ],
    [
      "by its id",
      judge(policy({ permitted: [match("allow.b"), match("allow.a")] })),
      ["authorize allow.a: among 1 other of its priority its id comes first"],
    ],
    ["alone", judge(policy({ permitted })), ["authorize allow.run: nobody else spoke"]],
    [
      "as a question before an allow",
      judge(policy({ permitted }, { approvals: [{ ...rule("approval.a"), ttlMs: 1_000, by: "approver" }] })),
      ["risk approval.a: require_approval before allow"],
    ],
    [
      "as a rewrite",
      judge(
        policy({ permitted }, { rewrites: [{ ...rule("rewrite.a"), set: { sandbox: true }, remove: [] }] }),
      ),
      ["normalize rewrite.a: everything else allows it, and the rewrite that leads tells what was changed"],
    ],
    ["by silence, and then nobody did", judge(policy({})), []],
  ])("says why the winner won: %s", (_how, ruling, won) => {
    expect(winnerOf(ruling)).toEqual(won);
  });

  it("tells that an approval settled a question", () => {
    const asked = policy(
      { permitted },
      { approvals: [{ ...rule("approval.a"), ttlMs: 1_000, by: "approver" }] },
    );
    const { planDigest } = judge(asked);
    const approval = {
      approvalId: "apr_1",
      state: "approved",
      planDigest: planDigest ?? "",
      rules: ["approval.a"],
      expiresAtMs: 2_000,
    } as const;
    const ruling = judge(asked, { approval });
    expect(ruling).toMatchObject({
      decision: "allow",
      reason: "APPROVED",
      approval: { kind: "consume", approvalId: "apr_1" },
    });
    expect(ruling.verdicts.map((one) => one.rule)).toContain("approval.a");
    expect(winnerOf(ruling)).toEqual([
      "plan approval.apr_1: the approval settles what had to be approved; priority 10000 before 0",
    ]);
  });
});

describe("a decision", () => {
  it("denies and names what threw: Cedar, the classifier, a schema", () => {
    const down = policy({}, { cedar: { ask: () => fail() } });
    expect(judge(down)).toMatchObject({
      decision: "deny",
      reason: "RULE_FAILED",
      leadRule: "stage.authorize",
    });
    const ruling = decide(request, facts, policy({ permitted }), { classify: () => fail(), operands: [] });
    expect(ruling).toMatchObject({ decision: "deny", reason: "RULE_FAILED", leadRule: "stage.classify" });
    const broken = { ...classified, entry: { ...entry, inputProblems: () => fail() } };
    const rewriting = policy(
      { permitted },
      { rewrites: [{ ...rule("rewrite.a"), set: { sandbox: true }, remove: [] }] },
    );
    expect(decide(request, facts, rewriting, { classify: () => broken, operands: [] })).toMatchObject({
      decision: "deny",
      reason: "RULE_FAILED",
      leadRule: "stage.normalize",
    });
  });

  it("tells a freeze also when Cedar fails", () => {
    const down = policy({}, { cedar: { ask: () => fail() } });
    expect(judge(down, { tenant: { id: "acme", state: "frozen", version: 2 } }).reason).toBe("TENANT_FROZEN");
  });

  it("takes what the host itself says as one verdict among the others", () => {
    const conflict: Verdict = {
      rule: "gate.conflict",
      stage: "plan",
      decision: "deny",
      reason: "CONFLICT",
      message: "try again",
      priority: 10_000,
      isAbsolute: true,
    };
    expect(judge(policy({ denied: [match("deny.a")] }), {}, [conflict])).toMatchObject({
      reason: "CONFLICT",
      matchedRules: ["deny.a", "gate.conflict"],
    });
  });

  it("reads a permit that failed as a deny", () => {
    const failed = { ...match("allow.run"), reason: "RULE_FAILED" } as const;
    expect(judge(policy({ permitted: [failed, match("allow.b")] }))).toMatchObject({
      decision: "deny",
      reason: "RULE_FAILED",
    });
  });

  it("counts a call's own dialog as no second call", () => {
    const limited = policy(
      { permitted },
      { budgets: [{ ...rule("budget.a"), scope: "tenant", windowMs: null, limit: 1, cost: 1 }] },
    );
    const [spend] = judge(limited).spends;
    const counters = { [spend?.key ?? ""]: 1 };
    expect(judge(limited, { counters }).reason).toBe("BUDGET_SPENT");
    const dialog = decide({ ...request, phase: "permission" }, { ...facts, counters }, limited, {
      classify: () => classified,
      operands: [],
    });
    expect(dialog).toMatchObject({ decision: "allow", spends: [] });
  });

  it("does not allow code that could not be read to pass for code that was", () => {
    const runs = { ...classified, operandPaths: ["/w/b.sh", "/w/a.sh"] };
    const ruling = decide(request, facts, policy({ permitted }), {
      classify: () => runs,
      operands: [
        { path: "/w/a.sh", digest: "sha256:1" },
        { path: "/w/unasked.sh", digest: "sha256:2" },
      ],
    });
    expect(ruling.classified.signals).toEqual(["operand.unreadable"]);
    expect(ruling.plan.operands).toEqual([
      { path: "/w/a.sh", digest: "sha256:1" },
      { path: "/w/b.sh", digest: null },
    ]);
  });
});

function fail(): never {
  throw new Error("down");
}

describe("a rule that the user may answer", () => {
  const askUser = { ...rule("approval.user"), ttlMs: 1_000, by: "user" as const };
  const askOther = { ...rule("approval.other"), ttlMs: 1_000, by: "approver" as const };
  const withDialog = (one: Policy, known: Partial<Facts> = {}) =>
    decide({ ...request, user_dialog: true }, { ...facts, ...known }, one, {
      classify: () => classified,
      operands: [],
    });

  it("becomes a condition of an allow where the runtime has a dialog, and a ticket where it has none", () => {
    const one = policy({ permitted }, { approvals: [askUser] });
    expect(withDialog(one)).toMatchObject({ decision: "allow", confirm: "says approval.user" });
    expect(withDialog(one).matchedRules).toContain("approval.user");
    expect(
      explainRuling(withDialog(one)).flatMap(({ rules }) => rules.map((line) => line.message)),
    ).toContain("the user has to agree in the runtime's own dialog: says approval.user");
    expect(judge(one)).toMatchObject({ decision: "require_approval", confirm: null });
  });

  it("allows nothing by itself, and takes no other approver's place", () => {
    expect(withDialog(policy({}, { approvals: [askUser] }))).toMatchObject({
      decision: "deny",
      reason: "NO_RULE_SPOKE",
      confirm: null,
    });
    expect(withDialog(policy({ permitted }, { approvals: [askUser, askOther] }))).toMatchObject({
      decision: "require_approval",
      confirm: null,
    });
  });

  it("does not ask again about a plan that somebody refused", () => {
    const one = policy({ permitted }, { approvals: [askUser] });
    const refused = {
      approvalId: "apr_1",
      state: "refused" as const,
      planDigest: withDialog(one).planDigest ?? "",
      rules: ["approval.user"],
      expiresAtMs: 2_000,
    };
    expect(withDialog(one, { approval: refused })).toMatchObject({
      decision: "deny",
      reason: "APPROVAL_REFUSED",
    });
  });
});
