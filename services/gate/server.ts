import { setTimeout as sleep } from "node:timers/promises";
import type { Adapter, RuntimeReply, Translation } from "../../schemas/adapter.ts";
import type { FaultCode } from "../../schemas/faults.ts";
import { Fault } from "../../schemas/faults.ts";
import type { GateAnswer, GateRequest, JsonObject, ReasonCode } from "../../schemas/gate.ts";
import { gateRequestSchema } from "../../schemas/gate.ts";
import type {
  AccessTable,
  HttpReply,
  HttpRequest,
  HttpServer,
  Probe,
  ReceivedBody,
} from "../platform/http.ts";
import { createHttpServer, defaultBodyLimitBytes } from "../platform/http.ts";
import { toHookReplyForm } from "../platform/hook-reply-form.ts";
import { newUuidV7 } from "../platform/ids.ts";
import { maskText } from "../platform/mask.ts";
import type { Authenticator } from "../platform/auth.ts";
import { bodyOf, callerOf, parseInput } from "../platform/route-input.ts";
import { capabilityTtlMs, toAnswer, toUnrecordedRefusal } from "./answer.ts";
import { startExpiringApprovals } from "./approval/expire-approvals.ts";
import { approvalAccess, registerApprovalRoutes } from "./approval/routes.ts";
import { toCorrelationId, toSessionKey } from "./call-keys.ts";
import { startExpiring } from "./capability/expire-capabilities.ts";
import { toClaims } from "./capability/claims.ts";
import { createPolicyOfNow } from "./capability/policy-of-now.ts";
import { capabilityAccess, registerCapabilityRoutes } from "./capability/routes.ts";
import type { CapabilitySigner } from "./capability/signer.ts";
import type { Operand } from "./classified.ts";
import { withRealPaths } from "./classified.ts";
import { createClassifyOnce } from "./classify-once.ts";
import { createRememberingClassify } from "./classify-remembered.ts";
import type { CommitterOptions } from "./committer.ts";
import { createCommitter } from "./committer.ts";
import { loadFacts, nothingWanted } from "./facts.ts";
import { startForgetting } from "./forget-state.ts";
import { createHoldWatch } from "./hold-watch.ts";
import { mayBeFrozen } from "./holds.ts";
import { factAccess, registerFactRoutes } from "./fact-routes.ts";
import type { HookOrigin } from "./hook-translation.ts";
import {
  isGating,
  ofCaller,
  toHookWork,
  toOversizedWork,
  toOwnWork,
  toUnseenRuntime,
  translateBody,
} from "./hook-translation.ts";
import { toRefusalText, toUnreadRefusal } from "./hook-refusal.ts";
import type { HookOutcome, HookWork } from "./hook-work.ts";
import { localAccess, registerLocalRoutes } from "./local-routes.ts";
import { startSeenClients } from "./seen-clients.ts";
import { registerSessionRoutes, sessionAccess } from "./session-routes.ts";
import type { RequestSurroundings } from "./operands.ts";
import { readSurroundings } from "./operands.ts";
import { decide, gateSteps } from "./stages/decide.ts";
import type { Policy } from "./policy/policy.ts";
import { emptyFacts, mayPassUnrecorded, toUnrecordedRuling } from "./unavailable.ts";
import { openUnavailableSpool } from "./unavailable-spool.ts";
import { createThrottle } from "./throttle/throttle.ts";
import { startThrottleNotes } from "./throttle/throttle-notes.ts";
import type { ThrottleRule } from "./throttle/throttle-rules.ts";
import { createUnknownFieldsNote } from "./unknown-fields-note.ts";
import { createWatchedDecide } from "./watched-decide.ts";

export interface GateOptions extends CommitterOptions {
  readonly authenticator: Authenticator;
  /** By the name in `/v1/hooks/<runtime>`. */
  readonly adapters: ReadonlyMap<string, Adapter>;
  /** Whole time of a decision; default 250 ms. */
  readonly budgetMs?: number;
  /** Whole time of a record that nobody waits for; default 2 s. */
  readonly observeBudgetMs?: number;
  /** What one decision may compute, waiting not counted; default 100 ms. */
  readonly decideLimitMs?: number;
  /** Default: `performance.now`. */
  readonly monotonicMs?: () => number;
  readonly bodyLimitBytes?: number;
  /** The gate runs where the agent does: it reads the files that a call would run, and follows links. Default: false. */
  readonly isOnAgentsMachine?: boolean;
  /** Limits on observing events; absent: none. */
  readonly throttle?: readonly ThrottleRule[];
  /** Where reads are kept that pass while the database is away; absent: none pass. */
  readonly spoolFile?: string;
  /** A stored policy by its revision; null: there is none. */
  readonly policyOf?: (revision: string) => Promise<Policy | null>;
  /** Signs rights for those who ask in the gate's own language. */
  readonly signer: CapabilitySigner;
  /** For `/readyz`; default: up. */
  readonly policyState?: () => Awaited<ReturnType<Probe>>;
  /** Further routes of the gate's room, and who may call them. */
  readonly more?: { readonly access: AccessTable; register(app: HttpServer): void };
  /** Further dependencies for `/readyz`. */
  readonly probes?: Readonly<Record<string, Probe>>;
}

