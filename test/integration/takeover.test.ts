import { join } from "node:path";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { takeover } from "../../processors/takeover/takeover.ts";
import { dumpTables, loadEvidence } from "../../processors/takeover/queries.ts";
import { audit } from "../../processors/audit/audit.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { migrate } from "../../services/platform/migrate.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { eventually } from "../harness/eventually.ts";
import type { HostRig } from "../harness/host-rig.ts";
import { openHostRig } from "../harness/host-rig.ts";
import { projectDir } from "../harness/stack.ts";
import {
  answeredEvent,
  applyEvents,
  baseMs,
  claimedEvent,
  deferredEvent,
  expiredEvent,
  gapEvent,
  letterEvent,
  notedEvent,
  reassignedEvent,
  reconciledEvent,
  resolvedEvent,
  storedItems,
  unresolvedEvent,
} from "../harness/takeover-rig.ts";

let rig: HostRig;
let queue: Database;
beforeAll(async () => {
  rig = await openHostRig();
  // The host's own role: what the grants leave out, the processor cannot do.
  queue = openDatabase({
    url: rig.database.roleUrl("fabric_host"),
    applicationName: "takeover-test",
    searchPath: ["takeover"],
    maxConnections: 4,
  });
});
afterEach(async () => {
  await empty();
});
afterAll(async () => {
  await queue.end();
  await rig.close();
});

const empty = () =>
  rig.sql.query("TRUNCATE takeover.evidence, takeover.item_events, takeover.letter_events, takeover.items");
const dump = async (): Promise<unknown> =>
  Promise.all(
    dumpTables.map(async ({ table, orderBy }) => [
      table,
      (await queue.query(`SELECT * FROM ${table} ORDER BY ${orderBy}`)).rows,
    ]),
  );
/** The id of the item that these events open, as the queue makes it. */
async function itemOf(...events: Envelope[]): Promise<string> {
  const opened = await applyEvents(queue, events);
  await empty();
  const id = opened.at(-1)?.dedupeKey;
  if (id === undefined) throw new Error("nothing was opened");
  return id;
}

