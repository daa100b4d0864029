import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { createCapabilityKeysFile } from "../../services/gate/capability/capability-keys.ts";
import type { Host } from "../../services/host/host.ts";
import { startHost } from "../../services/host/host.ts";
import { createVaultLetterSealer } from "../../services/host/letter-sealer.ts";
import { createAuthKeysFile, loadAuthKeysFile } from "../../services/platform/auth-keys.ts";
import type { Role } from "../../services/platform/auth.ts";
import { issueLocalToken } from "../../services/platform/auth.ts";
import { systemClock } from "../../services/platform/clock.ts";
import { createMetrics } from "../../services/platform/metrics.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { openMemoryKek, openTenantKeys } from "../../services/platform/vault-seal.ts";
import { freePort } from "../../services/stack/ports.ts";
import { eventually } from "../harness/eventually.ts";
import { memoryCodec } from "../harness/memory-codec.ts";
import type { RelayRig } from "../harness/relay-rig.ts";
import { openRelayRig } from "../harness/relay-rig.ts";
import { gateLedgerProcessor, gateLedgerTypes } from "./ledger/gate-ledger-processor.ts";
import type { GateTrail, ToldEvent } from "./ledger/gate-trail.ts";
import { cleanTrail, compareGateTrail, prepareGateLedger } from "./ledger/gate-trail.ts";
import { GateTraffic } from "./ledger/gate-traffic.ts";
import { KilledService } from "./ledger/killed-service.ts";
import { askResource, startSampleEffects } from "./ledger/sample-effects.ts";
import type { SampleEffects } from "./ledger/sample-effects.ts";
import type { ChildSettings, GateGap } from "./processes/child.ts";

const tenant = "acme";
const codec = memoryCodec();
const stuckMs = 90_000;

let rig: RelayRig;
let sql: Database;
let hostDatabase: Database;
let host: Host;
let dir: string;
let gate: KilledService | undefined;
let effects: SampleEffects | undefined;

beforeEach(async () => {
  rig = await openRelayRig();
  sql = openDatabase({ url: rig.testDatabase.url, applicationName: "kill-gate", maxConnections: 4 });
  await sql.query("INSERT INTO access.tenants (tenant_id) VALUES ($1)", [tenant]);
  await prepareGateLedger(sql);
  for (const type of gateLedgerTypes) await rig.createTopic(type, 3);
  dir = await mkdtemp(join(tmpdir(), "fabric-kill-gate-"));
  // What the gate commits goes on its way by itself: neither relay nor host is disturbed here.
  rig.startRelay();
  hostDatabase = openDatabase({
    url: rig.testDatabase.roleUrl("fabric_host"),
    applicationName: "kill-gate-host",
    searchPath: ["host"],
    maxConnections: 6,
  });
  host = startHost({
    processors: [gateLedgerProcessor],
    endpoint: { brokers: inject("stack").kafkaBrokers, clientId: "kill-gate" },
    database: hostDatabase,
    codec,
    sealer: createVaultLetterSealer(openTenantKeys(hostDatabase, openMemoryKek("test", Buffer.alloc(32, 7)))),
    metrics: createMetrics(),
    log: rig.log,
    clock: systemClock,
    environment: "test",
    topicPrefix: rig.prefix,
    groupPrefix: rig.prefix,
    sessionTimeoutMs: 6_000,
    rebalanceTimeoutMs: 6_000,
    heartbeatIntervalMs: 500,
  });
});
afterEach(async () => {
  await gate?.kill();
  await effects?.close();
  [gate, effects] = [undefined, undefined];
  await host.stop();
  await hostDatabase.end();
  await rig.admin.deleteGroups([`${rig.prefix}${gateLedgerProcessor.name}`]).catch(() => undefined);
  await sql.end();
  await rig.close();
  await rm(dir, { recursive: true });
});

/** A gate in a process of its own, a resource, and callers that ask the same call until they have its answer. */
async function startCallers(
  broken?: ChildSettings["broken"],
): Promise<{ gate: KilledService; effects: SampleEffects; traffic: GateTraffic }> {
  const authKeysFile = join(dir, "auth.json");
  const capabilityKeysFile = join(dir, "capability.json");
  await Promise.all([createAuthKeysFile(authKeysFile), createCapabilityKeysFile(capabilityKeysFile)]);
  const { signing } = await loadAuthKeysFile(authKeysFile);
  const token = (role: Role): Promise<string> =>
    issueLocalToken({
      tenantId: tenant,
      subject: role,
      roles: [role],
      lifetimeSeconds: 3_600,
      privateKey: signing,
      clock: systemClock,
    });
  const port = await freePort();
  gate = new KilledService("ledger-gate", {
    name: "gate",
    brokers: [],
    topicPrefix: rig.prefix,
    databaseUrl: rig.testDatabase.roleUrl("fabric_gate"),
    gate: { port, authKeysFile, capabilityKeysFile },
    ...(broken === undefined ? {} : { broken }),
  });
  await gate.start();
  const gateUrl = `http://127.0.0.1:${String(port)}`;
  const resourceToken = await token("resource");
  effects = await startSampleEffects({ gateUrl, resourceToken });
  const traffic = new GateTraffic({
    gateUrl,
    runtimeToken: await token("runtime"),
    resourceToken,
    callers: 8,
    intentsPerSecond: 60,
    largeEvery: 4,
    resource: askResource(`http://127.0.0.1:${String(effects.port)}`),
  });
  traffic.start();
  return { gate, effects, traffic };
}

