import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Envelope } from "../../schemas/envelope.ts";
import { archiveLetters } from "../../services/recovery/archive-letters.ts";
import type { RedriveProgress } from "../../services/recovery/request-redrive.ts";
import { loadRedrives, requestRedrive } from "../../services/recovery/request-redrive.ts";
import { resumeRedrives, stopRedrives } from "../../services/recovery/stop-redrive.ts";
import { eventually } from "../harness/eventually.ts";
import type { HostRig } from "../harness/host-rig.ts";
import { ledgerProcessor, modelEvent, openHostRig } from "../harness/host-rig.ts";

let rig: HostRig;
beforeEach(async () => {
  rig = await openHostRig();
  await rig.sql.query("INSERT INTO access.tenants (tenant_id) VALUES ('acme'), ('globex')");
});
afterEach(() => rig.close());

const type = "agent.model.completed" as const;

/** Letters with these numbers, of a consumer that was broken and is not running any more. */
async function bury(count: number, tenantId = "acme", from = 0): Promise<void> {
  await rig.publish(Array.from({ length: count }, (_, index) => modelEvent(from + index, tenantId)));
  const broken = rig.start([
    ledgerProcessor({
      project: () => {
        throw new Error("no number I know");
      },
    }),
  ]);
  await eventually(
    () => rig.letters(),
    (letters) => letters.length === from + count,
    { deadlineMs: 15_000, what: "letters" },
  );
  await broken.stop();
}

const redrive = async (perSecond: number, tenant?: string, scope: string | null = null): Promise<string> => {
  const [asked] = await requestRedrive(
    rig.recovery(),
    {
      filter: tenant === undefined ? {} : { tenant },
      scope,
      roles: ["sre"],
      beyondLimit: false,
    },
    { by: "ann", reason: "the consumer is mended", perSecond },
  );
  if (asked === undefined) throw new Error("nothing was sent");
  return asked.redrive_id;
};
const progressOf = async (id: string): Promise<RedriveProgress> => {
  const [found] = await loadRedrives(rig.recovery().database, { ids: [id], scope: null, limit: 1 });
  if (found === undefined) throw new Error("no such redrive");
  return found;
};
const untilFinished = (id: string): Promise<RedriveProgress> =>
  eventually(
    () => progressOf(id),
    (one) => one.finished_at !== null,
    { deadlineMs: 20_000 },
  );
const stop = (ids: readonly string[] | null, more: { scope?: string; givesUp?: boolean } = {}) =>
  stopRedrives(
    rig.recovery(),
    { ids, scope: more.scope ?? null },
    { by: "bob", reason: "it counts twice", givesUp: more.givesUp ?? false },
  );
const resume = (ids: readonly string[] | null) =>
  resumeRedrives(rig.recovery(), { ids, scope: null }, { by: "bob", reason: "it is mended" });
const said = async (of: Envelope["type"]): Promise<Envelope[]> =>
  (await rig.outbox()).filter((event) => event.type === of);

