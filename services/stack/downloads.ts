import { mkdir, readFile, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { Fault } from "../../schemas/faults.ts";
import type { Java } from "./java.ts";
import type { Machine } from "./machine.ts";
import { findProgram, namesIn, run } from "./machine.ts";
import type { Log } from "./parts.ts";
import { withLock } from "./state.ts";

export interface StackVersions {
  readonly kafka: string;
  readonly apicurio: string;
}

/** The versions that `deploy/local/pom.xml` names. */
export const versionsOfPom = (pom: string): StackVersions => {
  const version = (name: string): string => {
    const found = new RegExp(`<${name}\\.version>([^<]+)</${name}\\.version>`).exec(pom)?.[1];
    if (found === undefined) throw new Error(`deploy/local/pom.xml names no ${name}.version`);
    return found.trim();
  };
  return { kafka: version("kafka"), apicurio: version("apicurio") };
};

const STAMP = "complete.json";
/** A first download on a slow line takes minutes; a second process waits for it that long. */
const DOWNLOAD_DEADLINE_MS = 30 * 60_000;
const HEARTBEAT_MS = 3_000;

const sizesBelow = async (folder: string): Promise<Record<string, number>> => {
  const sizes: Record<string, number> = {};
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile() && entry.name !== STAMP)
      sizes[path.slice(folder.length + 1)] = (await stat(path)).size;
  }
  return sizes;
};

/** Every file of the stamp is there with its size. INVARIANT: an incomplete download is done again (downloads.test.ts). */
export const isComplete = async (folder: string): Promise<boolean> => {
  try {
    const stamp = JSON.parse(await readFile(join(folder, STAMP), "utf8")) as Record<string, number>;
    const sizes = await sizesBelow(folder);
    return (
      Object.keys(stamp).length > 0 && Object.entries(stamp).every(([file, size]) => sizes[file] === size)
    );
  } catch {
    return false;
  }
};

/** Fills `folder` once: into a neighbour first, renamed when whole, one process at a time. */
export const fetchOnce = async (folder: string, fill: (into: string) => Promise<void>): Promise<string> => {
  if (await isComplete(folder)) return folder;
  await mkdir(join(folder, ".."), { recursive: true });
  // One at a time for the whole folder: two Mavens at once can spoil the local repository that they share.
  return withLock(join(folder, "..", "lock"), DOWNLOAD_DEADLINE_MS, async () => {
    if (await isComplete(folder)) return folder;
    // The Maven of a start that was killed may still be writing: its folder is not ours.
    const parent = dirname(folder);
    for (const name of await namesIn(parent)) {
      if (name.startsWith(`${basename(folder)}.part-`))
        await rm(join(parent, name), { recursive: true, force: true });
    }
    const into = `${folder}.part-${String(process.pid)}`;
    await mkdir(into, { recursive: true });
    await fill(into);
    await writeFile(join(into, STAMP), JSON.stringify(await sizesBelow(into)));
    await rm(folder, { recursive: true, force: true });
    await rename(into, folder);
    return folder;
  });
};

export interface DownloadContext {
  readonly downloadsDir: string;
  readonly pomFile: string;
  readonly versions: StackVersions;
  readonly machine: Machine;
  readonly log: Log;
  findJava(): Promise<Java>;
}

const maven = async (context: DownloadContext, what: string, args: readonly string[]): Promise<void> => {
  const program = await findProgram(context.machine, "mvn");
  if (program === undefined) {
    const bring = process.platform === "darwin" ? "brew install maven" : "apt-get install maven";
    throw new Fault("TOOL_MISSING", `maven fetches ${what}: ${bring}`);
  }
  const java = await context.findJava();
  const startedAtMs = Date.now();
  context.log(`${what}: downloading`);
  let files = 0;
  let progress = "";
  const heartbeat = setInterval(() => {
    const seconds = String(Math.round((Date.now() - startedAtMs) / 1000));
    context.log(`${what}: ${String(files)} files${progress && `, now ${progress}`} (${seconds} s)`);
  }, HEARTBEAT_MS);
  try {
    // Not in batch mode (-B): that hides how far a file is, and one of them is 160 MB.
    const result = await run(program, ["-Dstyle.color=never", "-f", context.pomFile, ...args], {
      env: { ...context.machine.env, JAVA_HOME: java.home },
      onLine: (line) => {
        if (line.startsWith("Downloaded from ")) files += 1;
        progress = /^Progress \(\d+\): (.+)/.exec(line)?.[1]?.trim() ?? progress;
      },
    });
    if (result.exitCode !== 0) {
      const errors = result.output.split("\n").filter((line) => line.includes("ERROR"));
      const reason = (errors.length > 0 ? errors : [result.output]).join(" ").trim().slice(0, 600);
      throw new Fault(
        "STACK_FAILED",
        `maven could not fetch ${what}, check the network and try again: ${reason}`,
      );
    }
  } finally {
    clearInterval(heartbeat);
  }
};

/** The broker's jars, from Maven; the folder is shared by all stacks of a project. */
export const fetchKafkaJars = (context: DownloadContext): Promise<string> => {
  const folder = join(context.downloadsDir, `kafka-${context.versions.kafka}`);
  return fetchOnce(folder, (into) =>
    maven(context, `Apache Kafka ${context.versions.kafka}`, [
      "dependency:copy-dependencies",
      `-DoutputDirectory=${into}`,
    ]),
  );
};

/** The registry's application, from Maven, unpacked. */
export const fetchRegistryApp = (context: DownloadContext): Promise<string> => {
  const { apicurio } = context.versions;
  const folder = join(context.downloadsDir, `apicurio-registry-${apicurio}`);
  return fetchOnce(folder, async (into) => {
    const what = `Apicurio Registry ${apicurio}`;
    await maven(context, what, [
      "dependency:copy",
      `-Dartifact=io.apicurio:apicurio-registry-app:${apicurio}:tar.gz:all`,
      `-DoutputDirectory=${into}`,
    ]);
    const archive = join(into, `apicurio-registry-app-${apicurio}-all.tar.gz`);
    context.log(`${what}: unpacking`);
    const unpacked = await run("tar", ["-xzf", archive, "-C", into], { env: context.machine.env });
    if (unpacked.exitCode !== 0)
      throw new Fault("STACK_FAILED", `${what} could not be unpacked: ${unpacked.output.trim()}`);
    await rm(archive);
  });
};
