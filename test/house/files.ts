import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The project's folder, absolute. */
export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

const NOT_OURS = new Set(["node_modules", "dist", ".fabric", ".git", "coverage", "target"]);
const PLANTED = "test/fixtures/house";

/** Paths, relative to the project, of all files that people wrote, but for the planted faults. */
export function productFiles(ending = ""): string[] {
  const found: string[] = [];
  const visit = (folder: string): void => {
    for (const entry of readdirSync(join(ROOT, folder), { withFileTypes: true })) {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (NOT_OURS.has(entry.name) || path === PLANTED) continue;
      if (entry.isDirectory()) visit(path);
      else if (entry.isFile() && path.endsWith(ending)) found.push(path);
    }
  };
  visit("");
  return found.sort();
}

/** Text of a project file; undefined where there is none. */
export function textOf(path: string): string | undefined {
  const absolute = join(ROOT, path);
  return existsSync(absolute) ? readFileSync(absolute, "utf8") : undefined;
}

/** `path:line: text` for every line of `files` that `pattern` hits. */
export function hits(files: string[], pattern: RegExp): string[] {
  return files.flatMap((file) => {
    const text = textOf(file) ?? "";
    if (!pattern.test(text)) return [];
    return text
      .split("\n")
      .flatMap((line, index) =>
        pattern.test(line) ? [`${file}:${index + 1}: ${line.trim().slice(0, 160)}`] : [],
      );
  });
}
