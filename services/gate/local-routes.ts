import { draft } from "../../schemas/envelope.ts";
import { Fault } from "../../schemas/faults.ts";
import type { GateRequest, JsonObject } from "../../schemas/gate.ts";
import { localDecisionsSchema } from "../../schemas/local-profile.ts";
import type { Clock } from "../platform/clock.ts";
import type { AccessTable, HttpRequest, HttpServer, ReceivedBody } from "../platform/http.ts";
import { newUuidV7 } from "../platform/ids.ts";
import type { Log } from "../platform/log.ts";
import { toJsonPreview } from "../platform/masked-preview.ts";
import type { Metrics } from "../platform/metrics.ts";
import { bodyOf, parseInput } from "../platform/route-input.ts";
import type { Classify } from "./classified.ts";
import type { HookOrigin } from "./hook-translation.ts";
import { ofCaller, toOwnWork } from "./hook-translation.ts";
import type { HookOutcome, HookWork } from "./hook-work.ts";
import type { LocalCaller } from "./local-profile.ts";
import { toLocalProfile, toLocalTools } from "./local-profile.ts";
import type { Policy } from "./policy/policy.ts";

/** Who may answer by itself. */
export const localAccess = {
  "GET /v1/gate/local-profile": ["runtime"],
  "POST /v1/gate/local-decisions": ["runtime"],
} as const satisfies AccessTable;

export interface LocalRouteOptions {
  readonly policy: () => Policy;
  /** A stored policy by its revision; null: there is none. Absent: only the one in force is known. */
  readonly policyOf?: (revision: string) => Promise<Policy | null>;
  readonly classify: Classify;
  readonly environment: string;
  /** Null: the tenant is not served here. */
  readonly tenantState: (tenantId: string) => Promise<string | null>;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly toOrigin: (request: HttpRequest) => HookOrigin;
  /** Records a call under the given policy. */
  readonly record: (work: HookWork, policy: Policy) => Promise<HookOutcome>;
}

/** What became of a reported decision. */
type Recorded = "recorded" | "repeated" | "ungated" | "failed";

/** A report is dated at most so far ahead of this clock. */
const aheadMaxMs = 60_000;
const previewMaxChars = 512;
/** Revisions of one report; a plugin reports more often than policies change. */
const revisionsMax = 8;

/** Adds the routes of the local profile; give `localAccess` to the server. */
export function registerLocalRoutes(app: HttpServer, options: LocalRouteOptions): void {
  const { clock, log, metrics } = options;
  const counted = metrics.counter(
    "fabric_gate_local_decisions_total",
    "decisions that plugins made by the local profile, as reported",
    ["outcome"],
  );

  /** Loading one takes a while; a revision never changes. */
  const remembered = new Map<string, Policy>();

  app.get("/v1/gate/local-profile", async (request, reply) => {
    const origin = options.toOrigin(request);
    const state = await options.tenantState(origin.tenantId);
    if (state === null) throw new Fault("TENANT_UNKNOWN");
    const profile = toLocalProfile(options.policy(), toCaller(origin), clock.nowMs());
    // A frozen tenant does nothing by itself; a profile that is out already ends within its minute.
    return reply
      .header("cache-control", "no-store")
      .send(state === "active" ? profile : { ...profile, tools: [] });
  });

  app.post<{ Body: ReceivedBody }>("/v1/gate/local-decisions", async (request, reply) => {
    const { json } = bodyOf(request);
    const { decisions } = parseInput(localDecisionsSchema, json, "body");
    const origin = options.toOrigin(request);
    const policies = await loadPolicies(decisions.map((one) => one.policy_revision));
    const outcomes = await Promise.all(
      decisions.map(async (one, index): Promise<Recorded> => {
        // The input as it came: the parser drops a key named `__proto__`.
        const { decisions: sent } = json as { decisions: { request: { input: JsonObject } }[] };
        const input = sent[index]?.request.input ?? one.request.input;
        const asked = ofCaller(Object.assign({}, one.request, { input }), origin);
        const atMs = Math.min(Date.parse(one.decided_at), clock.nowMs() + aheadMaxMs);
        return record(asked, policies.get(one.policy_revision) ?? null, atMs, origin);
      }),
    );
    const count = (outcome: Recorded): number => outcomes.filter((one) => one === outcome).length;
    for (const outcome of outcomes) counted.add({ outcome });
    const told = {
      recorded: count("recorded"),
      repeated: count("repeated"),
      ungated: count("ungated"),
      // By their place in the report: to be sent again.
      failed: outcomes.flatMap((one, index) => (one === "failed" ? [index] : [])),
    };
    const line = { tenant: origin.tenantId, ...told, failed: told.failed.length };
    if (told.ungated > 0) log.warn(line, "calls ran without a decision that the local profile does not list");
    else log.info(line, "calls were answered by the local profile");
    return reply.send(told);
  });

  async function loadPolicies(revisions: readonly string[]): Promise<Map<string, Policy>> {
    const current = options.policy();
    const wanted = [...new Set(revisions)].filter((one) => one !== current.revision);
    const found = new Map([[current.revision, current]]);
    for (const revision of wanted.slice(0, revisionsMax)) {
      const policy = remembered.get(revision) ?? (await options.policyOf?.(revision));
      if (policy == null) continue;
      if (remembered.size >= revisionsMax) remembered.clear();
      remembered.set(revision, policy);
      found.set(revision, policy);
    }
    return found;
  }

  function toCaller({ tenantId, subject }: HookOrigin): LocalCaller {
    return { tenant: tenantId, user: subject, environment: options.environment };
  }

  async function record(
    request: GateRequest,
    policy: Policy | null,
    atMs: number,
    origin: HookOrigin,
  ): Promise<Recorded> {
    const raw = Buffer.from(JSON.stringify(request), "utf8");
    const judgedBy = policy ?? options.policy();
    const work = toOwnWork(request, options.classify(request, judgedBy), raw, origin);
    const isListed = policy !== null && toLocalTools(policy, toCaller(origin)).includes(request.tool);
    const outcome = isListed
      ? await options.record(
          { ...work, told: { by: "local_profile", decisionId: `dec_${newUuidV7(clock.nowMs())}`, atMs } },
          policy,
        )
      : await options.record(toUngated(work, request, options.classify(request, judgedBy).effect), judgedBy);
    if (outcome.kind === "tenant_unknown") throw new Fault("TENANT_UNKNOWN");
    if (outcome.kind === "failed") return "failed";
    const isRepeated = outcome.kind === "answered" ? outcome.answer.repeated : outcome.repeated;
    if (isRepeated) return "repeated";
    return isListed ? "recorded" : "ungated";
  }
}

/** It ran, and nothing had allowed it: a fact, and what its result labels, but no decision. */
function toUngated(work: HookWork, request: GateRequest, effect: ReturnType<Classify>["effect"]): HookWork {
  const { session_id, turn_id, tool_call_id } = request;
  const ungated = draft(
    "agent.effect.ungated",
    {
      effect_class: effect,
      evidence: "result_without_decision",
      detail: toJsonPreview({ tool: request.tool, input: request.input }, previewMaxChars),
    },
    {
      execution: { session_id, turn_id: turn_id ?? null, tool_call_id: tool_call_id ?? null },
      subject: { tool: request.tool, action: null, resource_ref: null, data_class: "unknown" },
      ...(request.agent_id === undefined ? {} : { agent_id: request.agent_id }),
    },
  );
  return {
    ...work,
    call: { ...work.call, phase: "local_profile" },
    request: null,
    reported: request,
    observations: [{ draft: ungated, causes: work.observations[0]?.causes ?? [] }],
  };
}
