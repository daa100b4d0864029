import { hasName, scanAllOptions, scanLeadingOptions } from "./options.ts";
import { isSecretPath } from "./path-intents.ts";
import type { SimpleCommand, Word } from "./parsed-command.ts";

/** Subcommands that do what rules know. Any other is an alias, a program of its own, or a way to push by another name. */
const KNOWN =
  "add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore check-mailmap check-ref-format checkout " +
  "checkout-index cherry cherry-pick clean clone column commit commit-graph commit-tree config count-objects credential describe diff " +
  "diff-files diff-index diff-tree difftool fast-export fetch filter-branch filter-repo fmt-merge-msg for-each-ref format-patch fsck gc " +
  "grep hash-object help init interpret-trailers lfs log ls-files ls-remote ls-tree maintenance merge merge-base merge-file merge-tree " +
  "mergetool mktag mktree multi-pack-index mv name-rev notes pack-refs patch-id prune pull push range-diff read-tree rebase reflog " +
  "remote repack replace rerere reset restore rev-list rev-parse revert rm shortlog show show-branch show-index show-ref sparse-checkout " +
  "stage stash status stripspace submodule subtree switch symbolic-ref tag unpack-file update-index update-ref var verify-commit " +
  "verify-pack verify-tag version whatchanged worktree write-tree credential-cache credential-store credential-osxkeychain flow";

const LEADING = {
  flags:
    "-p --paginate -P --no-pager --no-replace-objects --bare --no-optional-locks --version --help -h -v --html-path --man-path --info-path --literal-pathspecs --no-lazy-fetch --exec-path",
  values: "-c -C --git-dir --work-tree --namespace --super-prefix --config-env --list-cmds --attr-source",
};

/** The words of a call of git, taken apart; undefined where its first options are not known. */
export type GitCall = {
  readonly verb: string | undefined;
  readonly rest: readonly Word[];
  readonly folder: Word | undefined;
  readonly workTree: Word | undefined;
};

export function toGitCall(args: readonly Word[]): GitCall | undefined {
  const scan = scanLeadingOptions(args, LEADING);
  if (!scan.ok) return undefined;
  const [verb, ...rest] = scan.rest;
  const valueOf = (name: string): Word | undefined =>
    scan.options.filter((option) => option.name === name).at(-1)?.value;
  return {
    verb: verb?.kind === "literal" ? verb.text : undefined,
    rest,
    folder: valueOf("-C"),
    workTree: valueOf("--work-tree"),
  };
}

/** Whether rules know what a call of git does; an alias or another program's name is not known. */
export function isKnownGit(args: readonly Word[]): boolean {
  const call = toGitCall(args);
  if (call?.verb === undefined) return true;
  if (call.verb === "subtree")
    return !call.rest.some((word) => word.kind === "literal" && word.text === "push");
  return hasName(KNOWN, call.verb);
}

/** Whether a call of git lays the files of another state over the whole folder: `git checkout other -- .`. */
export function laysTreeOver({ program, argv }: SimpleCommand): boolean {
  const call = program === "git" ? toGitCall(argv) : undefined;
  if (call?.verb === undefined || !/^(?:checkout|restore|read-tree)$/.test(call.verb)) return false;
  const { options, operands } = scanAllOptions(call.rest, "-s --source -b -B --orphan");
  const texts = operands.map((word) => (word.kind === "literal" ? word.text : word.source));
  const isAll = (text: string): boolean => /^(?:\.|\.\/|:\/|:\(top\).*|\*|\*\*.*|\.\/\*)$/.test(text);
  const isOther = (text: string): boolean => !/^(?:HEAD|@)$/.test(text) && !isAll(text);
  if (call.verb === "read-tree") return options.some(({ name }) => name === "-u") && texts.some(isOther);
  if (call.verb === "checkout")
    return texts.length > 1 && isOther(texts[0] ?? "HEAD") && texts.slice(1).some(isAll);
  const source = options.find(({ name }) => name === "-s" || name === "--source")?.value;
  const from = source === undefined ? "HEAD" : source.kind === "literal" ? source.text : source.source;
  return isOther(from) && texts.some(isAll);
}

const PUSH_VALUES = "-o --push-option --repo --receive-pack --exec --recurse-submodules";

/** A push to an address, or to a remote that the text does not name. */
export function isPushElsewhere(args: readonly Word[]): boolean {
  const call = toGitCall(args);
  if (call?.verb !== "push") return false;
  const { options, operands } = scanAllOptions(call.rest, PUSH_VALUES);
  const target = operands[0] ?? options.find(({ name }) => name === "--repo")?.value;
  return [target, options.find(({ name }) => name === "--repo")?.value].some(
    (word) => word?.kind === "literal" && /[:/\\]|^[.~]/.test(word.text),
  );
}

