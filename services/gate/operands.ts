import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { open, realpath } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { followedMax } from "./classify-paths.ts";
import type { Classified, Operand } from "./classified.ts";

/** How much may be read before a decision. */
export interface OperandLimits {
  /** Of each file; a longer one counts as unreadable. */
  readonly maxBytes: number;
  /** Operands that are read, and paths whose links are followed. */
  readonly maxFiles: number;
  readonly maxLinks: number;
  /** For everything together. */
  readonly timeoutMs: number;
}

export const operandLimits: OperandLimits = {
  maxBytes: 1_048_576,
  maxFiles: 16,
  maxLinks: followedMax,
  timeoutMs: 100,
};

/** What lies on the agent's own machine around a request: an operand that could not be read has no digest. */
export interface RequestSurroundings {
  readonly operands: readonly Operand[];
  /** Paths that lead to another file, with that file. */
  readonly realPaths: ReadonlyMap<string, string>;
}

/**
 * Reads the files whose content would run, and follows the links of the paths that a request touches. Only for a gate
 * on the agent's own machine. Never throws and never waits for a file that is none: what is not there in time counts
 * as unreadable, and what is read is what was there at this moment.
 * INVARIANT: an operand of which nobody knows where it leads has no digest (services/gate/operands.test.ts).
 */
export async function readSurroundings(
  { touched, operandPaths, climbs = [] }: Pick<Classified, "touched" | "operandPaths" | "climbs">,
  limits: OperandLimits = operandLimits,
): Promise<RequestSurroundings> {
  const digests = new Map<string, string>();
  const realPaths = new Map<string, string>();
  const spelled = new Map(climbs.map((one) => [one.spelled, one.path]));
  /** Whether it was found where the path leads. */
  const follow = async (path: string): Promise<boolean> => {
    const real = await findRealPath(path);
    if (real !== null && real !== (spelled.get(path) ?? path)) realPaths.set(path, real);
    return real !== null;
  };
  const read = [...new Set(operandPaths)].slice(0, Math.min(limits.maxFiles, limits.maxLinks));
  // What an operand is spelled like decides about it too, and what else is touched must not crowd out either.
  const ofOperands = new Set(operandPaths);
  const ownClimbs = climbs.flatMap((one) => (ofOperands.has(one.path) ? [one.spelled] : []));
  const others = [...new Set([...ownClimbs, ...spelled.keys(), ...touched.map(({ path }) => path)])]
    .filter((path) => !read.includes(path))
    .slice(0, limits.maxLinks - read.length);
  const followed = new Map(others.map((path) => [path, follow(path)]));
  const work = Promise.all([
    ...followed.values(),
    ...read.map(async (path) => {
      const spellings = climbs.flatMap((one) => (one.path === path ? [one.spelled] : []));
      // The digest is of what the link leads to: without the link it would bind a file that nobody judged.
      const known = await Promise.all([
        follow(path),
        ...spellings.map((one) => followed.get(one) ?? read.includes(one)),
      ]);
      const digest = known.every(Boolean) ? await readDigest(path, limits.maxBytes) : null;
      if (digest !== null) digests.set(path, digest);
    }),
  ]);
  await within(work, limits.timeoutMs);
  return {
    operands: operandPaths.map((path) => ({ path, digest: digests.get(path) ?? null })),
    // What comes later than the deadline changes nothing any more.
    realPaths: new Map(realPaths),
  };
}

/** The digest of a regular file of at most so many bytes; null when it is none. */
async function readDigest(path: string, maxBytes: number): Promise<string | null> {
  if (!isAbsolute(path)) return null;
  let file: FileHandle | null = null;
  try {
    // Without waiting: a pipe would wait for its other end.
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    const stats = await file.stat();
    if (!stats.isFile() || stats.size > maxBytes) return null;
    const content = Buffer.alloc(maxBytes + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await file.read(content, length, content.length - length, length);
      length += bytesRead;
      if (bytesRead === 0 || length > maxBytes) break;
    }
    if (length > maxBytes) return null;
    return `sha256:${createHash("sha256").update(content.subarray(0, length)).digest("hex")}`;
  } catch {
    return null;
  } finally {
    await file?.close().catch(() => undefined);
  }
}

/** Where a path leads; of one that is not there yet, where its nearest folder leads. Null when nobody can tell. */
async function findRealPath(path: string): Promise<string | null> {
  if (!isAbsolute(path)) return null;
  let rest = "";
  for (let folder = path; ;) {
    try {
      const real = await realpath(folder);
      return rest === "" ? real : `${real === "/" ? "" : real}${rest}`;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      const at = folder.lastIndexOf("/");
      if ((code !== "ENOENT" && code !== "ENOTDIR") || at < 0 || folder === "/") return null;
      rest = `${folder.slice(at)}${rest}`;
      folder = at === 0 ? "/" : folder.slice(0, at);
    }
  }
}

async function within(work: Promise<unknown>, timeoutMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, timeoutMs);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
