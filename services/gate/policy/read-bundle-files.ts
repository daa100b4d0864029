import { lstat, readdir, readFile, realpath, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import { Fault } from "../../../schemas/faults.ts";
import { fileMaxBytes } from "./parse-policy.ts";
import type { PolicyProblem } from "./problem.ts";
import { toProblemLines, toSortedProblems } from "./problem.ts";

/** A bundle has one file a kind, and its cases. */
const filesMax = 500;

/** Texts of a bundle's files by their paths in it; throws CONFIG_INVALID with every file that cannot be taken. */
export async function readBundleFiles(dir: string): Promise<ReadonlyMap<string, string>> {
  const { files, problems } = await readBundleFolder(dir);
  if (problems.length === 0) return files;
  throw new Fault("CONFIG_INVALID", `the policy bundle ${dir} is refused\n${toProblemLines(problems)}`);
}

/** Reads what can be read, and says what cannot. */
export async function readBundleFolder(dir: string): Promise<{
  readonly files: ReadonlyMap<string, string>;
  readonly problems: readonly PolicyProblem[];
}> {
  const files = new Map<string, string>();
  const problems: PolicyProblem[] = [];
  let root: string;
  try {
    root = await realpath(dir);
    await readdir(root);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    const why =
      code === "ENOENT"
        ? "there is no such folder"
        : code === "ENOTDIR"
          ? "this is no folder; name the folder of a bundle"
          : `the folder cannot be read: ${code}`;
    return { files, problems: [{ file: dir, line: 0, text: why, isFolder: true }] };
  }
  const paths = await listPaths(root, "", problems);
  if (paths.length > filesMax) {
    problems.push({ file: dir, line: 0, text: `the folder holds more than ${String(filesMax)} files` });
    return { files, problems };
  }
  for (const path of paths) {
    const read = await readText(root, path);
    if (read.ok) files.set(path, read.text);
    else problems.push({ file: path, line: 0, text: read.problem });
  }
  return { files, problems: toSortedProblems(problems) };
}

async function listPaths(root: string, under: string, problems: PolicyProblem[]): Promise<string[]> {
  const paths: string[] = [];
  for (const name of (await readdir(join(root, under))).sort()) {
    // A mounted Kubernetes volume keeps its own entries beside the files, under names that begin with two dots.
    if (name.startsWith("..")) continue;
    const path = under === "" ? name : `${under}/${name}`;
    if (!(await lstat(join(root, path))).isDirectory()) paths.push(path);
    else if (path === "cases") paths.push(...(await listPaths(root, path, problems)));
    else problems.push({ file: path, line: 0, text: "a bundle has no such folder; take it out" });
  }
  return paths;
}

type ReadText =
  { readonly ok: true; readonly text: string } | { readonly ok: false; readonly problem: string };

async function readText(root: string, path: string): Promise<ReadText> {
  const refuse = (problem: string): ReadText => ({ ok: false, problem });
  try {
    const real = await realpath(join(root, path));
    if (!real.startsWith(root.endsWith(sep) ? root : root + sep)) {
      return refuse("a symbolic link leads out of the bundle; put the file here");
    }
    const { size, isFile } = await stat(real).then((one) => ({ size: one.size, isFile: one.isFile() }));
    if (!isFile) return refuse("this is no file");
    if (size > fileMaxBytes) return refuse("the file is larger than 1 MiB");
    const bytes = await readFile(real);
    return { ok: true, text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes) };
  } catch (error) {
    if (error instanceof TypeError) return refuse("the file is no UTF-8 text");
    return refuse(`the file cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}
