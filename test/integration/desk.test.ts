import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { loadBookedMonths } from "../../processors/cost/closings.ts";
import { loadEvidence } from "../../processors/takeover/queries.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { Fault } from "../../schemas/faults.ts";
import { createActions } from "../../services/app/actions.ts";
import { loadCorrectedCall } from "../../services/app/corrected-call.ts";
import type { DeskDeps } from "../../services/desk/desk-deps.ts";
import { claimItem, noteItem, reassignItem, resolveItem } from "../../services/desk/item-commands.ts";
import { listItems, loadItem } from "../../services/desk/item-row.ts";
import type { Desk } from "../../services/desk/server.ts";
import { createDesk } from "../../services/desk/server.ts";
import { announceBreaches } from "../../services/desk/sla-watch.ts";
import type { Role } from "../../services/platform/auth.ts";
import { systemClock } from "../../services/platform/clock.ts";
import { createLog } from "../../services/platform/log.ts";
import { createMetrics } from "../../services/platform/metrics.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { typeCommand } from "../harness/command-line.ts";
import type { TestDatabase } from "../harness/database.ts";
import { createTestDatabase } from "../harness/database.ts";
import { eventually } from "../harness/eventually.ts";
import { memoryCodec } from "../harness/memory-codec.ts";
import { applyEvents, baseMs, deferredEvent, unresolvedEvent } from "../harness/takeover-rig.ts";

let database: TestDatabase;
/** As superuser, for looking at what came of it. */
let sql: Database;
let host: Database;
let desks: Database[];
const codec = memoryCodec();
const deps = (n = 0): DeskDeps => {
  const one = desks[n];
  if (one === undefined) throw new Error("no such desk");
  return { database: one, codec, clock: systemClock, environment: "test" };
};

beforeAll(async () => {
  database = await createTestDatabase();
  const open = (role: string | null, maxConnections: number, searchPath?: string[]) =>
    openDatabase({
      url: role === null ? database.url : database.roleUrl(role),
      applicationName: "desk-test",
      maxConnections,
      ...(searchPath === undefined ? {} : { searchPath }),
    });
  sql = open(null, 2);
  host = open("fabric_host", 2, ["takeover"]);
  desks = [open("fabric_desk", 8), open("fabric_desk", 8)];
});
afterEach(async () => {
  await sql.query(
    "TRUNCATE takeover.evidence, takeover.item_events, takeover.letter_events, takeover.items, desk.claims, desk.breaches, outbox.events",
  );
});
afterAll(async () => {
  for (const one of [sql, host, ...desks]) await one.end();
  await database.drop();
});

const said = async (): Promise<Envelope[]> => {
  const found = await sql.query<{ payload: Buffer }>("SELECT payload FROM outbox.events ORDER BY seq");
  return Promise.all(found.rows.map(async ({ payload }) => (await codec.decode(payload)).envelope));
};
/** The queue reads what the desk said, as the host would hand it over. */
const catchUp = async (): Promise<void> => {
  await applyEvents(host, await said());
};
let seconds = 0;
/** An item that waits; `agoMs` before now. */
async function openItem(plan = "sha256:a", agoMs = 60_000): Promise<string> {
  seconds += 1;
  const second = (Date.now() - agoMs - baseMs) / 1_000;
  const [opened] = await applyEvents(host, [deferredEvent(plan, { name: `d${String(seconds)}`, second })]);
  if (opened === undefined) throw new Error("nothing was opened");
  return opened.dedupeKey;
}
const target = (itemId: string, by = "ann") => ({ tenantId: "acme", itemId, by });
const codeOf = (error: unknown): string => (error instanceof Fault ? error.code : String(error));

