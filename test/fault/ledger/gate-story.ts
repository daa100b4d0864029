import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inject } from "vitest";
import { createCapabilityKeysFile } from "../../../services/gate/capability/capability-keys.ts";
import { startHost } from "../../../services/host/host.ts";
import { createVaultLetterSealer } from "../../../services/host/letter-sealer.ts";
import { createAuthKeysFile, loadAuthKeysFile } from "../../../services/platform/auth-keys.ts";
import type { Role } from "../../../services/platform/auth.ts";
import { issueLocalToken } from "../../../services/platform/auth.ts";
import { systemClock } from "../../../services/platform/clock.ts";
import { createMetrics } from "../../../services/platform/metrics.ts";
import type { Database } from "../../../services/platform/postgres.ts";
import { openDatabase } from "../../../services/platform/postgres.ts";
import { openMemoryKek, openTenantKeys } from "../../../services/platform/vault-seal.ts";
import { freePort } from "../../../services/stack/ports.ts";
import { eventually } from "../../harness/eventually.ts";
import { memoryCodec } from "../../harness/memory-codec.ts";
import type { RelayRig } from "../../harness/relay-rig.ts";
import { openRelayRig } from "../../harness/relay-rig.ts";
import type { ChildSettings } from "../processes/child.ts";
import { gateLedgerProcessor, gateLedgerTypes } from "./gate-ledger-processor.ts";
import type { GateTrail, ToldEvent } from "./gate-trail.ts";
import { compareGateTrail, prepareGateLedger } from "./gate-trail.ts";
import { GateTraffic } from "./gate-traffic.ts";
import { KilledService } from "./killed-service.ts";
import type { SampleEffects } from "./sample-effects.ts";
import { askResource, startSampleEffects } from "./sample-effects.ts";

/** Longest wait for anything of a story. */
export const stuckMs = 90_000;
const tenant = "acme";

/** Gates in processes of their own, callers and a resource before them, relay and host behind them. */
export interface GateStory {
  readonly rig: RelayRig;
  /** As superuser. */
  readonly sql: Database;
  /** A gate that is not started; its address stays the same when it is started again. */
  gate(
    name: string,
    settings?: Pick<ChildSettings, "broken" | "release">,
  ): Promise<{ readonly gate: KilledService; readonly url: string }>;
  /** Callers that ask the same call, of one gate after the other, until they have its answer. */
  startCallers(urls: readonly string[]): Promise<GateTraffic>;
  /** Ends the callers, waits until all that was committed is projected, and compares. */
  judge(deadlineMs?: number): Promise<GateTrail>;
  close(): Promise<void>;
}

export async function openGateStory(): Promise<GateStory> {
  const rig = await openRelayRig();
  const sql = openDatabase({ url: rig.testDatabase.url, applicationName: "gate-story", maxConnections: 4 });
  await sql.query("INSERT INTO access.tenants (tenant_id) VALUES ($1)", [tenant]);
  await prepareGateLedger(sql);
  for (const type of gateLedgerTypes) await rig.createTopic(type, 3);
  const dir = await mkdtemp(join(tmpdir(), "fabric-gate-story-"));
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
  const codec = memoryCodec();
  // What the gates commit goes on its way by itself: neither relay nor host is disturbed here.
  rig.startRelay();
  const hostDatabase = openDatabase({
    url: rig.testDatabase.roleUrl("fabric_host"),
    applicationName: "gate-story-host",
    searchPath: ["host"],
    maxConnections: 6,
  });
  const kek = openMemoryKek("test", Buffer.alloc(32, 7));
  const host = startHost({
    processors: [gateLedgerProcessor],
    endpoint: { brokers: inject("stack").kafkaBrokers, clientId: "gate-story" },
    database: hostDatabase,
    codec,
    sealer: createVaultLetterSealer(openTenantKeys(hostDatabase, kek)),
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
  const gates: KilledService[] = [];
  let effects: SampleEffects | undefined;
  let traffic: GateTraffic | undefined;

  const readEvents = async (): Promise<ToldEvent[]> => {
    const events: ToldEvent[] = [];
    for (const type of gateLedgerTypes) {
      for (const { value } of await rig.read(type)) {
        const { event_id: id, capability_id: capabilityId, execution } = (await codec.decode(value)).envelope;
        events.push({ id, type, capabilityId, call: execution.tool_call_id });
      }
    }
    return events;
  };
  const read = async (): Promise<number> =>
    Number((await sql.query<{ n: bigint }>("SELECT sum(next_offset) AS n FROM host.watermarks")).rows[0]?.n);

  return {
    rig,
    sql,
    async gate(name, settings = {}) {
      const port = await freePort();
      const gate = new KilledService("ledger-gate", {
        name,
        brokers: [],
        topicPrefix: rig.prefix,
        databaseUrl: rig.testDatabase.roleUrl("fabric_gate"),
        gate: { port, authKeysFile, capabilityKeysFile },
        ...settings,
      });
      gates.push(gate);
      return { gate, url: `http://127.0.0.1:${String(port)}` };
    },
    async startCallers(urls) {
      let turn = 0;
      const gateUrl = (): string => urls[(turn += 1) % urls.length] ?? "";
      const resourceToken = await token("resource");
      effects = await startSampleEffects({ gateUrl, resourceToken });
      traffic = new GateTraffic({
        gateUrl,
        runtimeToken: await token("runtime"),
        resourceToken,
        callers: 8,
        intentsPerSecond: 60,
        largeEvery: 4,
        resource: askResource(`http://127.0.0.1:${String(effects.port)}`),
      });
      traffic.start();
      return traffic;
    },
    async judge(deadlineMs = stuckMs) {
      if (traffic === undefined || effects === undefined) throw new Error("no caller was started");
      const isThrough = await traffic.stop(deadlineMs).catch(() => false);
      await rig.drained(stuckMs);
      const events = await readEvents();
      await eventually(read, (n) => n >= events.length, {
        what: "all topics read to their ends",
        deadlineMs: stuckMs,
      });
      return compareGateTrail({ sql, traffic, done: effects.done, events, isThrough });
    },
    async close() {
      await traffic?.stop(0).catch(() => false);
      await Promise.all(gates.map((one) => one.kill()));
      await effects?.close();
      await host.stop();
      await hostDatabase.end();
      await rig.admin.deleteGroups([`${rig.prefix}${gateLedgerProcessor.name}`]).catch(() => undefined);
      await sql.end();
      await rig.close();
      await rm(dir, { recursive: true });
    },
  };
}
