import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Envelope } from "../../schemas/envelope.ts";
import { Fault } from "../../schemas/faults.ts";
import { archiveLetters } from "../../services/recovery/archive-letters.ts";
import type { LetterFilter } from "../../services/recovery/letter-filter.ts";
import { groupLetters, loadLetter } from "../../services/recovery/letter-rows.ts";
import type { RedriveProgress } from "../../services/recovery/request-redrive.ts";
import {
  loadRedrives,
  maxRedrives,
  planRedrive,
  requestRedrive,
} from "../../services/recovery/request-redrive.ts";
import { eventually } from "../harness/eventually.ts";
import type { HostRig } from "../harness/host-rig.ts";
import { ledgerProcessor, modelEvent, openHostRig } from "../harness/host-rig.ts";

let rig: HostRig;
beforeEach(async () => {
  rig = await openHostRig();
  await rig.sql.query("INSERT INTO access.tenants (tenant_id) VALUES ('acme'), ('globex')");
});
afterEach(async () => {
  await rig.close();
});

const type = "agent.model.completed" as const;
const many = (count: number, from = 0, tenantId = "acme") =>
  Array.from({ length: count }, (_, index) => modelEvent(from + index, tenantId));
const untilRead = (offset: bigint, processor = "ledger") =>
  eventually(
    () => rig.watermarks(processor),
    (marks) => marks.get(`${type}/0`) === offset,
    { deadlineMs: 15_000 },
  );
/** Throws for the numbers that are named, until it is mended. */
const brokenFor = (numbers: readonly number[], name = "ledger") =>
  ledgerProcessor({
    name,
    project: (event) => {
      if (numbers.includes(Number(event.redacted_summary.output_tokens))) throw new Error("no number I know");
      return [{ eventId: event.event_id, n: event.redacted_summary.output_tokens ?? 0n }];
    },
  });
const how = { by: "ann", reason: "the consumer is mended", perSecond: 1_000 };
const redrive = (filter: LetterFilter = {}, more: { roles?: string[]; beyondLimit?: boolean } = {}) =>
  requestRedrive(
    rig.recovery(),
    { filter, scope: null, roles: more.roles ?? ["sre"], beyondLimit: more.beyondLimit ?? false },
    how,
  );
const untilFinished = async (ids: readonly { redrive_id: string }[]): Promise<RedriveProgress> => {
  const found = await eventually(
    () =>
      loadRedrives(rig.recovery().database, {
        ids: ids.map((one) => one.redrive_id),
        scope: null,
        limit: 10,
      }),
    (all) => all.length > 0 && all.every((one) => one.finished_at !== null),
    { deadlineMs: 15_000 },
  );
  const [first] = found;
  if (first === undefined) throw new Error("no redrive");
  return first;
};
const said = async (of: Envelope["type"]): Promise<Envelope[]> =>
  (await rig.outbox()).filter((event) => event.type === of);

