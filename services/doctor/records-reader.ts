import { execFile } from "node:child_process";
import { createReadStream } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { Fault } from "../../schemas/faults.ts";
import type { RecordsReader } from "../platform/session-records.ts";

const run = promisify(execFile);
const rowsMaxBytes = 64 * 1024 * 1024;
const readMaxMs = 30_000;

/** What is used of Node's own module, which older versions have not. */
interface SqliteModule {
  DatabaseSync: new (
    path: string,
    options: { readonly readOnly: boolean },
  ) => {
    prepare(sql: string): { all(...values: readonly number[]): readonly Readonly<Record<string, unknown>>[] };
    close(): void;
  };
}
const sqliteModule: string = "node:sqlite";

/** Python's own module, where this Node has none: clients that keep such a file often bring it. */
const pythonReader = `
import json, sqlite3, sys
path, sql, values = json.load(sys.stdin)
rows = sqlite3.connect("file:" + path.replace("%", "%25").replace("?", "%3f").replace("#", "%23") + "?mode=ro", uri=True).execute(sql, values).fetchall()
json.dump(rows, sys.stdout)
`;

/** Reads the records of clients from this machine's disk; writes nothing. */
export const recordsReader: RecordsReader = {
  async filesBelow(dir, pattern, sinceMs) {
    const names = await readdir(dir, { recursive: true }).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw new Fault("CONFIG_INVALID", `the client's records in ${dir} cannot be read: ${String(error)}`);
    });
    const found: string[] = [];
    for (const name of names) {
      const path = join(dir, name);
      if (!pattern.test(path)) continue;
      const { mtimeMs, isFile } = await stat(path).then(
        (one) => ({ mtimeMs: one.mtimeMs, isFile: one.isFile() }),
        // It went while we looked.
        () => ({ mtimeMs: 0, isFile: false }),
      );
      if (isFile && mtimeMs >= sinceMs) found.push(path);
    }
    return found.sort();
  },

  async *objectsOf(path) {
    for await (const line of createInterface({
      input: createReadStream(path, "utf8"),
      crlfDelay: Infinity,
    })) {
      const parsed = toObject(line);
      if (parsed !== null) yield parsed;
    }
  },

  async rowsOf(path, sql, values) {
    const sqlite = (await import(sqliteModule).catch(() => null)) as SqliteModule | null;
    if (sqlite === null) return readByPython(path, sql, values);
    const database = new sqlite.DatabaseSync(path, { readOnly: true });
    try {
      return database
        .prepare(sql)
        .all(...values)
        .map((row) => Object.values(row));
    } finally {
      database.close();
    }
  },
};

async function readByPython(
  path: string,
  sql: string,
  values: readonly number[],
): Promise<readonly (readonly unknown[])[]> {
  const child = run("python3", ["-c", pythonReader], { maxBuffer: rowsMaxBytes, timeout: readMaxMs });
  child.child.stdin?.end(JSON.stringify([path, sql, values]));
  try {
    return JSON.parse((await child).stdout) as readonly (readonly unknown[])[];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT")
      throw new Fault("TOOL_MISSING", `reading ${path} needs Node.js 22.13 or newer, or python3`, {
        cause: error,
      });
    throw new Fault("CONFIG_INVALID", `${path} cannot be read: ${lastLine(error)}`, { cause: error });
  }
}

const lastLine = (error: unknown): string =>
  String((error as { readonly stderr?: unknown }).stderr ?? error)
    .trim()
    .split("\n")
    .at(-1) ?? "";

function toObject(line: string): Readonly<Record<string, unknown>> | null {
  try {
    const parsed = JSON.parse(line) as unknown;
    return typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)
      ? (parsed as Readonly<Record<string, unknown>>)
      : null;
  } catch {
    // The client was at it, or was killed there.
    return null;
  }
}
