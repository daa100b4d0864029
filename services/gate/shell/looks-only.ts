import { toGitCall } from "./git-words.ts";
import { mayBeOption, scanAllOptions } from "./options.ts";
import type { SimpleCommand, Word } from "./parsed-command.ts";

/** Options of `git apply` and `git am` whose value is the next word. */
const GIT_VALUES =
  "-C -p --directory --exclude --include --whitespace --build-fake-ancestor --patch-format --resolvemsg";
const PATCH_VALUES =
  "-B -D -F -V -Y -d -g -i -o -p -r -x -z --basename-prefix --debug --directory --fuzz --get --ifdef --input --output --prefix --quoting-style --read-only --reject-file --reject-format --strip --suffix --version-control";
const APPLY_LOOKS = /^--(?:help|version|check|stat|numstat|summary)$/;
const AM_LOOKS = /^--(?:help|version|dry-run|abort|continue|skip|quit|show-current-patch)$/;
/** `--apply`, also shortened, applies after all; `--no-check` takes the look back. */
const APPLIES = /^--(?:ap|no-(?:ch|st|su|nu))/;

/**
 * Whether a call of `git apply`, `git am` or `patch` applies nothing, by options that are not the value of another. A word
 * that may be one more option, such as `--apply`, leaves that open.
 */
export function onlyLooksAtPatch({ program, argv }: Pick<SimpleCommand, "program" | "argv">): boolean {
  if (argv.some(mayBeOption)) return false;
  if (program === "patch")
    return toNames(argv, PATCH_VALUES).some((name) => /^--(?:dry-run|help|version)$/.test(name));
  const call = program === "git" ? toGitCall(argv) : undefined;
  if (call?.verb === "am") return toNames(call.rest, GIT_VALUES).some((name) => AM_LOOKS.test(name));
  if (call?.verb !== "apply") return false;
  const names = toNames(call.rest, GIT_VALUES);
  return names.some((name) => APPLY_LOOKS.test(name)) && !names.some((name) => APPLIES.test(name));
}

const toNames = (words: readonly Word[], values: string): readonly string[] =>
  scanAllOptions(words, values).options.map(({ name }) => name);
