import { z } from "zod";
import { Fault } from "../../schemas/faults.ts";
import type { Actions, Common } from "../cli/actions.ts";
import { toTable } from "../cli/report.ts";
import type { Screen } from "../cli/screen.ts";
import { style } from "../cli/screen.ts";
import type { Config } from "../platform/config.ts";
import type { GateCall } from "./gate-client.ts";
import { callGate } from "./gate-client.ts";
import { operatorToken } from "./operator-token.ts";

type ApprovalActions = Pick<Actions, "approvalsList" | "approvalsShow" | "approvalsDecide">;

const riskSchema = z.object({ score: z.number(), level: z.string() });
/** An approval as the gate shows it; what a later version adds is kept for --json. */
const approvalSchema = z.looseObject({
  id: z.string(),
  state: z.string(),
  tool: z.string(),
  session_id: z.string(),
  agent_id: z.string().nullable(),
  requester: z.string(),
  effect_class: z.string(),
  risk: riskSchema,
  message: z.string(),
  matched_rules: z.array(z.string()),
  plan_digest: z.string(),
  plan: z.unknown().optional(),
  policy_revision: z.string(),
  created_at: z.string(),
  expires_at: z.string(),
  decided_by: z.string().nullable(),
  decided_at: z.string().nullable(),
  note: z.string().nullable(),
  /** What the policy in force says of the same plan. */
  now: z
    .looseObject({
      policy_revision: z.string(),
      is_same_policy: z.boolean(),
      decision: z.string().nullable(),
      reason_code: z.string().optional(),
      message: z.string().optional(),
      is_same_plan: z.boolean().optional(),
    })
    .optional(),
});
type Approval = z.output<typeof approvalSchema>;

const hint =
  "this needs the role approver, which no agent's token has; `fabric tokens issue --role approver` makes such a token";

/** `fabric approvals …`: over the gate's HTTP API, as a person. */
export function approvalActions(configOf: (common: Common) => Promise<Config>): ApprovalActions {
  async function ask(
    common: Common,
    tokenFile: string | undefined,
  ): Promise<(call: Omit<GateCall, "token" | "roleHint">) => Promise<unknown>> {
    const config = await configOf(common);
    const token = await operatorToken(config, common, { roles: ["approver"], tokenFile });
    return (call) => callGate(config, { ...call, token, roleHint: hint });
  }
  return {
    async approvalsList(common, { state, limit, tokenFile }) {
      const call = await ask(common, tokenFile);
      const query = new URLSearchParams({ state: state ?? "pending", limit: String(limit) });
      const body = await call({ method: "GET", path: `/v1/approvals?${query.toString()}` });
      const listed = parse(z.object({ approvals: z.array(approvalSchema) }), body).approvals;
      const text =
        listed.length === 0
          ? state === undefined
            ? "nothing waits for a person"
            : `no approval is ${state}`
          : renderList(common.screen, listed);
      return { json: listed, text };
    },
    async approvalsShow(common, { id, tokenFile }) {
      const call = await ask(common, tokenFile);
      const found = parse(approvalSchema, await call({ method: "GET", path: pathOf(id) }));
      return { json: found, text: renderApproval(common.screen, found) };
    },
    async approvalsDecide(common, { id, approve, note, digest, tokenFile }) {
      const call = await ask(common, tokenFile);
      const seen = parse(approvalSchema, await call({ method: "GET", path: pathOf(id) }));
      if (digest !== undefined && digest !== seen.plan_digest) {
        throw new Fault("APPROVAL_DIGEST", `\`fabric approvals show ${id}\` shows it`);
      }
      const done = await call({
        method: "POST",
        path: `${pathOf(id)}/${approve ? "approve" : "refuse"}`,
        // What is agreed to is the plan that was shown here, and nothing that came since.
        body: { plan_digest: seen.plan_digest, ...(note === undefined ? {} : { note }) },
      });
      const word = approve
        ? style(common.screen, "green", "approved")
        : style(common.screen, "red", "refused");
      const after = approve
        ? `the same call, asked again before ${toMinute(seen.expires_at)}, passes once`
        : "the same plan is refused until then";
      return { json: done, text: `${renderApproval(common.screen, seen)}\n\n${word}; ${after}` };
    },
  };
}

function pathOf(id: string): string {
  return `/v1/approvals/${encodeURIComponent(id)}`;
}

function parse<T extends z.ZodType>(schema: T, body: unknown): z.output<T> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  throw new Fault("REQUEST_INVALID", "the gate's answer is of another version than this command");
}

const messageMaxChars = 60;

function renderList(screen: Screen, listed: readonly Approval[]): string {
  return toTable(
    ["APPROVAL", "STATE", "TOOL", "RISK", "ASKED BY", "EXPIRES", "WHY"],
    listed.map((one) => [
      one.id,
      one.state,
      one.tool,
      toRisk(one),
      one.requester,
      toMinute(one.expires_at),
      one.message.length > messageMaxChars ? `${one.message.slice(0, messageMaxChars - 1)}…` : one.message,
    ]),
    screen.columns,
  );
}

function renderApproval(screen: Screen, one: Approval): string {
  const rows: [string, string][] = [
    ["state", one.state],
    ["tool", one.tool],
    ["effect", one.effect_class],
    ["risk", toRisk(one)],
    [
      "asked by",
      `${one.requester}, session ${one.session_id}${one.agent_id === null ? "" : `, agent ${one.agent_id}`}`,
    ],
    ["why", one.message],
    ["rules", one.matched_rules.join(", ")],
    ["policy", one.policy_revision],
    ["plan digest", one.plan_digest],
    ["asked at", toMinute(one.created_at)],
    ["expires", toMinute(one.expires_at)],
  ];
  if (one.decided_by != null)
    rows.push(["decided by", `${one.decided_by}, ${toMinute(one.decided_at ?? "")}`]);
  if (one.note != null) rows.push(["note", one.note]);
  const width = Math.max(...rows.map(([name]) => name.length));
  return [
    style(screen, "bold", one.id),
    ...rows.filter(([, value]) => value !== "").map(([name, value]) => `${name.padEnd(width)}  ${value}`),
    ...(one.plan === undefined ? [] : ["", "the frozen plan:", JSON.stringify(one.plan, null, 2)]),
    ...renderNow(screen, one),
  ].join("\n");
}

/** What is not as it was when it was asked for: an approver has to know before he agrees. */
function renderNow(screen: Screen, { now }: Approval): string[] {
  if (now === undefined) return [];
  const lines: string[] = [];
  if (!now.is_same_policy) lines.push(`the policy is another one now: ${now.policy_revision}`);
  if (now.is_same_plan === false) {
    lines.push("the plan is not the same any more: a file that it runs, or a limit, has changed");
  }
  if (now.decision !== null && now.decision !== "require_approval") {
    lines.push(
      `asked now, the answer would be ${now.decision} ${now.reason_code ?? ""}: ${now.message ?? ""}`,
    );
  }
  return lines.length === 0 ? [] : ["", ...lines.map((line) => style(screen, "yellow", line))];
}

function toRisk({ risk }: Approval): string {
  return `${risk.level} (${String(risk.score)})`;
}

function toMinute(iso: string): string {
  return iso === "" ? "" : `${iso.slice(0, 16).replace("T", " ")}Z`;
}
