import type { FaultCode } from "../../schemas/faults.ts";
import type { Clock } from "../platform/clock.ts";
import { classify as classifyFault } from "../platform/classify.ts";
import type { Log } from "../platform/log.ts";
import { maskText } from "../platform/mask.ts";
import type { Metrics } from "../platform/metrics.ts";
import type { EventEncoder } from "../platform/outbox.ts";
import type { Database } from "../platform/postgres.ts";
import type { TenantKeys } from "../platform/vault-seal.ts";
import { sealPayload } from "../platform/vault-seal.ts";
import type { Classify } from "./classified.ts";
import type { TenantFacts } from "./facts.ts";
import type { CommitSteps } from "./commit-steps.ts";
import { createCommitSteps } from "./commit-steps.ts";
import type { LateCall } from "./group-commit.ts";
import { commitGroup } from "./group-commit.ts";
import { createGroupQueue } from "./group-queue.ts";
import type { HoldWatch } from "./hold-watch.ts";
import { createHoldWatch } from "./hold-watch.ts";
import type { HookOutcome, HookWork } from "./hook-work.ts";
import type { QueuedCall } from "./queued-call.ts";
import { isStillOpen, toQueuedCall } from "./queued-call.ts";
import type { RequestSurroundings } from "./operands.ts";
import type { Policy } from "./policy/policy.ts";
import { revokeStatement } from "./revoke-statement.ts";
import type { Decide } from "./stages/decide.ts";
import { decide } from "./stages/decide.ts";

export interface CommitterOptions {
  readonly database: Database;
  readonly codec: EventEncoder;
  readonly keys: TenantKeys;
  /** The policy in force; each call takes it once. */
  readonly policy: () => Policy;
  readonly classify: Classify;
  readonly clock: Clock;
  readonly environment: string;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Default: the gate's own. */
  readonly decide?: Decide;
  /** Default: one of its own, which follows what decisions ask for. */
  readonly holds?: HoldWatch;
  /** What a test puts in place of the steps. */
  readonly steps?: (live: CommitSteps) => CommitSteps;
  readonly maxGroup?: number;
  readonly maxInFlight?: number;
  readonly maxWaiting?: number;
  readonly eventMaxBytes?: number;
}

/** Decides and records in one step: what it answers is committed. */
export interface Committer {
  /** Never rejects. `budgetMs` is the whole time until there is an outcome; past it, GATE_TIMEOUT. */
  submit(
    work: HookWork,
    budgetMs: number,
    around?: RequestSurroundings,
    /** Default: the one in force. */
    policy?: Policy,
  ): Promise<HookOutcome>;
  /** Whether the tenant was active when it was last seen; false: it was not, or never seen. */
  wasActive(tenantId: string): boolean;
  /** Resolves when every call that was submitted has its outcome. */
  close(): Promise<void>;
}

/** What is known of the agent's machine from elsewhere: nothing. */
const noSurroundings: RequestSurroundings = { operands: [], realPaths: new Map() };

/** Most calls of one commit: beyond it a commit takes longer than the calls gain by sharing it. */
const defaultMaxGroup = 64;
/** While groups are on the wire, the next one is decided. */
const defaultMaxInFlight = 4;
/** Between the starts of two groups while few calls wait: a fraction of what a decision takes, and half of its work saved. */
const paceMs = 3;
const paceSize = 8;
/** Behind a group that takes longer (a lock, a slow disk) nobody waits: a fraction of the budget. */
const slowGroupMs = 25;
/** About a second of work; what comes on top would only time out. */
const defaultMaxWaiting = 2_048;
const maxAttempts = 3;
/** Below the broker's `message.max.bytes` (1 MiB), with room for headers and the batch. */
const defaultEventMaxBytes = 900_000;
/** How long past its budget a caller waits for the answer to a commit that is on the wire: a slow disk, not an outage. */
const commitGraceMs = 1_000;
/** Larger payloads go to the vault by themselves, so that they do not weigh on the group's commit. */
const inlineMaxBytes = 65_536;

