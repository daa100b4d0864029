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

/** An approval as the gate shows it; what a later version adds is kept for --json. */
const approvalSchema = z.looseObject({
  approval_id: z.string(),
  state: z.string(),
  tool: z.string(),
  risk: z.string().default("unknown"),
  risk_score: z.number().default(0),
  requester: z.string().default(""),
  message: z.string().default(""),
  matched_rules: z.array(z.string()).default([]),
  plan_digest: z.string(),
  plan: z.unknown().optional(),
  constraints: z.unknown().optional(),
  policy_revision: z.string().default(""),
  created_at: z.string().default(""),
  expires_at: z.string(),
  decided_by: z.string().nullable().optional(),
  decided_at: z.string().nullable().optional(),
  note: z.string().nullable().optional(),
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
          : renderList(listed);
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

function renderList(listed: readonly Approval[]): string {
  return toTable(
    ["APPROVAL", "STATE", "TOOL", "RISK", "ASKED BY", "EXPIRES", "WHY"],
    listed.map((one) => [
      one.approval_id,
      one.state,
      one.tool,
      `${one.risk} (${String(one.risk_score)})`,
      one.requester,
      toMinute(one.expires_at),
      one.message.length > messageMaxChars ? `${one.message.slice(0, messageMaxChars - 1)}…` : one.message,
    ]),
  );
}

function renderApproval(screen: Screen, one: Approval): string {
  const rows: [string, string][] = [
    ["state", one.state],
    ["tool", one.tool],
    ["risk", `${one.risk} (${String(one.risk_score)})`],
    ["asked by", one.requester],
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
    style(screen, "bold", one.approval_id),
    ...rows.filter(([, value]) => value !== "").map(([name, value]) => `${name.padEnd(width)}  ${value}`),
    ...(one.plan === undefined ? [] : ["", "the frozen plan:", JSON.stringify(one.plan, null, 2)]),
  ].join("\n");
}

function toMinute(iso: string): string {
  return iso === "" ? "" : `${iso.slice(0, 16).replace("T", " ")}Z`;
}