describe("a claim", () => {
  it("gives an item to one of many who claim it at once", async () => {
    const itemId = await openItem();
    const tries = await Promise.allSettled(
      Array.from({ length: 8 }, (_, n) => claimItem(deps(n % 2), target(itemId, `person${String(n)}`))),
    );
    const won = tries.filter((one) => one.status === "fulfilled");
    expect(won.length).toBe(1);
    expect(tries.flatMap((one) => (one.status === "rejected" ? [codeOf(one.reason)] : []))).toEqual(
      Array(7).fill("TAKEOVER_HELD"),
    );
    const events = await said();
    expect(events).toMatchObject([
      {
        type: "fabric.takeover.claimed",
        origin: "human",
        correlation_id: "cor_1",
        redacted_summary: { item_id: itemId, claimed_by: won[0]?.value.claimedBy },
      },
    ]);
    expect(events[0]?.actor.user_id).toBe(won[0]?.value.claimedBy);
  });

  it("is seen at once, though the projection has not heard of it", async () => {
    const itemId = await openItem();
    await claimItem(deps(), target(itemId));
    expect(await loadItem(sql, "acme", itemId)).toMatchObject({ state: "claimed", claimedBy: "ann" });
    expect((await sql.query("SELECT state FROM takeover.items")).rows).toEqual([{ state: "open" }]);
    await catchUp();
    expect((await sql.query("SELECT state, assigned_to FROM takeover.items")).rows).toEqual([
      { state: "claimed", assigned_to: "ann" },
    ]);
  });

  it("can be made longer by its holder, and taken by another when it is over", async () => {
    const itemId = await openItem();
    const first = await claimItem(deps(), target(itemId), 60_000);
    const longer = await claimItem(deps(), target(itemId), 120_000);
    expect(longer.leaseEndsAt?.getTime()).toBeGreaterThan(first.leaseEndsAt?.getTime() ?? Infinity);
    await expect(claimItem(deps(1), target(itemId, "bob"))).rejects.toThrow(/ann holds it until/);
    await sql.query("UPDATE desk.claims SET lease_ends_at = clock_timestamp() - interval '1 second'");
    expect(await loadItem(sql, "acme", itemId)).toMatchObject({ state: "open", claimedBy: null });
    expect(await claimItem(deps(1), target(itemId, "bob"))).toMatchObject({ claimedBy: "bob" });
  });

  it("rolls back with its event when the outbox does not take it", async () => {
    const itemId = await openItem();
    const broken: DeskDeps = {
      ...deps(),
      codec: {
        encode: () => {
          throw new Fault("SCHEMA_NOT_REGISTERED");
        },
      },
    };
    await expect(claimItem(broken, target(itemId))).rejects.toThrow(Fault);
    expect((await sql.query("SELECT FROM desk.claims")).rowCount).toBe(0);
  });

  it("is for items of the own tenant", async () => {
    const itemId = await openItem();
    await expect(claimItem(deps(), { ...target(itemId), tenantId: "globex" })).rejects.toThrow(
      /no such takeover item/,
    );
    expect(await listItems(sql, "globex", { state: "all", limit: 10 })).toEqual([]);
  });

  it("can be handed over by its holder alone, and then is the other's", async () => {
    const itemId = await openItem();
    await claimItem(deps(), target(itemId));
    await expect(reassignItem(deps(), target(itemId, "bob"), "bob")).rejects.toThrow(/somebody else/);
    expect(await reassignItem(deps(), target(itemId), "eve")).toMatchObject({ claimedBy: "eve" });
    await expect(resolveItem(deps(), target(itemId), nothing)).rejects.toThrow(/eve holds it/);
    expect((await said()).at(-1)?.redacted_summary).toMatchObject({
      from_person: "ann",
      to_person: "eve",
      reassigned_by: "ann",
    });
  });
});

const nothing = { outcome: "no_action", note: null, proposal: null } as const;

