import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Fault } from "../../schemas/faults.ts";
import { createActions } from "../../services/app/actions.ts";
import type { Role } from "../../services/platform/auth.ts";
import type { HttpServer } from "../../services/platform/http.ts";
import { createHttpServer } from "../../services/platform/http.ts";
import { createLog } from "../../services/platform/log.ts";
import { createMetrics } from "../../services/platform/metrics.ts";
import { recoveryAccess, registerRecoveryRoutes } from "../../services/recovery/routes.ts";
import { typeCommand } from "../harness/command-line.ts";
import { eventually } from "../harness/eventually.ts";
import type { HostRig } from "../harness/host-rig.ts";
import { ledgerProcessor, modelEvent, openHostRig } from "../harness/host-rig.ts";

const people: Record<string, { subject: string; roles: Role[]; tenantId: string }> = {
  "sre-ann": { subject: "ann", roles: ["sre"], tenantId: "fabric" },
  "sre-of-acme": { subject: "bob", roles: ["sre"], tenantId: "acme" },
  "auditor-cyd": { subject: "cyd", roles: ["auditor"], tenantId: "fabric" },
  "agent-run": { subject: "developer", roles: ["runtime"], tenantId: "acme" },
};

let rig: HostRig;
let app: HttpServer;
let home: string;
beforeEach(async () => {
  rig = await openHostRig();
  await rig.sql.query("INSERT INTO access.tenants (tenant_id) VALUES ('acme'), ('globex')");
  app = createHttpServer({
    log: createLog({ service: "desk", level: "silent" }),
    metrics: createMetrics(),
    authenticator: {
      authenticate(token) {
        const known = people[token];
        return known === undefined
          ? Promise.reject(new Fault("TOKEN_INVALID"))
          : Promise.resolve({ ...known, issuer: "test" });
      },
    },
    access: recoveryAccess,
    probes: {},
  });
  registerRecoveryRoutes(app, rig.recovery());
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  home = await mkdtemp(join(tmpdir(), "letters-"));
  const dir = join(home, ".fabric", "local", "services");
  await mkdir(dir, { recursive: true });
  for (const token of Object.keys(people)) await writeFile(join(home, token), token);
  await writeFile(
    join(dir, "fabric.env"),
    `FABRIC_KAFKA_BROKERS=127.0.0.1:1\nFABRIC_REGISTRY_URL=http://127.0.0.1:1\nFABRIC_DESK_URL=${url}\nFABRIC_TOPIC_PREFIX=${rig.prefix}\n`,
  );
});
afterEach(async () => {
  await app.close();
  await rig.close();
  await rm(home, { recursive: true, force: true });
});

/** A command line, as somebody types it. */
const run = (argv: readonly string[], token = "sre-ann") =>
  typeCommand(
    [...argv, "--token-file", join(home, token)],
    createActions({ packageDir: home, rootDir: home }),
  );

const type = "agent.model.completed" as const;
const untilRead = (offset: bigint) =>
  eventually(
    () => rig.watermarks(),
    (marks) => marks.get(`${type}/0`) === offset,
    { deadlineMs: 15_000 },
  );
const brokenFor = (numbers: readonly number[]) =>
  ledgerProcessor({
    project: (event) => {
      if (numbers.includes(Number(event.redacted_summary.output_tokens))) throw new Error("no number I know");
      return [{ eventId: event.event_id, n: event.redacted_summary.output_tokens ?? 0n }];
    },
  });