/** Ends the traffic, waits until all that was committed is projected, and compares. */
async function judge(
  traffic: GateTraffic,
  done: ReadonlyMap<string, number>,
  deadlineMs = stuckMs,
): Promise<GateTrail> {
  const isThrough = await traffic.stop(deadlineMs).catch(() => false);
  await rig.drained(stuckMs);
  const events: ToldEvent[] = [];
  for (const type of gateLedgerTypes) {
    for (const { value } of await rig.read(type)) {
      const { envelope } = await codec.decode(value);
      const { event_id: id, capability_id: capabilityId, execution } = envelope;
      events.push({ id, type, capabilityId, call: execution.tool_call_id });
    }
  }
  const count = async (): Promise<number> =>
    Number((await sql.query<{ n: bigint }>("SELECT sum(next_offset) AS n FROM host.watermarks")).rows[0]?.n);
  await eventually(count, (read) => read >= events.length, {
    what: "all topics read to their ends",
    deadlineMs: stuckMs,
  });
  return compareGateTrail({ sql, traffic, done, events, isThrough });
}

/** Decisions that are committed on these calls. */
const decided = async (calls: readonly string[]): Promise<number> =>
  Number(
    (
      await sql.query<{ n: bigint }>(
        "SELECT count(*) AS n FROM gate.decisions WHERE request ->> 'tool_call_id' = ANY ($1)",
        [calls],
      )
    ).rows[0]?.n,
  );

/** A gap, and what of the group's decisions has to be there once the process stands dead in it. */
const gaps: readonly { readonly gap: GateGap; readonly isCommitted: boolean | "unknown" }[] = [
  { gap: "store", isCommitted: false },
  { gap: "read", isCommitted: false },
  { gap: "write", isCommitted: false },
  { gap: "wire", isCommitted: "unknown" },
  { gap: "answer", isCommitted: true },
  { gap: "answered", isCommitted: true },
];

describe("a gate that is killed before each step of its commit, and asked again", () => {
  it(
    "decides each call once, with its evidence and its events, and no right is spent twice",
    { timeout: 300_000 },
    async () => {
      const { gate: killed, effects: resource, traffic } = await startCallers();
      const seen: Record<string, unknown> = {};
      const wanted: Record<string, unknown> = {};
      for (const { gap, isCommitted } of gaps) {
        const repeatedBefore = traffic.repeated;
        const calls = await killed.endIn(gap);
        const pending = traffic.pending().length;
        const held = await decided(calls);
        await killed.start();
        // Whoever lost the answer to a committed call asks it again and is told the same.
        if (gap === "answer")
          await eventually(() => traffic.repeated > repeatedBefore, Boolean, {
            what: "an answer that is repeated",
            deadlineMs: stuckMs,
          });
        seen[gap] = { underWay: pending > 0, committed: isCommitted === "unknown" ? null : held };
        wanted[gap] = {
          underWay: true,
          committed: isCommitted === "unknown" ? null : isCommitted ? calls.length : 0,
        };
      }
      // And at moments that nobody chose.
      for (let kill = 0; kill < 6; kill += 1) {
        await wait(300 + ((kill * 137) % 700));
        await killed.kill();
        await killed.start();
      }
      const trail = await judge(traffic, resource.done);
      console.info("kills of the gate", {
        intents: traffic.ended.size,
        repeated: traffic.repeated,
        ...trail,
      });
      expect(seen).toEqual(wanted);
      expect(traffic.ended.size).toBeGreaterThan(100);
      expect(trail).toEqual(cleanTrail);
    },
  );
});

describe("a planted fault of the gate", () => {
  /** Kills a broken gate in the gap, lets a good one go on, and compares. */
  const run = async (broken: NonNullable<ChildSettings["broken"]>, gap: GateGap): Promise<GateTrail> => {
    const { gate: killed, effects: resource, traffic } = await startCallers(broken);
    await killed.killIn(gap);
    const before = traffic.ended.size;
    // Callers that were told what is not so have given up: others come.
    traffic.burst(30);
    await eventually(() => traffic.ended.size > before + 20, Boolean, {
      what: "intents after the kill",
      deadlineMs: stuckMs,
    });
    // Callers that were told what is not so ask their resource for ever.
    return judge(traffic, resource.done, 8_000);
  };
  const options = { timeout: 300_000 };

  it("answer before the commit: callers were told what no decision holds", options, async () => {
    expect((await run("answer-first", "write")).toldWithoutDecision).toBeGreaterThan(0);
  });
  it("events after the commit: a decision stands without its events", options, async () => {
    expect((await run("events-after", "write")).eventsMissing).toBeGreaterThan(0);
  });
  it("no key of the call: who asks again is decided again", options, async () => {
    expect((await run("no-call-key", "answer")).decidedTwice).toBeGreaterThan(0);
  });
});