describe("a resolution", () => {
  it("closes an item once, and the same cause later is a new item", async () => {
    const itemId = await openItem();
    const tries = await Promise.allSettled(
      ["ann", "bob"].map((by) => resolveItem(deps(), target(itemId, by), nothing)),
    );
    expect(tries.map((one) => one.status).sort()).toEqual(["fulfilled", "rejected"]);
    await expect(claimItem(deps(), target(itemId))).rejects.toThrow(/closed already/);
    expect((await said()).length).toBe(1);
    await catchUp();
    const next = await openItem("sha256:a", -60_000);
    expect(next).not.toBe(itemId);
    expect(await listItems(sql, "acme", { state: "all", limit: 10 })).toMatchObject([
      { itemId: next, generation: 2, state: "open" },
      { itemId, generation: 1, state: "resolved" },
    ]);
  });

  it("proposes and never acts: the desk's role can touch nothing else", async () => {
    const itemId = await openItem();
    await resolveItem(deps(), target(itemId), {
      outcome: "approval_proposed",
      note: "seen with --token=abc123def456ghi789",
      proposal: "ask for approval of sha256:a again",
    });
    const [event, ...others] = await said();
    expect(others).toEqual([]);
    expect(event?.redacted_summary).toMatchObject({
      outcome: "approval_proposed",
      proposal: "ask for approval of sha256:a again",
    });
    expect(JSON.stringify(event?.redacted_summary)).not.toContain("abc123def456ghi789");
    const { database: desk } = deps();
    for (const forbidden of [
      "UPDATE gate.approvals SET state = 'approved'",
      "SELECT FROM gate.capabilities",
      "UPDATE host.letters SET archived_at = now()",
      "UPDATE takeover.items SET state = 'open'",
      "DELETE FROM desk.breaches",
      "SELECT FROM vault.evidence",
      "INSERT INTO outbox.events (id) VALUES (gen_random_uuid())",
    ]) {
      await expect(desk.query(forbidden), forbidden).rejects.toThrow(/permission denied/);
    }
  });

  it("can be noted on later, by who does not hold it", async () => {
    const itemId = await openItem();
    await resolveItem(deps(), target(itemId), nothing);
    await noteItem(deps(), target(itemId, "bob"), "it came of the outage");
    await catchUp();
    expect(await loadItem(sql, "acme", itemId)).toMatchObject({ state: "resolved", notes: 1 });
  });
});

describe("due times", () => {
  it("tells a breach once, with two desks", async () => {
    const late = await openItem("sha256:late", 5 * 3_600_000);
    await openItem("sha256:fresh", 60_000);
    const closed = await openItem("sha256:closed", 6 * 3_600_000);
    await resolveItem(deps(), target(closed), nothing);
    const counts = await Promise.all(Array.from({ length: 6 }, (_, n) => announceBreaches(deps(n % 2))));
    expect(counts.reduce((sum, one) => sum + one, 0)).toBe(1);
    expect(await announceBreaches(deps(1))).toBe(0);
    const told = (await said()).filter((one) => one.type === "fabric.takeover.breached");
    expect(told).toMatchObject([{ origin: "schedule", redacted_summary: { item_id: late } }]);
    await catchUp();
    expect(await listItems(sql, "acme", { state: "breached", limit: 10 })).toMatchObject([
      { itemId: late, isOverdue: true },
    ]);
    expect((await loadItem(sql, "acme", late)).breachedAt).not.toBeNull();
  });

  it("is told of every item, in parts when there are many", async () => {
    for (let n = 0; n < 5; n += 1) await openItem(`sha256:${String(n)}`, 5 * 3_600_000);
    expect([
      await announceBreaches(deps(), 3),
      await announceBreaches(deps(), 3),
      await announceBreaches(deps(), 3),
    ]).toEqual([3, 2, 0]);
  });
});