describe("the queue", () => {
  it("raises a count for the same cause again, and announces the item once", async () => {
    const first = await applyEvents(queue, [deferredEvent("sha256:a", { name: "a", second: 10 })]);
    const second = await applyEvents(queue, [
      deferredEvent("sha256:a", { name: "b", second: 20 }),
      deferredEvent("sha256:b", { name: "c", second: 30 }),
    ]);
    expect([first.length, second.length]).toEqual([1, 1]);
    expect(first[0]?.draft).toMatchObject({
      type: "fabric.takeover.opened",
      redacted_summary: { cause: "deferred", cause_key: "sha256:a", due_at: baseMs + 10_000 + 4 * 3_600_000 },
    });
    expect(first[0]?.cause).toMatchObject({ tenant_id: "acme", correlation_id: "cor_1" });
    expect(await storedItems(queue)).toMatchObject([
      { state: "open", occurrences: 2n, opened_at: new Date(baseMs + 10_000) },
      { state: "open", occurrences: 1n },
    ]);
  });

  it("counts an event once that comes twice under one id", async () => {
    const event = deferredEvent("sha256:a", { name: "a", second: 10 });
    await applyEvents(queue, [event, event]);
    expect(await applyEvents(queue, [event])).toEqual([]);
    expect(await storedItems(queue)).toMatchObject([{ occurrences: 1n }]);
  });

  it("opens a new item for what comes after the resolution, and none for what came before it", async () => {
    const first = deferredEvent("sha256:a", { name: "a", second: 10 });
    const itemId = await itemOf(first);
    await applyEvents(queue, [first]);
    await applyEvents(queue, [resolvedEvent(itemId, "no_action", { name: "r", second: 50 })]);
    expect(await applyEvents(queue, [deferredEvent("sha256:a", { name: "late", second: 40 })])).toEqual([]);
    expect(await storedItems(queue)).toMatchObject([{ state: "resolved", occurrences: 2n }]);
    const again = await applyEvents(queue, [deferredEvent("sha256:a", { name: "again", second: 60 })]);
    expect(again.length).toBe(1);
    expect(await storedItems(queue)).toMatchObject([
      { generation: 1, state: "resolved", closed_by: "ann", outcome: "no_action" },
      { generation: 2, state: "open", opened_at: new Date(baseMs + 60_000) },
    ]);
  });

  it("is resolved however late a claim comes that was made before", async () => {
    const first = deferredEvent("sha256:a", { name: "a", second: 10 });
    const itemId = await itemOf(first);
    await applyEvents(queue, [resolvedEvent(itemId, "fixed_elsewhere", { name: "r", second: 50 })]);
    await applyEvents(queue, [first]);
    await applyEvents(queue, [claimedEvent(itemId, "bob", { name: "c", second: 20 })]);
    expect(await storedItems(queue)).toMatchObject([
      { state: "resolved", assigned_to: "bob", outcome: "fixed_elsewhere" },
    ]);
  });

  it("settles a plan that was put off when it is answered, also when that came first, and not another plan", async () => {
    await applyEvents(queue, [answeredEvent("sha256:a", { name: "done", second: 20 })]);
    await applyEvents(queue, [
      deferredEvent("sha256:a", { name: "a", second: 10 }),
      deferredEvent("sha256:b", { name: "b", second: 10 }),
    ]);
    expect(await storedItems(queue)).toMatchObject([
      { cause_key: "sha256:a", state: "settled", closed_by: "agent.deferral.answered" },
      { cause_key: "sha256:b", state: "open", closed_by: null },
    ]);
    await applyEvents(queue, [deferredEvent("sha256:a", { name: "again", second: 30 })]);
    expect((await storedItems(queue)).map((one) => one.state)).toEqual(["settled", "open", "open"]);
  });

  it("closes an unresolved effect by its reconciliation, also when that came first", async () => {
    await applyEvents(queue, [reconciledEvent("eff_1", "succeeded", { name: "r", second: 20 })]);
    const opened = await applyEvents(queue, [unresolvedEvent("eff_1", { name: "u", second: 10 })]);
    expect(opened.length).toBe(1);
    expect(await storedItems(queue)).toMatchObject([
      { state: "settled", closed_by: "agent.effect.reconciled" },
    ]);
    await applyEvents(queue, [unresolvedEvent("eff_1", { name: "again", second: 30 })]);
    expect((await storedItems(queue)).map((one) => one.state)).toEqual(["settled", "open"]);
  });

  it("settles a stopped partition when a person lets it go on, and not another one", async () => {
    await applyEvents(queue, [
      gapEvent(0, "found", { name: "g0", second: 10 }),
      gapEvent(1, "found", { name: "g1", second: 10 }),
      gapEvent(0, "resumed", { name: "r0", second: 20 }),
    ]);
    expect(await storedItems(queue)).toMatchObject([
      {
        state: "settled",
        closed_by: "fabric.gap.resumed",
        resolution_note: expect.stringMatching(/^ann let/) as unknown,
      },
      { state: "open", closed_by: null },
    ]);
  });

  it("settles an item about letters when none of them waits: sent again, put away, or back for another reason", async () => {
    const bad = { code: "BAD" };
    await applyEvents(queue, [
      // Of a letter that could not be read, the tenant is known once it went through.
      letterEvent("l1", bad, { name: "b1", second: 10, tenantId: "fabric" }),
      letterEvent("l2", bad, { name: "b2", second: 11, tenantId: "fabric" }),
      letterEvent("l3", bad, { name: "b3", second: 12, tenantId: "fabric" }),
      letterEvent("l1", "redriven", { name: "e1", second: 20 }),
      letterEvent("l2", "archived", { name: "e2", second: 21, tenantId: "fabric" }),
    ]);
    expect(await storedItems(queue)).toMatchObject([{ state: "open", occurrences: 3n }]);
    await applyEvents(queue, [letterEvent("l3", { code: "WORSE" }, { name: "b4", second: 30 })]);
    expect(await storedItems(queue)).toMatchObject([
      { tenant_id: "acme", cause_key: expect.stringContaining("WORSE") as unknown, state: "open" },
      { tenant_id: "fabric", state: "settled", closed_by: "fabric.letter.archived", occurrences: 3n },
    ]);
    // Whoever ended it has another clock than whoever set it aside.
    await applyEvents(queue, [letterEvent("l3", "redriven", { name: "e3", second: 29 })]);
    expect((await storedItems(queue)).map((one) => one.state)).toEqual(["settled", "settled"]);
    await applyEvents(queue, [letterEvent("l9", bad, { name: "b9", second: 40, tenantId: "fabric" })]);
    expect((await storedItems(queue)).map((one) => one.state)).toEqual(["settled", "settled", "open"]);
  });

  it("gives equal tables of letters whatever the order, also where a late one shows that an item was not over", async () => {
    const bad = { code: "BAD" };
    const history = [
      letterEvent("l1", bad, { name: "b1", second: 10 }),
      letterEvent("l1", "redriven", { name: "e1", second: 20 }),
      letterEvent("l2", bad, { name: "b2", second: 15 }),
      letterEvent("l2", { code: "WORSE" }, { name: "b2w", second: 40 }),
      letterEvent("l2", bad, { name: "b2b", second: 50 }),
      letterEvent("l3", bad, { name: "b3", second: 30 }),
      letterEvent("l3", "archived", { name: "e3", second: 60 }),
      letterEvent("l2", "redriven", { name: "e2", second: 70, tenantId: "globex" }),
      letterEvent("l4", bad, { name: "b4", second: 80 }),
    ];
    for (const event of history) await applyEvents(queue, [event]);
    const clean = await dump();
    expect((await storedItems(queue)).map((one) => one.state)).toEqual(["settled", "open", "settled"]);
    await fc.assert(
      fc.asyncProperty(
        fc.shuffledSubarray([...history, ...history], { minLength: history.length * 2 }),
        async (shuffled) => {
          await empty();
          const announced: string[] = [];
          for (const event of shuffled)
            announced.push(...(await applyEvents(queue, [event])).map(({ dedupeKey }) => dedupeKey));
          expect(await dump()).toEqual(clean);
          for (const { item_id } of await storedItems(queue)) expect(announced).toContain(item_id);
        },
      ),
      { numRuns: 40 },
    );
  });

  it("takes no word of another tenant on an item", async () => {
    const first = deferredEvent("sha256:a", { name: "a", second: 10 });
    const itemId = await itemOf(first);
    await applyEvents(queue, [first]);
    await applyEvents(queue, [
      resolvedEvent(itemId, "no_action", { name: "r", second: 50, tenantId: "globex" }),
    ]);
    expect(await storedItems(queue)).toMatchObject([{ state: "open", closed_by: null }]);
  });

  it("gives equal tables whatever the order, with everything twice", async () => {
    const first = deferredEvent("sha256:a", { name: "a1", second: 10 });
    const again = deferredEvent("sha256:a", { name: "a3", second: 60 });
    const oneId = await itemOf(first);
    const twoId = await itemOf(first, resolvedEvent(oneId, "no_action", { name: "a-r", second: 50 }), again);
    const effectId = await itemOf(unresolvedEvent("eff_1", { name: "u1", second: 5 }));
    const history: Envelope[] = [
      first,
      deferredEvent("sha256:a", { name: "a2", second: 20, correlationId: "cor_2" }),
      claimedEvent(oneId, "ann", { name: "a-c", second: 25 }),
      claimedEvent(oneId, "bob", { name: "a-c2", second: 25 }),
      notedEvent(oneId, "looked", { name: "a-n", second: 26 }),
      reassignedEvent(oneId, "eve", { name: "a-m", second: 30 }),
      resolvedEvent(oneId, "no_action", { name: "a-r", second: 50 }),
      resolvedEvent(oneId, "redrive_proposed", { name: "a-r2", second: 55 }),
      again,
      claimedEvent(twoId, "ann", { name: "a-c3", second: 70 }),
      unresolvedEvent("eff_1", { name: "u1", second: 5 }),
      reconciledEvent("eff_1", "failed", { name: "u2", second: 15 }),
      unresolvedEvent("eff_1", { name: "u3", second: 15 }),
      unresolvedEvent("eff_1", { name: "u4", second: 16 }),
      resolvedEvent(effectId, "incident_proposed", { name: "u-r", second: 12 }),
      expiredEvent("sha256:a", { name: "e1", second: 1, tenantId: "globex" }),
      deferredEvent("sha256:a", { name: "g1", second: 2, tenantId: "globex" }),
    ];
    for (const event of history) await applyEvents(queue, [event]);
    const clean = await dump();
    await fc.assert(
      fc.asyncProperty(
        fc.shuffledSubarray([...history, ...history], { minLength: history.length * 2 }),
        fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 40, maxLength: 40 }),
        async (shuffled, sizes) => {
          await empty();
          const rest = [...shuffled];
          const announced: string[] = [];
          for (const size of sizes) {
            const emitted = await applyEvents(queue, rest.splice(0, size));
            announced.push(...emitted.map(({ dedupeKey }) => dedupeKey));
          }
          expect(await dump()).toEqual(clean);
          // Each item once, whatever came first.
          const items = (await storedItems(queue)).map(({ item_id }) => item_id);
          expect([...announced].sort()).toEqual([...items].sort());
        },
      ),
      { numRuns: 25 },
    );
  });

  it("loses nothing when two hosts work on one item at once", async () => {
    const events = Array.from({ length: 40 }, (_, n) =>
      deferredEvent("sha256:a", { name: `p${String(n)}`, second: n }),
    );
    const emitted = await Promise.all(events.map((event) => applyEvents(queue, [event])));
    expect(emitted.flat().length).toBe(1);
    expect(await storedItems(queue)).toMatchObject([{ occurrences: 40n, opened_at: new Date(baseMs) }]);
  });
});