export interface Gate {
  readonly app: HttpServer;
  /** Stops taking calls, answers the ones that wait, then resolves. */
  close(): Promise<void>;
}

/** DESIGN's budget of a local decision; a person notices more. */
const defaultBudgetMs = 250;
/** A hundred times what a decision takes once the gate is warm. */
const defaultDecideLimitMs = 100;
/** An observing hook blocks nobody, but its shim waits to know whether to spool. */
const defaultObserveBudgetMs = 2_000;

const access: AccessTable = {
  "POST /v1/hooks/:runtime": ["runtime"],
  "POST /v1/gate/decide": ["runtime"],
};

const traceparentPattern = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

/** The gate's HTTP side. It is not listening yet: `app.listen`. */
export function createGate(options: GateOptions): Gate {
  const { adapters, clock, log, metrics } = options;
  const monotonicMs = options.monotonicMs ?? (() => performance.now());
  const once = createClassifyOnce(createRememberingClassify(options.classify, monotonicMs), monotonicMs);
  const { classify } = once;
  const budgetMs = options.budgetMs ?? defaultBudgetMs;
  const observeBudgetMs = options.observeBudgetMs ?? defaultObserveBudgetMs;
  const holds = options.holds ?? createHoldWatch(options);
  const committer = createCommitter({
    ...options,
    holds,
    classify,
    decide:
      options.decide ??
      createWatchedDecide({
        steps: gateSteps,
        monotonicMs,
        limitMs: options.decideLimitMs ?? defaultDecideLimitMs,
        classifyMs: once.costMs,
        metrics,
      }),
  });
  const decided = metrics.counter("fabric_gate_decisions_total", "decisions", [
    "decision",
    "reason",
    "effect",
    "repeated",
  ]);
  const seconds = metrics.histogram(
    "fabric_gate_decision_seconds",
    "time from the payload to its durable answer",
    ["kind"],
  );
  const noteUnknownFields = createUnknownFieldsNote(log, metrics);
  const refused = metrics.counter("fabric_gate_hook_refusals_total", "hook calls refused without a record", [
    "runtime",
    "code",
  ]);
  /** Requests that were read, and before which no tool waits. */
  const nothingWaits = new WeakSet<HttpRequest>();
  const spool =
    options.spoolFile === undefined
      ? null
      : openUnavailableSpool({
          file: options.spoolFile,
          keys: options.keys,
          log,
          record: (work) => committer.submit(work, observeBudgetMs),
        });
  const passed = metrics.counter(
    "fabric_gate_unrecorded_total",
    "reads that passed while nothing could be recorded",
  );
  const app = createHttpServer({
    log,
    metrics,
    authenticator: options.authenticator,
    access: {
      ...access,
      ...capabilityAccess,
      ...approvalAccess,
      ...factAccess,
      ...localAccess,
      ...sessionAccess,
      ...options.more?.access,
    },
    answerFault: refuseHook,
    ...(options.bodyLimitBytes === undefined ? {} : { bodyLimitBytes: options.bodyLimitBytes }),
    probes: {
      postgres: async () => {
        await options.database.query("SELECT 1");
        return { state: "up" };
      },
      policy: () =>
        Promise.resolve(options.policyState?.() ?? { state: "up", detail: options.policy().revision }),
      ...options.probes,
    },
  });

  // The first call does not pay for the first connection; a database that is away is no reason not to start.
  app.addHook("onReady", async () => {
    await loadFacts(options.database, nothingWanted).catch(() => undefined);
    holds.start();
  });

  registerCapabilityRoutes(app, {
    ...options,
    policy: createPolicyOfNow({
      ...options,
      current: options.policy,
      judge: ({ request, facts, operands, realPaths }, policy) =>
        decide(request, facts, policy, {
          classify: withRealPaths(classify, realPaths),
          operands: operands ?? [],
        }),
    }),
  });
  registerApprovalRoutes(app, options);
  registerFactRoutes(app, options.database);
  registerLocalRoutes(app, {
    ...options,
    classify,
    toOrigin,
    async tenantState(tenantId) {
      const found = await options.database.query<{ state: "active" | "frozen"; version: bigint }>(
        "SELECT state, version FROM access.tenants WHERE tenant_id = $1",
        [tenantId],
      );
      const [row] = found.rows;
      if (row === undefined) return null;
      const tenant = { state: row.state, version: Number(row.version) };
      const holdsOf = await holds.at(new Map([[tenantId, tenant]]));
      // A profile is given for all that an agent does: whatever an incident froze of the tenant, there is none.
      return mayBeFrozen(holdsOf(tenantId), clock.nowMs()) ? "frozen" : row.state;
    },
    record: (work, policy) => committer.submit(work, observeBudgetMs, undefined, policy),
  });
  registerSessionRoutes(app, {
    database: options.database,
    runtimeOf(runtime) {
      const adapter = adapters.get(runtime);
      return adapter === undefined ? null : toUnseenRuntime(adapter);
    },
    toOrigin,
    record: (work) => committer.submit(work, observeBudgetMs),
  });
  options.more?.register(app);
  const throttle = createThrottle(options.throttle ?? []);
  const seen = startSeenClients(options);
  const sweepers = [
    seen,
    startExpiringApprovals(options),
    startExpiring(options),
    startForgetting(options),
    startThrottleNotes({ ...options, throttle }),
  ];

  app.post<{ Params: { runtime: string }; Body: ReceivedBody }>(
    "/v1/hooks/:runtime",
    { config: { rawBody: true } },
    async (request, reply) => {
      const adapter = adapters.get(request.params.runtime);
      if (adapter === undefined) throw new Fault("RUNTIME_UNKNOWN");
      const { raw } = bodyOf(request);
      const translation = translateBody(adapter, raw);
      const origin = toOrigin(request);
      const isAsking = isGating(translation);
      const hooks = request.headers["x-fabric-hooks"];
      seen.note({ ...origin, runtime: adapter.runtime, hooks, isAsking }, clock.nowMs());
      if (!isAsking) nothingWaits.add(request);
      let answered: RuntimeReply;
      try {
        answered = await answerHook(adapter, translation, raw, origin);
      } catch (error) {
        if (nothingWaits.has(request)) throw error;
        // An error of ours is a no in the form of the runtime's event.
        log.error({ requestId: request.id, reason: maskText(String(error)) }, "a gated hook failed");
        answered = adapter.toReply(translation, null);
      }
      return sendHookReply(reply, answered);
    },
  );

  /** Faults of a hook route, once the runtime is known. An observing call that was read may fail: no tool waits for it. */
  function refuseHook(request: HttpRequest, reply: HttpReply, fault: Fault): boolean {
    if (request.routeOptions.url !== "/v1/hooks/:runtime" || nothingWaits.has(request)) return false;
    const adapter = adapters.get((request.params as { readonly runtime: string }).runtime);
    if (adapter === undefined) return false;
    noteRefusal(adapter, fault.code);
    if (fault.code === "BODY_TOO_LARGE") recordOversized(adapter, request);
    void sendHookReply(reply, toUnreadRefusal(adapter, fault));
    return true;
  }

  /** A call or a result that nobody took in leaves a trace: whoever looks for its end finds why there is none. */
  function recordOversized(adapter: Adapter, request: HttpRequest): void {
    const stated = Number(request.headers["content-length"]);
    const bytes = Number.isSafeInteger(stated) ? stated : (options.bodyLimitBytes ?? defaultBodyLimitBytes);
    const note = JSON.stringify({
      request: request.id,
      body_bytes: bytes,
      kept: "not the body: past the limit",
    });
    const work = toOversizedWork(adapter, bytes, note, toOrigin(request));
    void committer.submit(work, observeBudgetMs).then(({ kind }) => {
      if (kind !== "recorded")
        log.error({ requestId: request.id, kind }, "an oversized body is not on record");
    });
  }

  function noteRefusal(adapter: Adapter, code: FaultCode): void {
    refused.add({ runtime: adapter.runtime, code });
    log.warn({ runtime: adapter.runtime, code }, "a hook was refused without a record");
  }

  async function answerHook(
    adapter: Adapter,
    translation: Translation,
    raw: Buffer,
    origin: HookOrigin,
  ): Promise<RuntimeReply> {
    noteUnknownFields(adapter, translation);
    const startedMs = performance.now();
    const limitMs = translation.kind === "gated" ? budgetMs : observeBudgetMs;
    const work = toHookWork(translation, raw, origin);
    if (translation.kind === "observed") {
      const word = throttle.judge(work, clock.nowMs());
      if (word.kind === "omit") return adapter.toReply(translation, null);
      if (word.kind === "delay") await sleep(word.delayMs);
    }
    const outcome = await orUnrecorded(
      await committer.submit(work, limitMs, await around(work.request)),
      work,
    );
    seconds.observe((performance.now() - startedMs) / 1000, { kind: translation.kind });
    if (outcome.kind === "tenant_unknown" && !isGating(translation)) throw new Fault("TENANT_UNKNOWN");
    return toRuntimeReply(adapter, translation, outcome, work);
  }

  app.post<{ Body: ReceivedBody }>("/v1/gate/decide", async (request, reply) => {
    const { raw, json } = bodyOf(request);
    const parsed = parseInput(gateRequestSchema, json, "body");
    // The input as it came: the parser drops a key named `__proto__`, and what is judged has to be what would run.
    const origin = toOrigin(request);
    const input = (json as { input: JsonObject }).input;
    const asked = ofCaller(Object.assign(parsed, { input }), origin);
    seen.note({ ...origin, runtime: asked.runtime, hooks: null, isAsking: true }, clock.nowMs());
    const startedMs = performance.now();
    const work = toOwnWork(asked, classify(asked, options.policy()), raw, origin);
    const outcome = await orUnrecorded(await committer.submit(work, budgetMs, await around(asked)), work);
    seconds.observe((performance.now() - startedMs) / 1000, { kind: "own" });
    if (outcome.kind === "tenant_unknown") throw new Fault("TENANT_UNKNOWN");
    return reply.send(withToken(toCountedAnswer(outcome, work.tenantId, asked), work, asked));
  });

  /** The signed form of the answer's right. Its row is stored; the token is made anew each time, and is the same each time. */
  function withToken(answer: GateAnswer, work: HookWork, asked: GateRequest): GateAnswer {
    const { capability, plan_digest: planDigest, modified_input: input } = answer;
    if (capability === undefined || planDigest === null) return answer;
    const run = input === undefined ? asked : Object.assign({}, asked, { input });
    const expiresAtMs = Date.parse(capability.expires_at);
    const claims = toClaims({
      capabilityId: capability.id,
      tenantId: work.tenantId,
      runtime: work.runtime.kind,
      sessionId: asked.session_id,
      tool: asked.tool,
      resource: classify(run, options.policy()).resource,
      planDigest,
      constraints: answer.constraints,
      maxCalls: answer.constraints.max_calls ?? 1,
      policyRevision: answer.policy_revision,
      issuedAtMs: expiresAtMs - capabilityTtlMs,
      expiresAtMs,
    });
    const token = options.signer.sign(claims);
    return Object.assign({}, answer, { capability: Object.assign({}, capability, { token }) });
  }

  /**
   * Reading goes on when a decision cannot be recorded in time; everything else is denied.
   * INVARIANT: nothing with an effect passes unrecorded (test/integration/gate-unavailable.test.ts).
   */
  async function orUnrecorded(outcome: HookOutcome, work: HookWork): Promise<HookOutcome> {
    if (spool === null || work.request === null || outcome.kind !== "failed") return outcome;
    if (outcome.code !== "GATE_TIMEOUT" && outcome.code !== "DATABASE_UNAVAILABLE") return outcome;
    if (!committer.wasActive(work.tenantId)) return outcome;
    if (mayBeFrozen(holds.lastSeen(work.tenantId), clock.nowMs())) return outcome;
    const { request, tenantId } = work;
    const policy = options.policy();
    const nowMs = clock.nowMs();
    const operands: readonly Operand[] = [];
    const { environment } = options;
    const call = { request, tenantId, environment, nowMs, policy, classify, operands, decide };
    if (!mayPassUnrecorded(call)) return outcome;
    const told = { decisionId: `dec_${newUuidV7(nowMs)}`, atMs: nowMs };
    if (!(await spool.add({ ...work, told }))) return outcome;
    passed.add({});
    log.warn(
      { tenant: tenantId, tool: request.tool, decisionId: told.decisionId, code: outcome.code },
      "a read passed unrecorded; it is in the spool",
    );
    const ruling = toUnrecordedRuling(decide(request, emptyFacts(call), policy, { classify, operands }));
    const answer = toAnswer(ruling, request, {
      decisionId: told.decisionId,
      capabilityId: "",
      approvalId: "",
      correlationId: toCorrelationId(toSessionKey(tenantId, work.runtime.kind, request.session_id)),
      nowMs,
      policyRevision: policy.revision,
    });
    return { kind: "answered", answer };
  }

  /** What lies around a call on the agent's machine, where the gate can look. */
  async function around(request: GateRequest | null): Promise<RequestSurroundings | undefined> {
    if (request === null || options.isOnAgentsMachine !== true) return undefined;
    return readSurroundings(classify(request, options.policy()));
  }

  /** What the runtime is told. A failure is a refusal where an effect waits, and 503 where nothing does. */
  function toRuntimeReply(
    adapter: Adapter,
    translation: Translation,
    outcome: HookOutcome,
    { tenantId, request }: HookWork,
  ): RuntimeReply {
    switch (translation.kind) {
      case "gated": {
        const asked = request ?? translation.request;
        if (outcome.kind === "tenant_unknown") {
          noteRefusal(adapter, "TENANT_UNKNOWN");
          return adapter.toReply(translation, {
            ...toUnrecorded(outcome, tenantId, asked),
            reason_code: "TENANT_UNKNOWN",
            message: toRefusalText("TENANT_UNKNOWN").slice("TENANT_UNKNOWN: ".length),
          });
        }
        return adapter.toReply(translation, toCountedAnswer(outcome, tenantId, asked));
      }
      case "unrecognized": {
        const { problem, gating } = translation.draft.redacted_summary;
        if (outcome.kind === "tenant_unknown") {
          noteRefusal(adapter, "TENANT_UNKNOWN");
          return adapter.toRefusal(translation.eventName, toRefusalText("TENANT_UNKNOWN"));
        }
        if (outcome.kind === "failed" && !gating) throw new Fault(outcome.code);
        const why = `PAYLOAD_UNRECOGNIZED: the ${adapter.runtime} adapter ${adapter.version} does not understand this payload (${problem})`;
        return adapter.toRefusal(translation.eventName, why);
      }
      case "observed":
        if (outcome.kind === "failed") throw new Fault(outcome.code);
        return adapter.toReply(translation, null);
    }
  }

  function toCountedAnswer(outcome: HookOutcome, tenantId: string, request: GateRequest): GateAnswer {
    const answer = outcome.kind === "answered" ? outcome.answer : toUnrecorded(outcome, tenantId, request);
    decided.add({
      decision: answer.decision,
      reason: answer.reason_code,
      effect: classify(request, options.policy()).effect,
      repeated: String(answer.repeated),
    });
    return answer;
  }

  function toUnrecorded(outcome: HookOutcome, tenantId: string, request: GateRequest): GateAnswer {
    return toUnrecordedRefusal(toReason(outcome), {
      decisionId: `dec_${newUuidV7(clock.nowMs())}`,
      correlationId: toCorrelationId(toSessionKey(tenantId, request.runtime, request.session_id)),
      policyRevision: options.policy().revision,
    });
  }

  return {
    app,
    async close() {
      await app.close();
      await spool?.close();
      await committer.close();
      await holds.close();
      for (const one of sweepers) await one.stop();
    },
  };
}

const reasonOfFault: Readonly<Partial<Record<FaultCode, ReasonCode>>> = {
  GATE_TIMEOUT: "GATE_TIMEOUT",
  DATABASE_CONFLICT: "CONFLICT",
  OVERLOADED: "OVERLOADED",
};

function toReason(outcome: HookOutcome): ReasonCode {
  return (outcome.kind === "failed" ? reasonOfFault[outcome.code] : undefined) ?? "GATE_UNAVAILABLE";
}

function toOrigin(request: Pick<HttpRequest, "caller" | "headers">): HookOrigin {
  const { tenantId, subject } = callerOf(request);
  const traceparent = request.headers["traceparent"];
  return {
    tenantId,
    subject,
    traceparent: typeof traceparent === "string" && traceparentPattern.test(traceparent) ? traceparent : null,
  };
}

function sendHookReply(reply: HttpReply, answered: RuntimeReply): HttpReply {
  const { status, headers, body } = toHookReplyForm(answered, reply.request.headers.accept);
  reply.code(status).headers(headers);
  return body === null ? reply.send() : reply.send(body);
}
