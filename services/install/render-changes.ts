import type { FileChange } from "./config-files.ts";
import { toLineDiff } from "./line-diff.ts";

/** What would change, as a diff of each file; the token is never shown. */
export function renderChanges(changes: readonly FileChange[], token: string): string {
  return changes
    .flatMap(({ path, before, after, mode }) => {
      if (before === after) return [];
      const what = before === null ? "new file" : after === null ? "goes" : "changes";
      const rights = mode === undefined ? "" : `, mode ${mode.toString(8)}`;
      return [`${path} (${what}${rights})`, ...toLineDiff(before ?? "", after ?? ""), ""];
    })
    .join("\n")
    .replaceAll(token === "" ? "\0" : token, "[token]");
}