describe("through the host", () => {
  it("opens an item with its event in the transaction, and shows what led there", async () => {
    await rig.createTopics(["agent.tool.deferred", "fabric.takeover.claimed"], 2);
    const host = rig.start([takeover, audit]);
    await rig.publish([
      deferredEvent("sha256:k", { name: "k1", second: 10 }),
      deferredEvent("sha256:k", { name: "k2", second: 11, correlationId: "cor_9" }),
    ]);
    const [item] = await eventually(
      () => storedItems(queue),
      (items) => items[0]?.occurrences === 2n,
      { deadlineMs: 30_000, what: "an item of both defers" },
    );
    await eventually(
      async () => (await rig.sql.query("SELECT FROM audit.trail")).rowCount,
      (rows) => rows === 2,
      { deadlineMs: 20_000, what: "both in the trail" },
    );
    const opened = await rig.outbox();
    expect(opened).toMatchObject([
      {
        type: "fabric.takeover.opened",
        origin: "processor:takeover",
        redacted_summary: { item_id: item?.item_id },
      },
    ]);
    const evidence = await loadEvidence(rig.sql, "acme", item?.item_id ?? "");
    expect(evidence.decisions.map((one) => one.decision_id).sort()).toEqual(["dec_k1", "dec_k2"]);
    expect(evidence.chain.length).toBe(2);
    expect(evidence.plans).toEqual([{ plan_digest: "sha256:k", preview: null }]);
    expect((await loadEvidence(rig.sql, "globex", item?.item_id ?? "")).causes).toEqual([]);
    await host.stop();
  }, 90_000);

  // A rebuild that ran in normal mode sent all mails and invoices again (JasperFx/marten#4729).
  it("rebuilds a thousand events into a shadow that can say nothing, and leaves the live queue alone", async () => {
    const schema = "shadow_takeover";
    await migrate({
      adminUrl: rig.database.url,
      migrationsDir: join(projectDir, "deploy", "migrations"),
      owners: ["takeover"],
      schemaOf: () => schema,
    });
    const before = (await rig.sql.query("SELECT FROM outbox.events")).rowCount;
    const shadow = openDatabase({
      // A role without the outbox: what it cannot do needs no flag that forbids it.
      url: rig.database.roleUrl("fabric_auditor"),
      applicationName: "shadow",
      searchPath: [schema],
      maxConnections: 1,
    });
    await rig.sql.query(`GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO fabric_auditor`);
    try {
      const events = Array.from({ length: 1_000 }, (_, n) =>
        expiredEvent(`sha256:${String(n % 100)}`, { name: `x${String(n)}`, second: n }),
      );
      const asked: unknown[] = [];
      while (events.length > 0) asked.push(...(await applyEvents(shadow, events.splice(0, 250))));
      // It asks to announce them, and who runs a shadow does not.
      expect(asked.length).toBe(100);
      expect((await storedItems(shadow)).map((one) => one.occurrences)).toEqual(Array(100).fill(10n));
      expect((await rig.sql.query("SELECT FROM outbox.events")).rowCount).toBe(before);
      expect(await storedItems(queue)).toEqual([]);
      await expect(shadow.query("SELECT outbox.append('{}', '{}', '{}', '{}', '{}', '{}')")).rejects.toThrow(
        /permission denied/,
      );
    } finally {
      await shadow.end();
    }
  });
});
