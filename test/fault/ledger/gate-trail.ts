import type { Database } from "../../../services/platform/postgres.ts";
import { toUuid } from "../../../services/platform/ids.ts";
import type { CellReport } from "./cell-report.ts";
import { gateLedgerTypes } from "./gate-ledger-processor.ts";
import type { GateTraffic } from "./gate-traffic.ts";

/** What callers were told and resources did, against the gate's tables, its topics and a projection. All have to be zero. */
export interface GateTrail {
  /** Calls without a decision, and answers that told a caller to go on and that no decision holds. */
  readonly undecided: number;
  readonly toldWithoutDecision: number;
  /** Calls with more than one decision. */
  readonly decidedTwice: number;
  /** Decisions whose payload the vault has not. */
  readonly withoutEvidence: number;
  /** Events that a decision has to have, and neither topic nor outbox hold. */
  readonly eventsMissing: number;
  /** Facts that are told by two events. */
  readonly toldTwice: number;
  readonly missingInProjection: number;
  readonly doubledInProjection: number;
  readonly spentTwice: number;
  readonly notCarriedOut: number;
  readonly carriedOutTwice: number;
  /** Intents that did not end by the deadline. */
  readonly stuck: number;
}

export const cleanTrail: GateTrail = {
  undecided: 0,
  toldWithoutDecision: 0,
  decidedTwice: 0,
  withoutEvidence: 0,
  eventsMissing: 0,
  toldTwice: 0,
  missingInProjection: 0,
  doubledInProjection: 0,
  spentTwice: 0,
  notCarriedOut: 0,
  carriedOutTwice: 0,
  stuck: 0,
};

/** The same as a line of the ledger. */
export function toTrailVerdict(trail: GateTrail, committed: number): CellReport["verdict"] {
  return {
    committed,
    lost:
      trail.undecided +
      trail.toldWithoutDecision +
      trail.withoutEvidence +
      trail.eventsMissing +
      trail.missingInProjection +
      trail.notCarriedOut,
    doubled:
      trail.decidedTwice +
      trail.toldTwice +
      trail.doubledInProjection +
      trail.spentTwice +
      trail.carriedOutTwice,
    outOfOrder: 0,
    stuck: trail.stuck,
    setAside: 0,
    repeatedOnTopic: 0,
  };
}

/** Makes the table of the projection that is compared. */
export async function prepareGateLedger(sql: Database): Promise<void> {
  await sql.query(`
    CREATE SCHEMA ledger;
    CREATE TABLE ledger.told (event_id text NOT NULL, type text NOT NULL, tool_call_id text);
    GRANT USAGE ON SCHEMA ledger TO fabric_host;
    GRANT SELECT, INSERT ON ledger.told TO fabric_host;`);
}

/** One event as a topic holds it. */
export interface ToldEvent {
  readonly id: string;
  readonly type: string;
  readonly capabilityId: string | null;
  readonly call: string | null;
}

interface DecisionLine {
  readonly call: string;
  readonly requested: string;
  readonly capability: string | null;
  readonly has_evidence: boolean;
}

/** Compares when everything is through. `events`: all that the topics hold, repeats included. */
export async function compareGateTrail(settings: {
  readonly sql: Database;
  readonly traffic: GateTraffic;
  readonly done: ReadonlyMap<string, number>;
  readonly events: readonly ToldEvent[];
  readonly isThrough: boolean;
}): Promise<GateTrail> {
  const { sql, traffic, done, isThrough } = settings;
  const { rows: decisions } = await sql.query<DecisionLine>(`
    SELECT d.request ->> 'tool_call_id' AS call, 'evt_' || d.requested_event_id AS requested, c.capability_id::text AS capability,
      (SELECT count(*) FROM vault.evidence e
        WHERE e.evidence_id::text IN (right(d.payload_ref, 36), right(coalesce(d.request_ref, d.payload_ref), 36)))
      = CASE WHEN d.request_ref IS NULL THEN 1 ELSE 2 END AS has_evidence
    FROM gate.decisions d LEFT JOIN gate.capabilities c USING (decision_id)`);
  const { rows: spends } = await sql.query<{ uses: bigint }>(
    "SELECT count(*) AS uses FROM gate.capability_spends GROUP BY capability_id",
  );
  const { rows: projected } = await sql.query<{ id: string; n: bigint }>(
    "SELECT event_id AS id, count(*) AS n FROM ledger.told GROUP BY event_id",
  );
  const ofCall = new Map<string, DecisionLine[]>();
  for (const one of decisions) ofCall.set(one.call, [...(ofCall.get(one.call) ?? []), one]);
  const events = new Map(settings.events.map((one) => [one.id, one]));
  /** Fact, as type and what it is of → events that tell it. */
  const told = new Map<string, number>();
  for (const one of events.values()) {
    const fact = `${one.type} ${one.capabilityId?.replace(/^cap_/, "") ?? one.call ?? ""}`;
    told.set(fact, (told.get(fact) ?? 0) + 1);
  }
  const inProjection = new Map(projected.map(({ id, n }) => [id, Number(n)]));
  const rights = new Set(decisions.map(({ capability }) => capability));
  const wanted = [...traffic.begun].map((id) => `${id}/1`);
  const ofRight = gateLedgerTypes.filter((type) =>
    type === "agent.capability.spent" ? isThrough : type !== "agent.tool.requested",
  );
  const sum = <T>(all: Iterable<T>, read: (one: T) => number | boolean): number =>
    [...all].reduce((total, one) => total + Number(read(one)), 0);
  return {
    undecided: isThrough ? sum(wanted, (call) => !ofCall.has(call)) : 0,
    toldWithoutDecision: sum(traffic.allowed.values(), (id) => !rights.has(toUuid(id))),
    decidedTwice: sum(ofCall.values(), ({ length }) => length - 1),
    withoutEvidence: sum(decisions, (one) => !one.has_evidence),
    eventsMissing:
      sum(decisions, ({ requested }) => !events.has(requested)) +
      sum(decisions, ({ capability }) => sum(ofRight, (type) => !told.has(`${type} ${capability ?? ""}`))),
    toldTwice: sum(told.values(), (n) => n - 1),
    missingInProjection: sum(events.keys(), (id) => !inProjection.has(id)),
    doubledInProjection: sum(inProjection.values(), (n) => n - 1),
    spentTwice: sum(spends, ({ uses }) => Number(uses) - 1),
    notCarriedOut: sum(traffic.ended.keys(), (id) => !done.has(id)),
    carriedOutTwice: sum(done.values(), (n) => n - 1),
    stuck: isThrough ? 0 : traffic.pending().length,
  };
}