it("takes a poison record from the letter to its row, by the command line", async () => {
  await rig.createTopics([type]);
  expect(await run(["dlq", "list"])).toMatchObject({ stderr: "", stdout: "no letter\n" });
  await rig.publish([modelEvent(0), modelEvent(1), modelEvent(2, "globex"), modelEvent(3)]);
  const broken = rig.start([brokenFor([1, 2])]);
  await untilRead(4n);
  await broken.stop();
  await rig.publishBytes(type, [Buffer.from('{"json":1}')]);

  const list = await run(["dlq", "list", "--processor", "ledger", "--topic", type, "--newer-than", "1h"]);
  expect(list.stdout).toMatch(/PROCESSOR +CAUSE +TOPIC +LETTERS +WAITING +TENANTS/);
  expect(list.stdout).toMatch(/ledger +PROJECTION_FAILED +\S+ +2 +0 +2/);
  expect((await run(["dlq", "list", "--older-than", "1h"])).stdout).toBe("no letter\n");
  expect((await run(["quarantine", "list"])).stdout).toBe("no letter\n");

  const each = JSON.parse((await run(["--json", "dlq", "list", "--each"])).stdout) as {
    letter_id: string;
    tenant_id: string;
  }[];
  const acme = each.find((one) => one.tenant_id === "acme");
  const shown = await run(["dlq", "show", acme?.letter_id ?? ""]);
  expect(shown.stdout).toMatch(/bytes +vault:\/\/acme\/[0-9a-f-]{36}, in the vault/);
  expect(shown.stdout).toMatch(/may redrive +sre/);
  // A tenant's own SRE sees the own letter, and not that there is another one.
  const own = JSON.parse((await run(["--json", "dlq", "list", "--each"], "sre-of-acme")).stdout) as unknown[];
  expect(own).toMatchObject([{ letter_id: acme?.letter_id }]);

  const redrive = ["dlq", "redrive", "--processor", "ledger", "--reason", "ledger 2 is out"];
  const dry = await run([...redrive, "--dry-run"]);
  expect([dry.exit, dry.stdout]).toEqual([0, expect.stringContaining("2 would be sent")]);
  expect(await rig.letters()).toMatchObject([{ redrive_id: null }, { redrive_id: null }]);
  expect((await run(["dlq", "redrive", "--reason", "x"])).exit).toBe(2);
  expect((await run(redrive, "auditor-cyd")).exit).toBe(4);
  expect((await run(["dlq", "list"], "agent-run")).exit).toBe(4);

  rig.start([ledgerProcessor()]);
  await untilRead(5n);
  const done = await run(redrive);
  expect([done.exit, done.stdout]).toEqual([
    0,
    expect.stringMatching(/ledger +2 +2 +0 +0 +0 +ann +finished/),
  ]);
  expect(await rig.ledger()).toEqual({ rows: 4, events: 4, sum: 6 });
  expect((await run(["dlq", "list", "--state", "redriven"])).stdout).toContain("PROJECTION_FAILED");
  expect((await run(redrive)).exit).toBe(1);

  // What can never be read comes back, and is put away.
  const again = await run([
    "quarantine",
    "redrive",
    "--all",
    "--reason",
    "perhaps the registry knows it now",
  ]);
  expect([again.exit, again.stdout]).toEqual([1, expect.stringMatching(/ledger +1 +0 +0 +1 +0/)]);
  const gone = await run(["quarantine", "archive", "--cause", "NOT_AVRO", "--reason", "somebody tried JSON"]);
  expect([gone.exit, gone.stdout]).toEqual([0, "1 put away\n"]);
  expect((await run(["quarantine", "list"])).stdout).toBe("no letter\n");
  expect((await run(["dlq", "redrives"])).stdout.split("\n")).toHaveLength(5);
});

it("stops a redrive from another terminal, and lets it go on, by the command line", async () => {
  await rig.createTopics([type]);
  await rig.publish(Array.from({ length: 30 }, (_, n) => modelEvent(n)));
  const numbers = Array.from({ length: 30 }, (_, n) => n);
  const broken = rig.start([brokenFor(numbers)]);
  await untilRead(30n);
  await broken.stop();
  rig.start([ledgerProcessor()]);
  const send = run(["dlq", "redrive", "--all", "--rate", "2", "--reason", "ledger 2 is out"]);
  await eventually(
    () => rig.ledger(),
    ({ rows }) => rows > 0,
    { deadlineMs: 15_000 },
  );
  expect((await run(["dlq", "stop", "--reason", "x"])).exit).toBe(2);
  expect((await run(["dlq", "stop", "--all", "--reason", "x"], "auditor-cyd")).exit).toBe(4);
  const stopped = await run(["dlq", "stop", "--all", "--reason", "it counts twice"]);
  expect([stopped.exit, stopped.stdout]).toEqual([
    0,
    expect.stringMatching(/^stopped\n[0-9a-f-]{36} of ledger: \d+ letters keep waiting for it\n$/),
  ]);
  // Whoever waits at the first terminal is told.
  const told = await send;
  expect([told.exit, told.stdout]).toEqual([1, expect.stringMatching(/stopped .* by ann: it counts twice/)]);
  const list = await run(["dlq", "redrives"]);
  expect(list.stdout).toMatch(/ledger +30 +\d+ +0 +0 +0 +ann +stopped .* by ann: it counts twice/);
  expect((await run(["quarantine", "stop", "--all", "--reason", "x"])).stdout).toBe(
    "nothing was under way\n",
  );

  const id = /[0-9a-f-]{36}/.exec(stopped.stdout)?.[0] ?? "";
  const resumed = await run(["dlq", "resume", id, "--reason", "it does not"]);
  expect([resumed.exit, resumed.stdout]).toEqual([0, expect.stringContaining(`go on\n${id} of ledger`)]);
  const gone = await run(["dlq", "stop", id, "--give-up", "--reason", "enough"]);
  expect([gone.exit, gone.stdout]).toEqual([0, expect.stringContaining("letters wait for nothing again")]);
  expect((await run(["dlq", "redrives", id])).stdout).toMatch(/given up .* by ann: enough/);
  expect((await run(["dlq", "list"])).stdout).toMatch(/ledger +PROJECTION_FAILED +\S+ +\d+ +0 /);
});

