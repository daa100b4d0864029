import { createHash } from "node:crypto";
import pg from "pg";
import { describe, expect, inject, it } from "vitest";
import { createTestDatabase } from "../harness/database.ts";

const query = async (url: string, text: string): Promise<unknown[]> => {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
};

describe("a test's database", () => {
  it("has every migration, is its test's own, and goes away with it", async () => {
    const [first, second] = await Promise.all([createTestDatabase(), createTestDatabase()]);
    try {
      const applied = await query(first.url, "SELECT count(*)::int AS files FROM migrations.applied");
      expect(applied).not.toEqual([{ files: 0 }]);
      await query(first.url, "CREATE TABLE mine (line text)");
      expect(await query(second.url, "SELECT to_regclass('mine') AS mine")).toEqual([{ mine: null }]);
    } finally {
      await first.drop();
      await second.drop();
    }
    await expect(query(first.url, "SELECT 1")).rejects.toMatchObject({ code: "3D000" });
  });

  it("lets a role in as itself", async () => {
    const database = await createTestDatabase();
    try {
      const rows = await query(database.roleUrl("fabric_gate"), "SELECT current_user AS me");
      expect(rows).toEqual([{ me: "fabric_gate" }]);
    } finally {
      await database.drop();
    }
  });

  it("is copied from a template that is built once, and again after a build that failed", async () => {
    const templateKey = `only this test ${String(process.pid)}`;
    let builds = 0;
    const options = {
      templateKey,
      migrate: async (url: string): Promise<void> => {
        builds += 1;
        await query(url, "CREATE TABLE made (line text)");
        if (builds === 1) throw new Error("the build failed");
      },
    };
    await expect(createTestDatabase(options)).rejects.toThrow("the build failed");
    const databases = await Promise.all([createTestDatabase(options), createTestDatabase(options)]);
    expect(builds).toBe(2);
    for (const database of databases) {
      expect(await query(database.url, "SELECT * FROM made")).toEqual([]);
      await database.drop();
    }
    const digest = createHash("sha256").update(templateKey).digest("hex").slice(0, 16);
    await query(inject("stack").postgresUrl, `DROP DATABASE "template_${digest}"`);
  });
});
