import { climbsMax, isInside } from "./classify-paths.ts";
import { toGitCall } from "./shell/git-words.ts";
import { fetchesTree } from "./shell/network-use.ts";
import { toKnownName } from "./shell/full-words.ts";
import type { OpaqueReason, ParsedCommand, SimpleCommand, WrittenPath } from "./shell/parsed-command.ts";
import { PROGRAM_TABLE, SYSTEM_DIRECTORIES } from "./shell/program-table.ts";

/** Where the code lies that a command runs. */
export interface CodePlace {
  readonly workspace: string | undefined;
  /** Files behind symbolic links, by the name that leads to them. */
  readonly realPaths: ReadonlyMap<string, string> | undefined;
}

/**
 * Signals of the code that a command runs. A file of the workspace that the text names is bound to the plan by its digest:
 * the agent could edit it anyway, and a test or a build would run it too. All else that is opaque is `command.unbound`.
 */
export function toCodeSignals(command: ParsedCommand, place: CodePlace): string[] {
  const signals = new Set<string>();
  const changed = toChanges(command);
  const climbs = command.climbs ?? [];
  const climbed = new Set(
    climbs.flatMap(({ path, spelled }) => (place.realPaths?.get(spelled) === undefined ? [] : [path])),
  );
  // Where a spelling leads at which nobody looks, nobody knows: it could be that of the code.
  const isLookedAt = climbs.length <= climbsMax;
  for (const reason of command.opaque)
    signals.add(
      isBound(reason, place, changed, isLookedAt ? climbed : "too-many")
        ? "code.workspace"
        : "command.unbound",
    );
  return [...signals];
}

function isBound(
  { kind, files }: OpaqueReason,
  place: CodePlace,
  changed: Changes,
  climbed: ReadonlySet<string> | "too-many",
): boolean {
  if (climbed === "too-many") return false;
  if (kind !== "script_file" && kind !== "local_program") return false;
  if (files === undefined || files.length === 0) return false;
  return files.every(
    (file) =>
      isInside(file, place.workspace) &&
      !climbed.has(file) &&
      !isChanged(file, changed) &&
      leadsToOwn(file, place),
  );
}

/** A link may lead on inside of the workspace, and `.venv/bin/python` to the interpreter of that name. */
function leadsToOwn(file: string, { workspace, realPaths }: CodePlace): boolean {
  const real = realPaths?.get(file);
  if (real === undefined || isInside(real, workspace)) return true;
  const folder = real.replace(/\/[^/]*$/, "");
  if (SYSTEM_DIRECTORIES.has(folder)) return true;
  const name = toKnownName(real.slice(folder.length + 1));
  return folder.endsWith("/bin") && PROGRAM_TABLE.has(name) && isKin(name, toKnownName(lastName(file)));
}

const lastName = (file: string): string => file.slice(file.lastIndexOf("/") + 1);
/** `python` for `python3`. */
const isKin = (name: string, other: string): boolean =>
  name.replace(/\d+$/, "") === other.replace(/\d+$/, "");

/** What the line itself changes: the digest of such a file is not that of what runs. */
interface Changes {
  readonly writes: readonly WrittenPath[];
  readonly isTreeChanged: boolean;
}

/** Who changes rights, times or folders changes no content. */
const KEEPS_CONTENT = /^(?:chmod|chown|chgrp|touch|mkdir|chattr)$/;
/** Subcommands of git that bring other files into the work tree. */
const CHANGES_TREE =
  /^(?:am|apply|checkout|checkout-index|cherry-pick|clean|merge|mv|pull|rebase|read-tree|reset|restore|revert|rm|stash|subtree|switch)$/;
/** Those whose first word says whether they only tell. */
const TELLS: ReadonlyMap<string, RegExp> = new Map([
  ["bisect", /^(?:help|log|terms|view|visualize)$/],
  ["lfs", /^(?:env|locks|logs|ls-files|status|track|version)$/],
  ["sparse-checkout", /^list$/],
  ["submodule", /^(?:status|summary)$/],
  ["svn", /^(?:blame|find-rev|info|log|propget|proplist)$/],
  ["worktree", /^list$/],
]);

function toChanges({ commands, writes }: ParsedCommand): Changes {
  return {
    writes: writes.filter(({ by }) => !KEEPS_CONTENT.test(by)),
    isTreeChanged: commands.some(changesTree),
  };
}

function changesTree({ program, argv, where }: SimpleCommand): boolean {
  if (where !== "here") return false;
  if (/^(?:patch|apply_?patch)$/.test(program)) return true;
  if (fetchesTree({ program, argv })) return true;
  const call = program === "git" ? toGitCall(argv) : undefined;
  if (call?.verb === undefined) return false;
  if (CHANGES_TREE.test(call.verb))
    return !call.rest.some((word) => word.kind === "literal" && /^--(?:cached|dry-run)$/.test(word.text));
  const tells = TELLS.get(call.verb);
  const first = call.rest[0];
  if (tells === undefined || (first === undefined && call.verb !== "bisect")) return false;
  return first?.kind !== "literal" || !tells.test(first.text);
}

const isChanged = (file: string, { writes, isTreeChanged }: Changes): boolean =>
  isTreeChanged ||
  writes.some(
    ({ path, extent }) =>
      path === file || (extent === "tree" && file.startsWith(path.endsWith("/") ? path : `${path}/`)),
  );

/**
 * Whether a file that nobody looked at may be taken as there: a script yes, but of installed packages only those that
 * projects commonly have. What `npx` does not find installed it fetches.
 */
export function isCommonlyThere(path: string): boolean {
  const name = /\/node_modules\/(?:\.bin\/)?([^/]*)/.exec(path)?.[1];
  if (name === undefined) return true;
  return COMMON_PACKAGES.test(name) || PROGRAM_TABLE.get(toKnownName(name))?.risk === "project_code";
}
const COMMON_PACKAGES =
  /^(?:tsc|tsx|ts-node|typescript|esbuild|swc|biome|sass|oxlint|dprint|concurrently|rimraf|husky)$/;