describe("over HTTP", () => {
  let desk: Desk;
  let url: string;
  let home: string;
  const people: Record<string, { subject: string; roles: Role[] }> = {
    "sre-ann": { subject: "ann", roles: ["sre"] },
    "approver-bob": { subject: "bob", roles: ["approver"] },
    "analyst-dan": { subject: "dan", roles: ["analyst"] },
    "admin-ada": { subject: "ada", roles: ["admin"] },
    "agent-run": { subject: "developer", roles: ["runtime"] },
  };
  beforeEach(async () => {
    desk = createDesk({
      ...deps(),
      log: createLog({ service: "desk", level: "silent" }),
      metrics: createMetrics(),
      authenticator: {
        authenticate(token) {
          const known = people[token];
          if (known === undefined) return Promise.reject(new Fault("TOKEN_INVALID"));
          return Promise.resolve({ ...known, tenantId: "acme", issuer: "test" });
        },
      },
      loadEvidence,
      loadCorrectedCall,
      loadBookedMonths,
      probes: {},
      watchEveryMs: 50,
    });
    url = await desk.app.listen({ host: "127.0.0.1", port: 0 });
    home = await mkdtemp(join(tmpdir(), "desk-"));
    const dir = join(home, ".fabric", "local", "services");
    await mkdir(dir, { recursive: true });
    for (const token of Object.keys(people)) await writeFile(join(home, token), token);
    await writeFile(
      join(dir, "fabric.env"),
      `FABRIC_KAFKA_BROKERS=127.0.0.1:1\nFABRIC_REGISTRY_URL=http://127.0.0.1:1\nFABRIC_DESK_URL=${url}\n`,
    );
  });
  afterEach(async () => {
    await desk.close();
    await rm(home, { recursive: true, force: true });
  });

  const ask = async (token: string, method: string, path: string, body?: object) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  /** A command line, as somebody types it. */
  const run = (argv: readonly string[], token = "sre-ann") =>
    typeCommand(
      [...argv, "--token-file", join(home, token)],
      createActions({ packageDir: home, rootDir: home }),
    );

  it("is worked on by people with the role, read by more, and closed to agents", async () => {
    const itemId = await openItem();
    expect((await ask("agent-run", "GET", "/v1/takeover")).status).toBe(403);
    expect((await ask("analyst-dan", "GET", "/v1/takeover")).body["items"]).toMatchObject([
      { item_id: itemId, state: "open", occurrences: 1 },
    ]);
    expect((await ask("analyst-dan", "POST", `/v1/takeover/${itemId}/claim`)).status).toBe(403);
    expect((await ask("sre-ann", "POST", `/v1/takeover/${itemId}/claim`)).status).toBe(200);
    expect(await ask("approver-bob", "POST", `/v1/takeover/${itemId}/claim`, {})).toMatchObject({
      status: 409,
      body: { code: "TAKEOVER_HELD" },
    });
  });

  it("refuses what does not fit, and an id that is none, without asking the database", async () => {
    const itemId = await openItem();
    for (const [path, body] of [
      [`/v1/takeover/${itemId}/resolve`, { outcome: "done" }],
      [`/v1/takeover/${itemId}/resolve`, { outcome: "redrive_proposed" }],
      [`/v1/takeover/${itemId}/resolve`, { outcome: "no_action", proposal: "redrive" }],
      [`/v1/takeover/${itemId}/reassign`, { to: "a\u0000b" }],
      [`/v1/takeover/${itemId}/note`, {}],
      ["/v1/episodes/ep_1/label", { label: "Good" }],
      ["/v1/episodes/ep_1/label", { label: "good", score: 101 }],
    ] as const) {
      expect([path, body, (await ask("sre-ann", "POST", path, body)).status]).toEqual([path, body, 400]);
    }
    expect((await ask("sre-ann", "GET", "/v1/takeover/tko_%00")).status).toBe(404);
    expect((await ask("sre-ann", "GET", "/v1/takeover?state=odd")).status).toBe(400);
    expect(await said()).toEqual([]);
  });

  it("withholds vault references from who only counts", async () => {
    await applyEvents(host, [
      {
        ...unresolvedEvent("eff_1", { name: "v1", second: (Date.now() - baseMs) / 1_000 }),
        payload_ref: "vault://acme/raw/1",
      },
    ]);
    const [item] = await listItems(sql, "acme", { state: "open", limit: 1 });
    const path = `/v1/takeover/${item?.itemId ?? ""}`;
    expect((await ask("sre-ann", "GET", path)).body["evidence"]).toMatchObject({
      payload_refs: ["vault://acme/raw/1"],
    });
    expect((await ask("analyst-dan", "GET", path)).body["evidence"]).toMatchObject({
      payload_refs: [],
      payload_refs_withheld: 1,
    });
  });

  it("announces what is late by itself", async () => {
    const itemId = await openItem("sha256:late", 5 * 3_600_000);
    const told = await eventually(said, (events) => events.length > 0, { what: "a breach" });
    expect(told).toMatchObject([{ redacted_summary: { item_id: itemId } }]);
  });

  it("is a command line for who works on the queue", async () => {
    expect(await run(["takeover", "list"])).toMatchObject({
      exit: 0,
      stdout: "nothing waits for a person\n",
    });
    const itemId = await openItem();
    const list = await run(["takeover", "list"]);
    expect(list.stdout).toMatch(/ITEM +STATE +DUE +AGE +TIMES +HELD BY +CAUSE +WHAT/);
    expect(list.stdout).toContain("shell.run on host:db1 waits for repo.state");
    const claimed = await run(["takeover", "claim", itemId]);
    expect([claimed.exit, claimed.stdout]).toEqual([0, expect.stringContaining("it is yours until")]);
    const held = await run(["takeover", "claim", itemId], "approver-bob");
    expect([held.exit, held.stderr]).toEqual([1, expect.stringMatching(/TAKEOVER_HELD.*ann holds it/)]);
    await run(["takeover", "note", itemId, "asked the owner"]);
    await catchUp();
    const shown = await run(["takeover", "show", itemId]);
    expect(shown.stdout).toContain("why it is here");
    expect(shown.stdout).toContain("noted: asked the owner");
    const json = await run(["--json", "takeover", "list", "--state", "claimed"]);
    expect(JSON.parse(json.stdout)).toMatchObject([{ item_id: itemId, claimed_by: "ann" }]);
    const done = await run([
      "takeover",
      "resolve",
      itemId,
      "--outcome",
      "incident_proposed",
      "--proposal",
      "declare a leak for s1",
    ]);
    expect(done.stdout).toContain("what is proposed is for a person to do");
    expect((await run(["takeover", "claim", itemId])).stderr).toMatch(/TAKEOVER_CLOSED/);
    const refused = await run(["takeover", "claim", itemId], "analyst-dan");
    expect([refused.exit, refused.stderr]).toEqual([
      4,
      expect.stringContaining("fabric tokens issue --role sre"),
    ]);
    expect((await run(["takeover", "list", "--state", "odd"])).exit).toBe(2);
  });

  it("erases a tenant's episodes as an event of its administrator, who names the tenant once more", async () => {
    const erase = (tenant: string, token: string) =>
      run(["eval", "erase", "--tenant", tenant, "--reason", "the contract ended"], token);
    expect((await erase("acme", "sre-ann")).exit).toBe(4);
    expect((await erase("globex", "admin-ada")).stderr).toMatch(/REQUEST_INVALID.*`acme`/);
    expect(await said()).toEqual([]);
    const done = await erase("acme", "admin-ada");
    expect([done.exit, done.stderr]).toEqual([0, ""]);
    const [event] = await said();
    expect(event).toMatchObject({
      type: "fabric.tenant.erased",
      tenant_id: "acme",
      origin: "human",
      redacted_summary: { erased_by: "ada", reason: "the contract ended" },
    });
    expect((event?.redacted_summary as { erased_until_at: number }).erased_until_at).toBe(event?.recorded_at);
  });

  it("labels an episode as an event of its author, also one that nobody knows yet", async () => {
    const done = await run(
      ["eval", "label", "ep_1", "unsafe", "--score", "20", "--note", "took --token=abc123def456ghi789"],
      "analyst-dan",
    );
    expect([done.exit, done.stderr]).toEqual([0, ""]);
    const [event] = await said();
    expect(event).toMatchObject({
      type: "agent.episode.labelled",
      tenant_id: "acme",
      redacted_summary: { episode_id: "ep_1", label: "unsafe", score: 20, author: "dan" },
    });
    expect(JSON.stringify(event?.redacted_summary)).not.toContain("abc123def456ghi789");
  });
});