describe("a redrive under way", () => {
  it("stops where a person says so, lets others go on, and goes on from there once it is resumed", async () => {
    await rig.createTopics([type]);
    await bury(40);
    await bury(3, "globex", 40);
    const id = await redrive(5, "acme");
    rig.start([ledgerProcessor()]);
    await eventually(
      () => progressOf(id),
      (one) => one.processed > 0,
      { deadlineMs: 15_000 },
    );
    const [stopped] = await stop([id]);
    const at = await progressOf(id);
    expect(at).toMatchObject({ stopped_by: "bob", stop_reason: "it counts twice", finished_at: null });
    expect(stopped).toEqual({ redrive_id: id, processor: "ledger", letters_left: 40 - at.processed });
    expect(at.processed).toBeLessThan(40);
    // Who stops it again stops nothing, and its letters are nobody else's.
    expect(await stop(null)).toEqual([]);
    await expect(redrive(1_000, "acme")).rejects.toThrow("nothing was sent");

    // Another one behind it takes its turns: so many looks for work left the first one where it was.
    expect(await untilFinished(await redrive(1_000, "globex"))).toMatchObject({ processed: 3 });
    expect((await progressOf(id)).processed).toBe(at.processed);
    expect(await rig.ledger()).toMatchObject({ rows: at.processed + 3 });

    expect(await resume([id])).toMatchObject([{ redrive_id: id, letters_left: 40 - at.processed }]);
    expect(await resume([id])).toEqual([]);
    expect(await untilFinished(id)).toMatchObject({
      processed: 40,
      failed: 0,
      duplicates: 0,
      stopped_at: null,
    });
    expect(await rig.ledger()).toMatchObject({ rows: 43, events: 43 });
    expect(await said("fabric.redrive.stopped")).toMatchObject([
      {
        tenant_id: "fabric",
        actor: { user_id: "bob" },
        redacted_summary: { redrive_id: id, letters_left: 40 - at.processed, is_given_up: false },
      },
    ]);
    expect(await said("fabric.redrive.resumed")).toMatchObject([{ redacted_summary: { resumed_by: "bob" } }]);
  });

  it("waits for the batch in hand, after which nothing moves", async () => {
    await rig.createTopics([type]);
    await bury(6);
    const id = await redrive(3);
    let letGo: () => void = () => undefined;
    const mayCommit = new Promise<void>((resolve) => (letGo = resolve));
    let inHand = 0;
    rig.start([
      ledgerProcessor({
        async apply(tx, changes) {
          inHand = changes.length;
          await tx.query("INSERT INTO ledger (event_id, n) SELECT 'x', 0 FROM generate_series(1, $1)", [
            changes.length,
          ]);
          await mayCommit;
          return [];
        },
      }),
    ]);
    let isStopped = false;
    let stopping: ReturnType<typeof stop> | undefined;
    try {
      await eventually(() => inHand > 0, Boolean, { deadlineMs: 15_000, what: "a batch in hand" });
      stopping = stop([id]).finally(() => (isStopped = true));
      await eventually(
        async () =>
          (
            await rig.sql.query(
              "SELECT 1 FROM pg_stat_activity WHERE application_name = 'recovery-under-test' AND datname = current_database() AND wait_event_type = 'Lock'",
            )
          ).rowCount,
        (n) => n > 0,
        { deadlineMs: 15_000, what: "a stop that waits" },
      );
      expect(isStopped).toBe(false);
    } finally {
      letGo();
    }
    expect(await stopping).toMatchObject([{ letters_left: 6 - inHand }]);
    const { rows } = await rig.ledger();
    expect(rows).toBe(inHand);
    // Letters that are taken while it is stopped: none, whoever still believes in a lease.
    await rig.sql.query("UPDATE host.redrives SET next_at = now()");
    expect((await progressOf(id)).processed).toBe(inHand);
  });

  it("is given up: its letters wait for nothing, are sent by another one, or put away", async () => {
    await rig.createTopics([type]);
    await bury(4);
    const id = await redrive(1);
    await stop([id]);
    const archive = () =>
      archiveLetters(
        rig.recovery(),
        { filter: {}, scope: null, roles: ["sre"] },
        { by: "bob", reason: "nobody needs them" },
      );
    // As long as it may go on, its letters are its own.
    expect(await archive()).toBe(0);
    expect(await stop([id], { givesUp: true })).toMatchObject([{ letters_left: 4 }]);
    expect(await progressOf(id)).toMatchObject({ finished_at: expect.any(Date) as Date, stopped_by: "bob" });
    expect(await resume([id])).toEqual([]);
    const again = await redrive(1_000);
    rig.start([ledgerProcessor()]);
    expect(await untilFinished(again)).toMatchObject({ processed: 4 });
    expect(await rig.ledger()).toMatchObject({ rows: 4, events: 4 });
  });

  it("is stopped by somebody of its tenant, and not by another tenant's", async () => {
    await rig.createTopics([type]);
    await bury(2);
    const id = await redrive(1, "acme", "acme");
    expect(await stop([id], { scope: "globex" })).toEqual([]);
    expect(await stop(null, { scope: "acme" })).toMatchObject([{ redrive_id: id }]);
    expect(await said("fabric.redrive.stopped")).toMatchObject([{ tenant_id: "acme" }]);
  });
});
