import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadCostSettings, processorsWith } from "../../services/app/load-processors.ts";
import { openDirectProjector } from "../../services/app/project-directly.ts";
import type { Config } from "../../services/platform/config.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { createOutboxSink } from "../../services/seed/outbox-sink.ts";
import { generateSessions } from "../../services/seed/session.ts";
import type { TestDatabase } from "../harness/database.ts";
import { createTestDatabase } from "../harness/database.ts";
import { memoryCodec } from "../harness/memory-codec.ts";
import { projectDir } from "../harness/stack.ts";

const plan = { seed: 11, sessions: 12, startMs: Date.UTC(2026, 8, 1), days: 30, tenantPrefix: "seed" };
const sessions = [...generateSessions(plan)];
const events = sessions.flat();
let test: TestDatabase;
let admin: Database;

beforeAll(async () => {
  test = await createTestDatabase();
  admin = openDatabase({ url: test.url, applicationName: "seed-test", maxConnections: 2 });
});
afterAll(async () => {
  await admin.end();
  await test.drop();
});

const numberOf = async (sql: string): Promise<number> =>
  Number((await admin.query<{ n: bigint }>(sql)).rows[0]?.n);

describe("a seeded history", () => {
  it("fits every schema, and waits in the outbox for the relay, each event once", async () => {
    const host = openDatabase({
      url: test.roleUrl("fabric_host"),
      applicationName: "seed",
      maxConnections: 2,
    });
    const sink = createOutboxSink(host, memoryCodec());
    for (const one of sessions) await sink.add(one);
    await sink.end();
    await host.end();
    expect(await numberOf("SELECT count(*) AS n FROM outbox.events")).toBe(events.length);
  });

  it("goes straight into every projection, and once more changes no row of the trail", async () => {
    const config = { cost: { pricesDir: undefined, budgetsFile: undefined } } as unknown as Config;
    const place = { packageDir: projectDir, rootDir: projectDir };
    const processors = processorsWith(await loadCostSettings(config, place));
    for (let time = 0; time < 2; time += 1) {
      const projector = openDirectProjector(
        test.roleUrl("fabric_host"),
        time === 0 ? processors : processors.filter((one) => one.name === "audit"),
      );
      for (const one of sessions) await projector.add(one);
      await projector.end();
    }
    expect(await numberOf("SELECT count(*) AS n FROM audit.trail")).toBe(events.length);
    const modelCalls = events.filter((one) => one.type === "agent.model.completed").length;
    expect(await numberOf("SELECT count(*) AS n FROM analytics.cost_calls WHERE kind = 'model'")).toBe(
      modelCalls,
    );
    expect(await numberOf("SELECT count(*) AS n FROM analytics.eval_episodes")).toBe(sessions.length);
    expect(await numberOf("SELECT count(*) AS n FROM analytics.trace_goals")).toBe(sessions.length);
  });
});