/** Subcommands that print or carry what files hold. */
const SHOWS =
  "show diff diff-files diff-index diff-tree difftool cat-file archive blame annotate grep stash whatchanged format-patch hash-object " +
  "merge-file range-diff bundle";
const CHANGES_TREE =
  "add am apply checkout checkout-index cherry-pick clean commit merge mv pull rebase reset restore revert rm stash switch read-tree";

export type GitPaths = {
  readonly files: readonly Word[];
  readonly folders: readonly Word[];
  readonly reads: readonly Word[];
};

const LONG_VALUES =
  "--output --output-directory --prefix --file --separate-git-dir --template --reason --object-format --ref-format --initial-branch --export-marks --format --remote --exec";
/** Letters with a value, by verb: `-f` names a file for `git grep`, and is a flag of `git worktree`. */
const VALUES_OF: ReadonlyMap<string, string> = new Map([
  ["archive", "-o"],
  ["format-patch", "-o -v"],
  ["commit", "-F -m -C -c -t"],
  ["tag", "-F -m -u"],
  ["notes", "-F -m -C -c"],
  ["merge", "-F -m -s -X"],
  ["worktree", "-b -B"],
  ["checkout", "-b -B"],
  ["switch", "-c -C"],
  ["stash", "-m"],
  ["init", "-b"],
  ["clone", "-b -o -c -j -u"],
  ["grep", "-e -f -m -A -B -C -O"],
  ["config", "-f"],
]);

/** Files and folders that a call of git writes beside its own, and secrets that it shows. */
export function toGitPaths(args: readonly Word[]): GitPaths {
  const call = toGitCall(args);
  const files: Word[] = [];
  const folders: Word[] = [];
  const reads: Word[] = [];
  const { verb, rest } = call ?? { verb: undefined, rest: [] };
  if (call === undefined || verb === undefined) return { files, folders, reads };
  // `-C` moves what follows, as `cd` would.
  const at = (word: Word): Word =>
    call.folder?.kind === "literal" && word.kind === "literal" && !/^[/~]/.test(word.text)
      ? { kind: "literal", text: `${call.folder.text}/${word.text}` }
      : word;
  const { options, operands } = scanAllOptions(rest, `${LONG_VALUES} ${VALUES_OF.get(verb) ?? ""}`);
  const value = (names: string): Word[] =>
    options.flatMap((option) =>
      option.value !== undefined && hasName(names, option.name) ? [at(option.value)] : [],
    );
  const first = operands[0]?.kind === "literal" ? operands[0].text : "";
  const target = (word: Word | undefined): void => {
    if (word !== undefined) folders.push(at(word));
  };
  if (!/^(push|fetch|pull|clone|commit|config|grep|ls-files)$/.test(verb))
    files.push(...value("--output --export-marks"));
  if (verb === "archive" || verb === "shortlog") files.push(...value("-o"));
  if (verb === "format-patch") folders.push(...value("-o --output-directory"));
  if (verb === "checkout-index") folders.push(...value("--prefix"));
  if (verb === "bundle" && first === "create" && operands[1] !== undefined) files.push(at(operands[1]));
  if (verb === "worktree" && first === "add") target(operands[1]);
  if (verb === "worktree" && /^(move|remove)$/.test(first)) operands.slice(1).forEach(target);
  if (verb === "init") target(operands[0]);
  if (verb === "init" || verb === "clone") folders.push(...value("--separate-git-dir"));
  if (hasName(CHANGES_TREE, verb)) {
    if (call.workTree !== undefined) folders.push(at(call.workTree));
    if (call.folder !== undefined) folders.push(call.folder);
  }
  const isLogOfText =
    verb === "log" &&
    rest.some((word) => word.kind === "literal" && /^(-[a-z]*[puGSL]|--patch|--cc$|-c$)/.test(word.text));
  if (hasName(SHOWS, verb) || isLogOfText) {
    const isPattern = (word: Word, index: number): boolean =>
      verb === "grep" &&
      index === 0 &&
      !options.some(({ name }) => name === "-e" || name === "-f") &&
      word === operands[0];
    operands.forEach((word, index) => {
      if (word.kind !== "literal" || isPattern(word, index)) return;
      // `HEAD:.env` and `:(top).env` name a file behind the colon.
      const path = word.text.replace(/^.*[:)]/, "");
      if (isSecretPath(path)) reads.push(at({ kind: "literal", text: path }));
    });
    reads.push(...value("--no-index"));
    if (verb === "diff" && options.some(({ name }) => name === "--no-index")) reads.push(...operands.map(at));
    if (verb === "grep" && options.some(({ name }) => name === "--no-index"))
      reads.push(...operands.slice(1).map(at));
  }
  if (/^(commit|tag|notes|merge)$/.test(verb))
    reads.push(...value("-F --file").filter((word) => word.kind !== "literal" || word.text !== "-"));
  return { files, folders, reads };
}