describe("a redrive", () => {
  it("takes a dead letter through its mended consumer once, and tells who wanted it", async () => {
    await rig.createTopics([type]);
    const events = many(4);
    await rig.publish(events);
    const broken = rig.start([brokenFor([2])]);
    await untilRead(4n);
    await broken.stop();
    const [before] = await rig.letters();
    expect(before).toMatchObject({ code: "PROJECTION_FAILED", attempts: 1, redrives: 0, redrive_id: null });
    expect(await rig.ledger()).toMatchObject({ rows: 3 });

    const { database } = rig.recovery();
    expect(await groupLetters(database, {}, "unsettled", null, 10)).toMatchObject([
      { processor: "ledger", code: "PROJECTION_FAILED", letters: 1, waiting: 0, tenants: 1, attempts_max: 1 },
    ]);
    const wish = { filter: {}, scope: null, roles: ["sre"], beyondLimit: false };
    expect(await planRedrive(database, wish)).toMatchObject([{ letters: 1, ready: 1 }]);
    expect(await rig.letters()).toMatchObject([{ redrive_id: null }]);

    const asked = await redrive({ processor: "ledger" });
    expect(asked).toMatchObject([{ processor: "ledger", letters: 1 }]);
    // Whoever asks again meanwhile asks for nothing.
    expect(await redrive()).toEqual([]);
    rig.start([ledgerProcessor()]);
    expect(await untilFinished(asked)).toMatchObject({
      processed: 1,
      failed: 0,
      duplicates: 0,
      requested_by: "ann",
    });
    expect(await rig.ledger()).toEqual({ rows: 4, events: 4, sum: 6 });
    expect(await loadLetter(database, String(before?.["id"]), null)).toMatchObject({
      state: "redriven",
      attempts: 2,
      redrives: 1,
      redriven_by: "ann",
    });
    expect(await said("fabric.redrive.requested")).toMatchObject([
      {
        tenant_id: "fabric",
        actor: { user_id: "ann" },
        redacted_summary: { consumer: "ledger", letters: 1, selection: "processor ledger" },
      },
    ]);
    expect(await said("fabric.letter.redriven")).toMatchObject([
      {
        tenant_id: "acme",
        correlation_id: events[2]?.correlation_id,
        causation_id: events[2]?.event_id,
        redacted_summary: {
          letter_id: before?.["id"],
          outcome: "processed",
          attempts: 2,
          redriven_by: "ann",
        },
      },
    ]);
    // The event's second copy is still a copy.
    await rig.publish([events[2] as never]);
    await untilRead(5n);
    expect(await rig.ledger()).toMatchObject({ rows: 4 });
    expect(await redrive()).toEqual([]);
  });

  it("goes to the consumer that failed, and to no other", async () => {
    await rig.createTopics([type]);
    await rig.publish(many(3));
    const first = rig.start([brokenFor([1]), ledgerProcessor({ name: "other" })]);
    await untilRead(3n);
    await untilRead(3n, "other");
    await first.stop();
    expect(await rig.ledger()).toMatchObject({ rows: 5 });
    const asked = await redrive();
    rig.start([ledgerProcessor(), ledgerProcessor({ name: "other" })]);
    await untilFinished(asked);
    expect(await rig.ledger()).toEqual({ rows: 6, events: 3, sum: 6 });
  });

  it("brings back once what fails again, as the same letter with one try more", async () => {
    await rig.createTopics([type]);
    await rig.publish(many(5));
    rig.start([brokenFor([1, 3])]);
    await untilRead(5n);
    const ids = (await rig.letters()).map((one) => one["id"]);
    expect(await untilFinished(await redrive())).toMatchObject({ processed: 0, failed: 2 });
    const after = await rig.letters();
    expect(after.map((one) => one["id"])).toEqual(ids);
    expect(after).toMatchObject([
      { attempts: 2, redrives: 1, redrive_id: null, redriven_at: null, code: "PROJECTION_FAILED" },
      { attempts: 2, redrives: 1 },
    ]);
    const buried = await said("fabric.letter.buried");
    expect(buried.map((one) => (one.redacted_summary as { attempts: number }).attempts)).toEqual([
      1, 1, 2, 2,
    ]);
    expect(new Set(buried.map((one) => one.event_id)).size).toBe(4);
    expect(await said("fabric.letter.redriven")).toEqual([]);
  });

  it("stops offering a letter that failed as often as one may, until somebody names it", async () => {
    await rig.createTopics([type]);
    await rig.publish(many(2));
    rig.start([brokenFor([1])]);
    await untilRead(2n);
    for (let round = 0; round < maxRedrives; round += 1) await untilFinished(await redrive());
    expect(await rig.letters()).toMatchObject([{ attempts: 1 + maxRedrives, redrives: maxRedrives }]);
    expect(await redrive()).toEqual([]);
    const wish = { filter: {}, scope: null, roles: ["sre"], beyondLimit: false };
    expect(await planRedrive(rig.recovery().database, wish)).toMatchObject([
      { letters: 1, ready: 0, beyond_limit: 1 },
    ]);
    await expect(redrive({}, { beyondLimit: true })).rejects.toMatchObject({ code: "REQUEST_INVALID" });
    const ids = (await rig.letters()).map((one) => String(one["id"]));
    await untilFinished(await redrive({ ids }, { beyondLimit: true }));
    expect(await rig.letters()).toMatchObject([{ redrives: maxRedrives + 1 }]);
  });

  it("keeps the good ones of a batch in which one fails in the database", async () => {
    await rig.createTopics([type]);
    await rig.publish(many(20));
    const all = Array.from({ length: 20 }, (_, n) => n);
    const first = rig.start([brokenFor(all)]);
    await untilRead(20n);
    await first.stop();
    await rig.sql.query("ALTER TABLE host.ledger ADD CHECK (n <> 13)");
    const asked = await redrive();
    rig.start([ledgerProcessor()]);
    expect(await untilFinished(asked)).toMatchObject({ processed: 19, failed: 1 });
    expect(await rig.ledger()).toMatchObject({ rows: 19, events: 19 });
    expect((await rig.letters()).filter((one) => one["redriven_at"] === null)).toMatchObject([
      { code: "DATABASE_REJECTED", kafka_offset: 13n, attempts: 2 },
    ]);
  });

  it("reads by today's schemas what could not be read, and drops the copy that went through meanwhile", async () => {
    await rig.createTopics([type]);
    const events = many(2);
    const early = rig.start([ledgerProcessor()], {
      codec: {
        encode: (event) => rig.codec.encode(event),
        decode: () => Promise.reject(new Fault("SCHEMA_REFUSED", "a field that must be understood")),
      },
    });
    await rig.publish([...events, events[0] as never]);
    await untilRead(3n);
    await early.stop();
    expect(await rig.letters()).toMatchObject([
      { kind: "quarantine", tenant_id: "fabric", event_id: null },
      { kind: "quarantine" },
      { kind: "quarantine" },
    ]);
    const asked = await redrive();
    rig.start([ledgerProcessor()]);
    expect(await untilFinished(asked)).toMatchObject({ processed: 2, duplicates: 1, failed: 0 });
    expect(await rig.ledger()).toMatchObject({ rows: 2, events: 2 });
  });

  it("takes back no claim but the burial's own", async () => {
    await rig.createTopics([type]);
    const [event] = many(1, 7);
    await rig.publish([event as never]);
    const broken = rig.start([brokenFor([7])]);
    await untilRead(1n);
    await broken.stop();
    // The inbox has forgotten the burial, and a second copy went through before anybody sent the letter again.
    await rig.sql.query("DELETE FROM host.inbox");
    await rig.publish([event as never]);
    rig.start([ledgerProcessor()]);
    await untilRead(2n);
    expect(await untilFinished(await redrive())).toMatchObject({ processed: 0, duplicates: 1 });
    expect(await rig.ledger()).toMatchObject({ rows: 1 });
    // The same once more, with the inbox pruned in between: the other letter's mark answers.
    await rig.sql.query("DELETE FROM host.inbox");
    await rig.sql.query(
      `INSERT INTO host.letters SELECT (jsonb_populate_record(l, jsonb_build_object('id', gen_random_uuid(),
        'redriven_at', NULL, 'redrive_id', NULL))).* FROM host.letters AS l`,
    );
    expect(await untilFinished(await redrive())).toMatchObject({ processed: 0, duplicates: 1 });
    expect(await rig.ledger()).toMatchObject({ rows: 1 });
  });

  it("leaves letters of a tenant that is frozen or not served where they are", async () => {
    await rig.createTopics([type]);
    await rig.publish([...many(1, 1), ...many(1, 2, "globex"), ...many(1, 3, "gone")]);
    const first = rig.start([brokenFor([1, 2, 3])]);
    await untilRead(3n);
    await first.stop();
    await rig.sql.query("UPDATE access.tenants SET state = 'frozen' WHERE tenant_id = 'globex'");
    const wish = { filter: {}, scope: null, roles: ["sre"], beyondLimit: false };
    expect(await planRedrive(rig.recovery().database, wish)).toMatchObject([
      { letters: 3, ready: 1, tenant_not_served: 2 },
    ]);
    const asked = await redrive();
    expect(asked).toMatchObject([{ letters: 1 }]);
    // Frozen between the wish and the deed, by an incident.
    await rig.sql.query(
      `INSERT INTO incidents.holds (hold_id, source, mode, tenant_id, scope, scope_id, kind, reason, declared_by)
        VALUES (gen_random_uuid(), 'incident', 'frozen', 'acme', 'tenant', 'acme', 'leak', 'x', 'ida')`,
    );
    rig.start([ledgerProcessor()]);
    expect(await untilFinished(asked)).toMatchObject({ processed: 0, skipped: 1 });
    expect(await rig.ledger()).toMatchObject({ rows: 0 });
    expect(await rig.letters()).toMatchObject([{ attempts: 1, redrive_id: null }, {}, {}]);
    await rig.sql.query("UPDATE incidents.holds SET lifted_at = now(), lifted_by = 'ida'");
    expect(await untilFinished(await redrive())).toMatchObject({ processed: 1 });
  });

  it("is for the role that the letter names, and for the letters of the own tenant", async () => {
    await rig.createTopics([type]);
    await rig.publish([...many(1, 1), ...many(1, 2, "globex")]);
    rig.start([brokenFor([1, 2])]);
    await untilRead(2n);
    expect(await redrive({}, { roles: ["auditor"] })).toEqual([]);
    const { database } = rig.recovery();
    const own = { filter: {}, scope: "globex", roles: ["sre"], beyondLimit: false };
    expect(await planRedrive(database, own)).toMatchObject([{ letters: 1, ready: 1 }]);
    const foreign = await rig.letters();
    const acme = foreign.find((one) => one["tenant_id"] === "acme");
    await expect(loadLetter(database, String(acme?.["id"]), "globex")).rejects.toMatchObject({
      code: "LETTER_UNKNOWN",
    });
  });

  it("waits while a dependency is away, and counts no try for it", async () => {
    await rig.createTopics([type]);
    await rig.publish(many(3));
    const first = rig.start([brokenFor([1])]);
    await untilRead(3n);
    await first.stop();
    let away = true;
    const asked = await redrive();
    rig.start([
      {
        ...ledgerProcessor(),
        apply: (tx, changes) =>
          away
            ? Promise.reject(new Fault("DATABASE_UNAVAILABLE", "planted"))
            : ledgerProcessor().apply(tx, changes),
      },
    ]);
    const [waiting] = await eventually(
      () => loadRedrives(rig.recovery().database, { scope: null, limit: 1 }),
      ([one]) => one?.waits_for === "DATABASE_UNAVAILABLE",
    );
    expect(waiting).toMatchObject({ processed: 0, failed: 0 });
    away = false;
    expect(await untilFinished(asked)).toMatchObject({ processed: 1, failed: 0 });
    expect(await rig.letters()).toMatchObject([{ attempts: 2 }]);
  });

  it("says of bytes that the vault cannot open that they cannot be had, and goes on with the rest", async () => {
    await rig.createTopics([type]);
    await rig.publish(many(3));
    const first = rig.start([brokenFor([0, 1, 2])]);
    await untilRead(3n);
    await first.stop();
    await rig.sql.query(
      `UPDATE vault.evidence SET sealed = '\\x00' WHERE evidence_id =
        (SELECT right(payload_ref, 36)::uuid FROM host.letters WHERE kafka_offset = 1)`,
    );
    const asked = await redrive();
    rig.start([ledgerProcessor()]);
    expect(await untilFinished(asked)).toMatchObject({ processed: 2, failed: 1 });
    expect((await rig.letters()).map((one) => one["code"])[1]).toBe("EVIDENCE_CORRUPT");
  });

  it("keeps to its rate with two hosts, and does each letter once", async () => {
    await rig.createTopics([type]);
    await rig.publish(many(30));
    const first = rig.start([brokenFor(Array.from({ length: 30 }, (_, n) => n))]);
    await untilRead(30n);
    await first.stop();
    const asked = await requestRedrive(
      rig.recovery(),
      { filter: {}, scope: null, roles: ["sre"], beyondLimit: false },
      { ...how, perSecond: 10 },
    );
    const startedMs = performance.now();
    rig.start([ledgerProcessor()]);
    rig.start([ledgerProcessor()]);
    const done = await untilFinished(asked);
    // Not faster than asked for: the last batch does not wait behind itself.
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(1_900);
    expect(done).toMatchObject({ processed: 30, duplicates: 0, failed: 0 });
    expect(await rig.ledger()).toMatchObject({ rows: 30, events: 30 });
  });

  it("leaves a letter for the next host when one dies in the middle, and counts its event once", async () => {
    await rig.createTopics([type]);
    await rig.publish(many(6));
    const first = rig.start([brokenFor([0, 1, 2, 3, 4, 5])]);
    await untilRead(6n);
    await first.stop();
    const asked = await redrive();
    let failures = 0;
    rig.start([
      {
        ...ledgerProcessor(),
        async apply(tx, changes) {
          await ledgerProcessor().apply(tx, changes);
          failures += 1;
          if (failures < 3)
            throw new Fault("DATABASE_UNAVAILABLE", "the connection broke after the statement");
          return [];
        },
      },
    ]);
    expect(await untilFinished(asked)).toMatchObject({ processed: 6, failed: 0 });
    expect(await rig.ledger()).toMatchObject({ rows: 6, events: 6 });
  });
});