it("lets go on what stands still, by the command line, and only for who acts for all tenants", async () => {
  expect(await run(["gaps", "list"])).toMatchObject({ exit: 0, stdout: "nothing stands still\n" });
  await rig.createTopics([type]);
  await rig.publish([modelEvent(0), modelEvent(1), modelEvent(2)]);
  const topic = rig.topicOf(type);
  await rig.sql.query(
    `INSERT INTO host.watermarks (processor, topic, partition, next_offset, owner, stopped_cause, stopped_at)
      VALUES ('ledger', $1, 0, 9, 'x', 'log_end_below_position', now())`,
    [topic],
  );
  const list = await run(["gaps", "list"]);
  expect([list.exit, list.stdout]).toEqual([
    1,
    expect.stringMatching(/ledger .*\/0 .*9 +0 to 3 +log end below/),
  ]);
  const resume = ["gaps", "resume", "ledger", `${type}/0`, "--reason", "the tail was lost", "--from"];
  expect((await run([...resume, "9"])).exit).toBe(2);
  expect((await run([...resume, "half"])).exit).toBe(2);
  expect((await run([...resume, "start"], "sre-of-acme")).exit).toBe(4);
  const done = await run([...resume, "start"]);
  expect([done.exit, done.stdout]).toEqual([0, expect.stringContaining("goes on in")]);
  rig.start([ledgerProcessor()]);
  await untilRead(3n);

  await rig.sql.query(
    `INSERT INTO host.emission_guards (processor, reason) VALUES ('teller', 'too many');
     INSERT INTO host.held_emissions (processor, event_id, type, tenant_id, ordering_key, payload, headers)
       VALUES ('teller', gen_random_uuid(), 'agent.tool.denied', 'acme', 'acme/c', '\\x00', '{}')`,
  );
  expect((await run(["emissions", "list"])).stdout).toMatch(/teller +1 +1 .*agent\.tool\.denied +too many/);
  const dropped = await run(["emissions", "drop", "teller", "--reason", "a loop"]);
  expect([dropped.exit, dropped.stdout]).toEqual([0, "1 events of teller are thrown away\n"]);
  expect(await run(["emissions", "release", "teller", "--reason", "x"])).toMatchObject({ exit: 1 });

  const parked = async () => {
    await rig.sql.query(
      `INSERT INTO outbox.parked (seq, id, aggregatetype, aggregateid, type, payload, lane, tenant_id, headers, created_at,
          code, reason, parked_by)
        VALUES (nextval('outbox.events_seq_seq'), gen_random_uuid(), 'agent.tool.denied', 'acme/c', 'agent.tool.denied',
          '\\x00', outbox.lane_of('acme/c'), 'acme', '{"ce_id":"e"}', now(), 'RECORD_TOO_LARGE', 'too large', 'relay')`,
    );
    const found = JSON.parse((await run(["--json", "outbox", "parked", "list"])).stdout) as {
      event_id: string;
    }[];
    return found[0]?.event_id ?? "";
  };
  const first = await parked();
  const retried = await run(["outbox", "parked", "retry", first, "--reason", "the limit is higher now"]);
  expect([retried.exit, retried.stdout]).toEqual([0, "1 of 1 are in the outbox again\n"]);
  const waiting = await rig.sql.query<{ id: string; headers: object }>(
    "SELECT id, headers FROM outbox.events WHERE aggregateid = 'acme/c'",
  );
  expect(waiting.rows).toEqual([{ id: first.slice(4), headers: { ce_id: "e" } }]);
  const second = await parked();
  expect((await run(["outbox", "parked", "archive", second, "--reason", "nobody needs it"])).exit).toBe(0);
  expect((await run(["outbox", "parked", "list"])).stdout).toBe("nothing is parked\n");
  expect((await run(["outbox", "parked", "list", "--archived"])).stdout).toContain("put away");
  const types = await rig.sql.query<{ type: string }>(
    "SELECT type FROM outbox.events WHERE type ~ 'resumed|dropped|publication' ORDER BY seq",
  );
  expect(types.rows.map((one) => one.type)).toEqual([
    "fabric.gap.resumed",
    "fabric.emission.dropped",
    "fabric.publication.retried",
    "fabric.publication.archived",
  ]);
});
