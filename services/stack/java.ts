import { readFile, realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Machine } from "./machine.ts";
import { fileExists, namesIn, pathFolders, run } from "./machine.ts";
import { Fault } from "../../schemas/faults.ts";

export interface Java {
  /** The `java` program. */
  readonly program: string;
  readonly home: string;
  readonly major: number;
}

/** 8 for "1.8.0_392", 17 for "17.0.15", 25 for "25-ea". */
export const majorOfVersion = (version: string): number | undefined => {
  const match = /^(\d+)(?:\.(\d+))?/.exec(version.trim());
  if (!match?.[1]) return undefined;
  return match[1] === "1" && match[2] !== undefined ? Number(match[2]) : Number(match[1]);
};

/** From the `release` file of a JDK, or from what `java -version` prints. */
export const majorOfText = (text: string): number | undefined => {
  const match = /JAVA_VERSION="([^"]+)"/.exec(text) ?? /version "([^"]+)"/.exec(text);
  return match?.[1] === undefined ? undefined : majorOfVersion(match[1]);
};

const homesUnder = async (folder: string, inner = ""): Promise<string[]> =>
  (await namesIn(folder)).map((name) => join(folder, name, inner));

/** Where JDKs live: what the user named first, then PATH, then the usual places of the systems. */
const candidateHomes = async (machine: Machine): Promise<string[]> => {
  const named = machine.env["JAVA_HOME"];
  const onPath: string[] = [];
  for (const folder of pathFolders(machine)) {
    const program = await realpath(join(folder, "java")).catch(() => undefined);
    if (program !== undefined) onPath.push(dirname(dirname(program)));
  }
  return [
    ...(named ? [named] : []),
    ...onPath,
    ...(await homesUnder("/usr/lib/jvm")),
    ...(await homesUnder("/usr/java")),
    ...(await homesUnder("/opt/java")),
    ...(await homesUnder("/Library/Java/JavaVirtualMachines", "Contents/Home")),
    ...(await homesUnder("/opt/homebrew/opt")).filter((home) => home.includes("openjdk")),
    ...(await homesUnder(join(machine.home, ".sdkman/candidates/java"))),
    ...(await homesUnder(join(machine.home, ".jdks"))),
  ];
};

const inspect = async (home: string): Promise<Java | undefined> => {
  const program = join(home, "bin", "java");
  if (!(await fileExists(program))) return undefined;
  const release = await readFile(join(home, "release"), "utf8").catch(() => "");
  const major =
    majorOfText(release) ?? majorOfText((await run(program, ["-version"], { timeoutMs: 10_000 })).output);
  return major === undefined ? undefined : { program, home, major };
};

/** The first Java of at least that version, in the order of the places; the fault names the command that brings one. */
export const findJava = async (machine: Machine, minMajor: number, what: string): Promise<Java> => {
  const seen = new Set<string>();
  const tooOld: Java[] = [];
  for (const home of await candidateHomes(machine)) {
    const real = await realpath(home).catch(() => home);
    if (seen.has(real)) continue;
    seen.add(real);
    const java = await inspect(real);
    if (java && java.major >= minMajor) return java;
    if (java) tooOld.push(java);
  }
  const found = tooOld.map((java) => `${String(java.major)} in ${java.home}`).join(", ");
  throw new Fault(
    "TOOL_MISSING",
    `${what} needs Java ${String(minMajor)} or newer (found: ${found || "none"}); ` +
      (process.platform === "darwin"
        ? "brew install openjdk@21"
        : "apt-get install openjdk-21-jdk-headless, or unpack a JDK from https://adoptium.net and set JAVA_HOME"),
  );
};
