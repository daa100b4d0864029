import { cp, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrate } from "../../../services/platform/migrate.ts";
import type { Database } from "../../../services/platform/postgres.ts";
import { eventually } from "../../harness/eventually.ts";
import { projectDir } from "../../harness/stack.ts";

/** A file that the next release adds to an owner's folder. */
export interface NextFile {
  readonly owner: string;
  readonly text: string;
  /** Tables that it makes, and who may do what with them. */
  readonly grants?: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;
}

/** The product's migrations with those of the next release behind them, in a folder of their own. */
async function copyWith(files: readonly NextFile[]): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "fabric-next-release-"));
  await cp(join(projectDir, "deploy", "migrations"), dir, { recursive: true });
  for (const { owner, text, grants } of files) {
    await mkdir(join(dir, owner), { recursive: true });
    const there = (await readdir(join(dir, owner))).filter((name) => name.endsWith(".sql"));
    await writeFile(join(dir, owner, `${String(there.length + 1).padStart(4, "0")}_next.sql`), text);
    if (grants === undefined) continue;
    const file = join(dir, owner, "grants.json");
    const known = JSON.parse(await readFile(file, "utf8")) as { readonly tables: object };
    await writeFile(file, JSON.stringify({ ...known, tables: { ...known.tables, ...grants } }));
  }
  return dir;
}

/**
 * Applies the next release's files while a report reads the tables that they change. `whileItWaits` has to see work go on
 * behind the migration that waits; the owners whose files were applied.
 */
export async function migrateUnderTraffic(settings: {
  readonly sql: Database;
  readonly adminUrl: string;
  readonly files: readonly NextFile[];
  /** Tables that the report reads. */
  readonly reads: readonly string[];
  readonly whileItWaits: () => Promise<void>;
}): Promise<readonly string[]> {
  const dir = await copyWith(settings.files);
  try {
    let migrating = Promise.resolve({ applied: [] as string[] });
    await settings.sql.transaction(async (report) => {
      for (const table of settings.reads) await report.query(`SELECT count(*) FROM ${table}`);
      migrating = migrate({ adminUrl: settings.adminUrl, migrationsDir: dir });
      migrating.catch(() => undefined);
      await eventually(
        async () =>
          (
            await settings.sql.query(
              "SELECT 1 FROM pg_stat_activity WHERE application_name = 'fabric-migrate' AND datname = current_database() AND wait_event_type = 'Lock'",
            )
          ).rowCount,
        (n) => n > 0,
        { what: "a migration that waits for a lock", deadlineMs: 60_000 },
      );
      await settings.whileItWaits();
    });
    return (await migrating).applied.map((file) => file.split("/")[0] ?? "");
  } finally {
    await rm(dir, { recursive: true });
  }
}
