import type { Envelope } from "../../../schemas/envelope.ts";
import type { Clock } from "../../platform/clock.ts";
import { newEventId, toUuid } from "../../platform/ids.ts";
import type { Log } from "../../platform/log.ts";
import type { EventEncoder } from "../../platform/outbox.ts";
import { appendOutbox, notifyOutbox, toOutboxRows } from "../../platform/outbox.ts";
import type { Tx } from "../../platform/postgres.ts";
import { toRevokedEvent } from "../capability/capability-events.ts";
import type { CapabilityState } from "../capability/capability-state.ts";
import { stateColumns, stateJoins, toCapabilityState } from "../capability/capability-state.ts";
import type { Policy } from "../policy/policy.ts";
import type { JudgeRecord } from "../simulate.ts";
import type { RecordedSource } from "../simulate-source.ts";
import { loadRecordedDecisions, uuidFloor } from "../simulate-source.ts";

export interface RightsEnderOptions extends RecordedSource {
  readonly codec: EventEncoder;
  readonly clock: Clock;
  readonly log: Log;
  readonly judge: JudgeRecord;
}

/** Ends live rights whose plans a newly activated policy denies. */
export interface RightsEnder {
  /** In the activation's own transaction, the newest rights first, up to a bound; returns the events of those ended. */
  endWithin(tx: Tx, policy: Policy): Promise<readonly Envelope[]>;
  /** The rest, after the commit, a batch at a time. Returns at once. */
  endLater(revision: string): void;
  /** Resolves when nothing is under way. */
  close(): Promise<void>;
}

const batchRows = 200;
/** Rights that an activation judges before it commits; judging one takes a fraction of a millisecond. */
const withinMax = 2_000;
/** Live rights were issued within the longest life of one, see the constraint of their table, and clocks differ. */
const aliveForMs = 3_900_000;
const aliveText = `c.issued_at > clock_timestamp() - interval '1 hour' AND c.revoked_at IS NULL
  AND c.expires_at > clock_timestamp() AND c.calls_used < c.max_calls`;
const lastUuid = "ffffffff-ffff-ffff-ffff-ffffffffffff";

/**
 * Rights are judged again on the facts that they were decided on. One whose decision cannot be read again is left to its
 * next use, which is refused then; and so is, until its batch, every right that is not judged within the activation.
 * INVARIANT: no right of a denied plan is used after the activation (test/integration/policy-rights.test.ts).
 */
export function createRightsEnder(options: RightsEnderOptions): RightsEnder {
  const { database, codec, clock, environment, judge, log } = options;
  let before = lastUuid;
  let later: Policy | null = null;
  let running: Promise<void> = Promise.resolve();
  let closed = false;

  /** One batch, from the newest on; null: none is left. */
  async function endBatch(
    tx: Tx,
    policy: Policy,
    from: string,
  ): Promise<{ readonly events: readonly Envelope[]; readonly oldest: string } | null> {
    const found = await tx.query({
      text: `SELECT ${stateColumns} FROM gate.capabilities AS c ${stateJoins}
        WHERE ${aliveText} AND c.policy_revision <> $1 AND c.capability_id < $2::uuid
          AND c.capability_id > $3::uuid
        ORDER BY c.capability_id DESC LIMIT ${String(batchRows)}`,
      values: [policy.revision, from, uuidFloor(clock.nowMs() - aliveForMs)],
    });
    const states = found.rows.map(toCapabilityState);
    const last = states.at(-1);
    if (last === undefined) return null;
    const denied = await findDenied(states, policy);
    const revoked = await revoke(tx, denied, `policy ${policy.revision} denies the plan`);
    const nowMs = clock.nowMs();
    const events = denied
      .filter((state) => revoked.has(toUuid(state.capabilityId)))
      .map((state) =>
        toRevokedEvent(
          state,
          { reason: `policy ${policy.revision} denies the plan`, scope: "capability", revokedBy: null },
          { eventId: newEventId(clock), nowMs, environment },
        ),
      );
    return { events, oldest: toUuid(last.capabilityId) };
  }

  async function findDenied(
    states: readonly CapabilityState[],
    policy: Policy,
  ): Promise<readonly CapabilityState[]> {
    const lines = await loadRecordedDecisions(
      options,
      states.map(({ decisionId }) => decisionId),
    );
    return states.filter(({ decisionId }) => {
      const line = lines.get(decisionId);
      return line?.kind === "decision" && judge(line.record, policy).decision === "deny";
    });
  }

  async function endRest(policy: Policy): Promise<void> {
    for (let from = before; !closed;) {
      const batch = await database.transaction(async (tx) => {
        const ended = await endBatch(tx, policy, from);
        if (ended !== null) await appendOutbox(tx, toOutboxRows(codec, ended.events));
        return ended;
      });
      if (batch === null) return;
      if (batch.events.length > 0) notifyOutbox(database);
      from = batch.oldest;
    }
  }

  return {
    async endWithin(tx, policy) {
      const events: Envelope[] = [];
      before = lastUuid;
      later = policy;
      for (let judged = 0; judged < withinMax; judged += batchRows) {
        const batch = await endBatch(tx, policy, before);
        if (batch === null) {
          later = null;
          break;
        }
        events.push(...batch.events);
        before = batch.oldest;
      }
      return events;
    },
    endLater(revision) {
      const policy = later;
      if (policy?.revision !== revision) return;
      later = null;
      running = running
        .then(() => endRest(policy))
        .catch((error: unknown) => {
          // They are refused at their next use all the same: each use asks the policy in force.
          log.warn({ revision, reason: String(error) }, "rights of denied plans could not be ended ahead");
        });
    },
    async close() {
      closed = true;
      await running;
    },
  };
}

/** Ends the rights that are still alive, and returns their ids: a use may have come first. */
async function revoke(
  tx: Tx,
  states: readonly CapabilityState[],
  reason: string,
): Promise<ReadonlySet<string>> {
  if (states.length === 0) return new Set();
  const done = await tx.query<{ capability_id: string }>({
    text: `UPDATE gate.capabilities SET revoked_at = clock_timestamp(), revoked_by = 'fabric', revoke_reason = $2
      WHERE capability_id IN (SELECT capability_id FROM gate.capabilities
          WHERE capability_id = ANY ($1::uuid[]) AND revoked_at IS NULL ORDER BY capability_id FOR UPDATE)
      RETURNING capability_id`,
    values: [states.map((one) => toUuid(one.capabilityId)).sort(), reason],
  });
  return new Set(done.rows.map((row) => row.capability_id));
}
