import { afterEach, beforeEach, expect, it } from "vitest";
import { defineProcessor } from "../../processors/kit/processor.ts";
import { checkProcessorSchemas } from "../../services/host/processor-schemas.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { eventually } from "../harness/eventually.ts";
import type { HostRig } from "../harness/host-rig.ts";
import { modelEvent, openHostRig } from "../harness/host-rig.ts";

let rig: HostRig;
let database: Database;
beforeEach(async () => {
  rig = await openHostRig();
  for (const schema of ["alpha", "beta"]) {
    await rig.sql.query(`CREATE SCHEMA ${schema}`);
    await rig.sql.query(`GRANT USAGE ON SCHEMA ${schema} TO fabric_host`);
  }
  // One connection, so that one processor's transaction follows the other's on it.
  database = openDatabase({
    url: rig.database.roleUrl("fabric_host"),
    applicationName: "host-under-test",
    searchPath: ["host", "alpha", "beta"],
    maxConnections: 1,
  });
});
afterEach(async () => {
  await rig.close();
  await database.end();
});

const type = "agent.model.completed" as const;
/** Writes into a table by its bare name, as a processor does. */
const writer = (name: string, table: string) =>
  defineProcessor({
    name,
    topics: [type],
    project: (event) => [event.event_id],
    async apply(tx, ids) {
      await tx.query({
        name: `write-${table}`,
        text: `INSERT INTO ${table} (event_id) SELECT * FROM unnest($1::text[])`,
        values: [ids],
      });
    },
  });
const rowsOf = async (table: string): Promise<number> =>
  (await rig.sql.query(`SELECT FROM ${table}`)).rowCount;
const addTable = async (table: string): Promise<void> => {
  await rig.sql.query(`CREATE TABLE ${table} (event_id text PRIMARY KEY)`);
  await rig.sql.query(`GRANT SELECT, INSERT ON ${table} TO fabric_host`);
};
const untilBothRead = (offset: bigint) =>
  eventually(
    async () => [await rig.watermarks("alpha"), await rig.watermarks("beta")],
    (both) => both.every((marks) => marks.get(`${type}/0`) === offset),
  );

it("lets each processor write to its own table when two have one of the same name", async () => {
  await addTable("alpha.notes");
  await addTable("beta.notes");
  await rig.createTopics([type]);
  await rig.publish([modelEvent(1), modelEvent(2)]);
  rig.start([writer("alpha", "notes"), writer("beta", "notes")], { database });
  await untilBothRead(2n);
  await rig.publish([modelEvent(3)]);
  await untilBothRead(3n);
  expect([await rowsOf("alpha.notes"), await rowsOf("beta.notes")]).toEqual([3, 3]);
  expect(await rig.letters()).toEqual([]);
});

it("keeps its own tables when a processor has made one of the same name", async () => {
  await addTable("alpha.inbox");
  await addTable("alpha.watermarks");
  await addTable("alpha.letters");
  await rig.createTopics([type]);
  await rig.publish([modelEvent(1), modelEvent(2)]);
  await rig.publishBytes(type, [Buffer.from("junk")]);
  rig.start([writer("alpha", "inbox")], { database });
  await eventually(
    () => rig.watermarks("alpha"),
    (marks) => marks.get(`${type}/0`) === 3n,
  );
  expect(await rowsOf("alpha.inbox")).toBe(2);
  expect(await rig.letters()).toHaveLength(1);
  expect(await rowsOf("host.inbox")).toBe(2);
});

it("refuses a processor whose schema has a table with a name of the host's", async () => {
  await addTable("alpha.notes");
  await expect(checkProcessorSchemas(database, ["alpha", "beta", "none"])).resolves.toBeUndefined();
  await addTable("alpha.inbox");
  await expect(checkProcessorSchemas(database, ["beta", "alpha"])).rejects.toMatchObject({
    code: "CONFIG_INVALID",
    message: expect.stringContaining("alpha.inbox") as string,
  });
  await expect(checkProcessorSchemas(database, ["beta"])).resolves.toBeUndefined();
});
