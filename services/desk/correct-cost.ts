import { draft, toEnvelope } from "../../schemas/envelope.ts";
import { Fault } from "../../schemas/faults.ts";
import { derivedUuid, newEventId } from "../platform/ids.ts";
import { toTextPreview } from "../platform/masked-preview.ts";
import { appendOutbox, notifyOutbox, toOutboxRows } from "../platform/outbox.ts";
import type { Tx } from "../platform/postgres.ts";
import type { DeskDeps } from "./desk-deps.ts";
import { deskRuntime } from "./item-events.ts";

const causeMaxChars = 500;

/** A booked call, as far as a correction of it needs it. */
export interface CorrectedCall {
  /** The account with the dimensions that the call counts in. */
  readonly account: string;
  readonly correlationId: string;
}

/** Finds a booked call of a tenant by its event; handed in, since the tables are the ledger's. */
export type LoadCorrectedCall = (tx: Tx, tenantId: string, eventId: string) => Promise<CorrectedCall | null>;

/** What a person adds to the ledger. */
export interface CostCorrection {
  readonly tenantId: string;
  /** Names it; the same name again is the same correction. Null: a new one each time. */
  readonly correctionId: string | null;
  readonly about: { readonly eventId: string } | { readonly account: string };
  readonly amountMicros: bigint;
  readonly cause: string;
  readonly by: string;
}

/** A correction as it was recorded. */
export interface RecordedCorrection {
  readonly eventId: string;
  readonly correctionId: string;
  readonly account: string;
  readonly author: string;
  /** False where it was recorded before, with the same content. */
  readonly isNew: boolean;
}

/**
 * Records a correction as an event; the ledger books it as an entry of its own. The same name again with the same content
 * answers what was recorded. Throws COST_UNKNOWN for an event that the tenant has no cost of, and COST_CORRECTED for a name
 * that has another content.
 * INVARIANT: test/integration/cost.test.ts "books a correction once, however often it is sent".
 */
export async function correctCost(
  deps: DeskDeps & { readonly loadCorrectedCall: LoadCorrectedCall },
  one: CostCorrection,
): Promise<RecordedCorrection> {
  const recorded = await deps.database.transaction(async (tx): Promise<RecordedCorrection> => {
    const correctsEventId = "eventId" in one.about ? one.about.eventId : null;
    const call =
      correctsEventId === null ? null : await deps.loadCorrectedCall(tx, one.tenantId, correctsEventId);
    if (correctsEventId !== null && call === null) {
      throw new Fault("COST_UNKNOWN", `\`${correctsEventId}\` has no cost of this tenant`);
    }
    const row = await saveCorrection(tx, deps, one, {
      correctsEventId,
      account: "account" in one.about ? one.about.account : (call?.account ?? ""),
    });
    const answer = {
      eventId: row.event_id,
      correctionId: row.correction_id,
      account: row.account,
      author: row.author,
      isNew: row.is_new,
    };
    if (!row.is_new) return answer;
    const event = toEnvelope(
      draft("fabric.cost.corrected", {
        correction_id: row.correction_id,
        corrects_event_id: correctsEventId,
        account: row.account,
        amount_micros: one.amountMicros,
        cause: row.cause,
        author: one.by,
      }),
      {
        eventId: row.event_id,
        recordedAtMs: row.recorded_at.getTime(),
        tenantId: one.tenantId,
        environment: deps.environment,
        runtime: deskRuntime,
        correlationId: call?.correlationId ?? row.correction_id,
        causationId: correctsEventId,
        origin: "human",
        userId: one.by,
      },
    );
    await appendOutbox(tx, toOutboxRows(deps.codec, [event]));
    return answer;
  });
  if (recorded.isNew) notifyOutbox(deps.database);
  return recorded;
}

interface CorrectionRow {
  readonly event_id: string;
  readonly correction_id: string;
  readonly corrects_event_id: string | null;
  readonly account: string;
  readonly amount_micros: bigint;
  readonly cause: string;
  readonly author: string;
  readonly recorded_at: Date;
}

/** Keeps a correction under its name, or answers the one that is kept when it says the same. */
async function saveCorrection(
  tx: Tx,
  deps: DeskDeps,
  one: CostCorrection,
  about: { readonly correctsEventId: string | null; readonly account: string },
): Promise<CorrectionRow & { readonly is_new: boolean }> {
  const freshId = newEventId(deps.clock);
  const correctionId = one.correctionId ?? freshId;
  const eventId =
    one.correctionId === null
      ? freshId
      : `evt_${derivedUuid(JSON.stringify(["cost-correction", one.tenantId, one.correctionId]))}`;
  const cause = toTextPreview(one.cause, causeMaxChars);
  const columns =
    "event_id, correction_id, corrects_event_id, account, amount_micros, cause, author, recorded_at";
  // Of two at once the second waits for the first, and then finds what it kept.
  const kept = await tx.query<CorrectionRow>(
    `INSERT INTO desk.cost_corrections (tenant_id, ${columns})
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, date_trunc('milliseconds', clock_timestamp()))
      ON CONFLICT (tenant_id, correction_id) DO NOTHING RETURNING ${columns}`,
    [
      ...[one.tenantId, eventId, correctionId, about.correctsEventId, about.account],
      ...[one.amountMicros.toString(), cause, one.by],
    ],
  );
  const [fresh] = kept.rows;
  if (fresh !== undefined) return { ...fresh, is_new: true };
  const found = await tx.query<CorrectionRow>(
    `SELECT ${columns} FROM desk.cost_corrections WHERE tenant_id = $1 AND correction_id = $2`,
    [one.tenantId, correctionId],
  );
  const [before] = found.rows;
  if (before === undefined) throw new Error("a name that is taken has a correction");
  const isSame =
    before.amount_micros === one.amountMicros &&
    before.cause === cause &&
    before.corrects_event_id === about.correctsEventId &&
    // A call's account may have moved since; the call is the same.
    (about.correctsEventId !== null || before.account === about.account);
  if (!isSame) {
    throw new Fault(
      "COST_CORRECTED",
      `\`${correctionId}\` is a correction of ${before.amount_micros.toString()} millionths about ${before.corrects_event_id ?? before.account}; give another name`,
    );
  }
  return { ...before, is_new: false };
}