describe("an archive", () => {
  it("puts letters away for good, each with an event, and no redrive takes them", async () => {
    await rig.createTopics([type]);
    await rig.publish(many(4));
    rig.start([brokenFor([1, 2])]);
    await untilRead(4n);
    const wish = { filter: { code: "PROJECTION_FAILED" }, scope: null };
    const deed = { by: "ann", reason: "test data with --token=abc123def456ghi789" };
    expect(await archiveLetters(rig.recovery(), { ...wish, roles: ["auditor"] }, deed)).toBe(0);
    expect(await archiveLetters(rig.recovery(), { ...wish, roles: ["sre"] }, deed)).toBe(2);
    expect(await archiveLetters(rig.recovery(), { ...wish, roles: ["sre"] }, deed)).toBe(0);
    expect(await redrive()).toEqual([]);
    const events = await said("fabric.letter.archived");
    expect(events).toHaveLength(2);
    expect(events[0]).toMatchObject({
      tenant_id: "acme",
      redacted_summary: { archived_by: "ann", code: "PROJECTION_FAILED" },
    });
    expect(
      JSON.stringify(
        events.map((one) => one.redacted_summary),
        (_key, value: unknown) => (typeof value === "bigint" ? Number(value) : value),
      ),
    ).not.toContain("abc123def456");
    expect(await rig.letters()).toMatchObject([{ archived_by: "ann" }, { archived_by: "ann" }]);
  });
});

describe("the role of recovery", () => {
  it("decides what becomes of letters, and reads no payload and changes no projection", async () => {
    const { database } = rig.recovery();
    for (const forbidden of [
      "SELECT FROM vault.evidence",
      "SELECT FROM vault.tenant_keys",
      "UPDATE host.letters SET redriven_at = now()",
      "UPDATE host.letters SET detail = ''",
      "DELETE FROM host.letters",
      "DELETE FROM host.inbox",
      "DELETE FROM outbox.events",
      "INSERT INTO outbox.parked (seq) VALUES (1)",
      "UPDATE audit.trail SET tenant_id = ''",
      "UPDATE access.tenants SET state = 'active'",
    ]) {
      await expect(database.query(forbidden), forbidden).rejects.toThrow(/permission denied/);
    }
  });
});
