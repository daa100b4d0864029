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
}

/**
 * Records a correction as an event; the ledger books it as an entry of its own. Throws COST_UNKNOWN for an event that the
 * tenant has no cost of.
 * INVARIANT: test/integration/cost.test.ts "books a correction once, however often it is sent".
 */
export async function correctCost(
  deps: DeskDeps & { readonly loadCorrectedCall: LoadCorrectedCall },
  one: CostCorrection,
): Promise<RecordedCorrection> {
  const freshId = newEventId(deps.clock);
  const correctionId = one.correctionId ?? freshId;
  const eventId =
    one.correctionId === null
      ? freshId
      : `evt_${derivedUuid(JSON.stringify(["cost-correction", one.tenantId, one.correctionId]))}`;
  const account = await deps.database.transaction(async (tx) => {
    const correctsEventId = "eventId" in one.about ? one.about.eventId : null;
    const call =
      correctsEventId === null ? null : await deps.loadCorrectedCall(tx, one.tenantId, correctsEventId);
    if (correctsEventId !== null && call === null) {
      throw new Fault("COST_UNKNOWN", `\`${correctsEventId}\` has no cost of this tenant`);
    }
    const booked = "account" in one.about ? one.about.account : (call?.account ?? "");
    const clock = await tx.query<{ now: Date }>("SELECT clock_timestamp() AS now");
    const event = toEnvelope(
      draft("fabric.cost.corrected", {
        correction_id: correctionId,
        corrects_event_id: correctsEventId,
        account: booked,
        amount_micros: one.amountMicros,
        cause: toTextPreview(one.cause, causeMaxChars),
        author: one.by,
      }),
      {
        eventId,
        recordedAtMs: (clock.rows[0]?.now ?? new Date(deps.clock.nowMs())).getTime(),
        tenantId: one.tenantId,
        environment: deps.environment,
        runtime: deskRuntime,
        correlationId: call?.correlationId ?? correctionId,
        causationId: correctsEventId,
        origin: "human",
        userId: one.by,
      },
    );
    await appendOutbox(tx, toOutboxRows(deps.codec, [event]));
    return booked;
  });
  notifyOutbox(deps.database);
  return { eventId, correctionId, account };
}
