import { isJsonObject } from "../../../platform/payload-fields.ts";
import { objectAt, textAt } from "./wire-message.ts";

/** The patch that a list of changes is, in the form that a model writes it. An added file's `diff` is its bare content. */
export function toPatch(changes: unknown): string {
  const list = Array.isArray(changes) ? (changes as unknown[]) : [];
  const parts = list.filter(isJsonObject).map((change) => {
    const path = textAt(change, "path") ?? "";
    const diff = textAt(change, "diff") ?? "";
    const kind = objectAt(change, "kind");
    switch (kind["type"]) {
      case "add":
        return `*** Add File: ${path}\n${toAdded(diff)}`;
      case "delete":
        return `*** Delete File: ${path}\n`;
      default: {
        const to = textAt(kind, "move_path");
        return `*** Update File: ${path}\n${to === undefined ? "" : `*** Move to: ${to}\n`}${diff.endsWith("\n") ? diff : `${diff}\n`}`;
      }
    }
  });
  return `*** Begin Patch\n${parts.join("")}*** End Patch\n`;
}

function toAdded(content: string): string {
  return content
    .replace(/\n$/, "")
    .split("\n")
    .map((line) => `+${line}\n`)
    .join("");
}