export function createCommitter(options: CommitterOptions): Committer {
  const { database, keys, log, metrics } = options;
  const active = new Set<string>();
  const liveSteps = createCommitSteps(database);
  const steps = options.steps?.(liveSteps) ?? liveSteps;
  const commit = {
    ...options,
    steps,
    decide: options.decide ?? decide,
    holds: options.holds ?? createHoldWatch(options),
    onTenants: (tenants: ReadonlyMap<string, TenantFacts>): void => {
      for (const [tenantId, { state }] of tenants) {
        if (state === "active") active.add(tenantId);
        else active.delete(tenantId);
      }
    },
    maxAttempts,
    eventMaxBytes: options.eventMaxBytes ?? defaultEventMaxBytes,
  };
  const sizes = metrics.histogram(
    "fabric_gate_group_size",
    "calls that shared a commit",
    [],
    [1, 2, 4, 8, 16, 32, 64],
  );
  const retries = metrics.counter("fabric_gate_retries_total", "calls decided again, by cause", ["cause"]);
  const late = metrics.counter("fabric_gate_late_total", "calls committed after their caller was told no");
  const remarks = metrics.counter(
    "fabric_gate_result_remarks_total",
    "results that do not fit what was decided on their call, by the event that says so",
    ["type"],
  );
  const maxWaiting = options.maxWaiting ?? defaultMaxWaiting;
  /** Calls whose large payload is being stored: they will queue, and count as if they did. */
  let storing = 0;
  const queue = createGroupQueue<QueuedCall>({
    maxGroup: options.maxGroup ?? defaultMaxGroup,
    maxInFlight: options.maxInFlight ?? defaultMaxInFlight,
    paceMs,
    paceSize,
    slowMs: slowGroupMs,
    maxWaiting,
    run: (group) => runGroup(group),
  });
  metrics.gauge("fabric_gate_queue_depth", "calls that wait for a commit", [], (set) =>
    set(queue.waiting + storing),
  );

  function submit(
    work: HookWork,
    budgetMs: number,
    around: RequestSurroundings = noSurroundings,
    policy: Policy = options.policy(),
  ): Promise<HookOutcome> {
    return new Promise((resolve) => {
      let call: QueuedCall | null = null;
      const deadlineMs = performance.now() + budgetMs;
      const answer = (outcome: HookOutcome): void => {
        if (call?.isSettled === true) return;
        if (call !== null) call.isSettled = true;
        clearTimeout(timer);
        resolve(outcome);
      };
      const giveUp = (): void => answer({ kind: "failed", code: "GATE_TIMEOUT" });
      let timer = setTimeout(() => {
        if (call?.isCommitting === true) timer = setTimeout(giveUp, commitGraceMs);
        else giveUp();
      }, budgetMs);
      try {
        const { classify, environment } = options;
        const context = { policy, classify, environment, around };
        call = toQueuedCall(work, context, { deadlineMs, answer });
        enqueue(call);
      } catch (error) {
        answer({ kind: "failed", code: toCode(error) });
      }
    });
  }

  function enqueue(call: QueuedCall): void {
    if (queue.waiting + storing >= maxWaiting) call.answer({ kind: "failed", code: "OVERLOADED" });
    else if (call.work.raw.length > inlineMaxBytes) void storeAndPush(call);
    else push(call);
  }

  function push(call: QueuedCall): void {
    if (!call.isSettled && !queue.push(call)) call.answer({ kind: "failed", code: "OVERLOADED" });
  }

  async function storeAndPush(call: QueuedCall): Promise<void> {
    storing += 1;
    try {
      if (!(await putAway(call))) call.answer({ kind: "tenant_unknown" });
    } catch (error) {
      failAll([call], error);
    } finally {
      storing -= 1;
    }
    push(call);
  }

  /**
   * Seals and stores a large payload before it queues. False: the tenant is not served here. Of a call whose caller waits
   * no more nothing further is stored.
   */
  async function putAway(call: QueuedCall): Promise<boolean> {
    const { tenantId, raw, dataClass, request } = call.work;
    const found = await database.query("SELECT 1 FROM access.tenants WHERE tenant_id = $1", [tenantId]);
    if (found.rowCount === 0) return false;
    if (call.isSettled) return true;
    const payload = await sealPayload(keys, { tenantId, bytes: raw, dataClass });
    const rows = [payload.row];
    if (request !== null) {
      const bytes = Buffer.from(JSON.stringify(request), "utf8");
      const exact = await sealPayload(keys, { tenantId, bytes, dataClass: "confidential" });
      rows.push(exact.row);
      call.requestRef = exact.ref;
    }
    if (call.isSettled) return true;
    await steps.store(rows);
    call.payload = { ref: payload.ref, digest: payload.digest, row: null };
    return true;
  }

  async function runGroup(group: readonly QueuedCall[]): Promise<void> {
    const nowMs = performance.now();
    const open = group.filter((call) => isStillOpen(call, nowMs));
    if (open.length === 0) return;
    try {
      const result = await commitGroup(open, commit);
      sizes.observe(result.committed);
      for (const { type } of result.remarks) remarks.add({ type });
      if (result.late.length > 0) await takeBack(result.late);
      again(result.lost, "facts");
      queue.putBack(result.followers);
    } catch (error) {
      await recover(open, error);
    }
  }

  /**
   * Calls that were committed after their caller was told no: nobody holds their rights, so nobody may use them. The
   * decision stays, as the answer to the same call asked again.
   */
  async function takeBack(calls: readonly LateCall[]): Promise<void> {
    late.add({}, calls.length);
    const capabilityIds = calls.flatMap(({ capabilityId }) => (capabilityId === null ? [] : [capabilityId]));
    if (capabilityIds.length === 0) return;
    try {
      await database.query(revokeStatement(capabilityIds, options.clock.nowMs()));
    } catch (error) {
      log.error(
        { code: toCode(error), capabilityIds, reason: maskText(causesOf(error)) },
        "rights of calls that were told no could not be revoked; they end by themselves",
      );
    }
  }

  function again(calls: readonly QueuedCall[], cause: string): void {
    if (calls.length === 0) return;
    for (const call of calls) call.attempts += 1;
    retries.add({ cause }, calls.length);
    queue.putBack(calls);
  }

  /** What a failed commit means: somebody else won, the database is away, or one call spoils it for all. */
  async function recover(group: readonly QueuedCall[], error: unknown): Promise<void> {
    const code = toCode(error);
    if (code === "DATABASE_CONFLICT") {
      const tired = group.filter((call) => call.attempts >= maxAttempts);
      for (const call of tired) call.answer({ kind: "failed", code });
      again(
        group.filter((call) => call.attempts < maxAttempts),
        "transaction",
      );
      return;
    }
    const [first] = group;
    if (code === "RECORD_TOO_LARGE" && group.length === 1 && first?.isTooLarge === false) {
      // INVARIANT: no answer leaves whose events the broker would not take
      // (test/integration/gate-group.test.ts "denies a call whose events the broker would not take, and records it").
      first.isTooLarge = true;
      await runGroup(group);
      return;
    }
    if (group.length === 1 || code === "DATABASE_UNAVAILABLE") {
      failAll(group, error);
      return;
    }
    // INVARIANT: one call that cannot be recorded does not fail its neighbours
    // (test/integration/gate-group.test.ts "fails only the call that cannot be recorded").
    retries.add({ cause: "split" }, group.length);
    const middle = Math.ceil(group.length / 2);
    await runGroup(group.slice(0, middle));
    await runGroup(group.slice(middle));
  }

  function failAll(group: readonly QueuedCall[], error: unknown): void {
    const code = toCode(error);
    log.error(
      { code, calls: group.length, reason: maskText(causesOf(error)) },
      "calls could not be recorded",
    );
    for (const call of group) call.answer({ kind: "failed", code });
  }

  return { submit, wasActive: (tenantId) => active.has(tenantId), close: () => queue.drained() };
}

function toCode(error: unknown): FaultCode {
  return classifyFault(error, "decide").code;
}

/** The messages of an error and its causes. */
function causesOf(error: unknown): string {
  const messages: string[] = [];
  for (let one: unknown = error; one instanceof Error && messages.length < 4; one = one.cause) {
    messages.push(one.message);
  }
  return messages.join(": caused by ");
}
