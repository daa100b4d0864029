import type { CommandIntent } from "./command-intent.ts";
import { printsPlainOnly } from "./environment-list.ts";
import { toFullWords, toKnownName } from "./full-words.ts";
import { isPushElsewhere } from "./git-words.ts";
import { intentRules } from "./intent-rules.ts";
import type { IntentRule } from "./intent-rules.ts";
import { sendsData } from "./network-use.ts";
import { hasName, mayBeOption } from "./options.ts";
import type { Assignment, ParsedCommand, SimpleCommand, Word } from "./parsed-command.ts";
import { toDeleteIntents, toReadIntents, toWriteIntents } from "./path-intents.ts";
import { isWideDelete } from "./wide-delete.ts";
import type { Surroundings } from "./wide-delete.ts";

/** Programs that carry files away, or open them, by words that the path table does not follow. */
const CARRIERS =
  "scp rsync curl wget tar zip 7z gpg openssl sqlite3 cp mv ln dd base64 xxd rclone vim vi nano code source . ssh-add ssh";
/** Programs that end what they are given. */
const DELETERS = /^(rm|rmdir|unlink|shred|find|mv)$/;
const SHELLS = /^(ba|da|z|k|a)?sh$/;

const text = (word: Word): string =>
  word.kind === "literal" ? word.text : word.source.replace(/^"|"$/g, "");

/** Intents of a command line, sorted, each once. */
export function toIntents(parsed: ParsedCommand, around: Surroundings = {}): readonly CommandIntent[] {
  const found = new Set<CommandIntent>();
  const add = (intents: readonly CommandIntent[]): void => intents.forEach((intent) => found.add(intent));
  for (const command of parsed.commands) {
    for (const one of [command, ...toRunByRunner(command)])
      for (const rule of intentRules) if (matches(rule, one)) found.add(rule.intent);
    if (command.program === "git" && isPushElsewhere(command.argv)) found.add("git.push.elsewhere");
    if (command.program === "printenv" && !printsPlainOnly(command.argv.map(text))) found.add("secret.read");
    if (sendsData(command)) found.add("network.send");
    if ([command, ...toRunByRunner(command)].some((one) => isWideDelete(one, around)))
      found.add("file.delete.wide");
    if (skipsHooks(command.assignments)) found.add("git.hooks.skip");
  }
  if (skipsHooks(parsed.assignments)) found.add("git.hooks.skip");
  for (const reason of parsed.opaque) {
    if (reason.kind === "inline_code") found.add("code.inline");
    if (reason.kind === "inline_code" && isReverseShell(reason.detail)) found.add("reverse.shell");
    if (reason.kind === "code_from_input" && /^(pipe|<\()/.test(reason.detail)) found.add("pipe.to.shell");
  }
  add(toWriteIntents(parsed.writes.map(({ path }) => path)));
  add(toDeleteIntents(parsed.writes.filter(({ by }) => DELETERS.test(by)).map(({ path }) => path)));
  add(toReadIntents(parsed.reads));
  add(toReadIntents(parsed.commands.flatMap((command) => toCarriedWords(command))));
  if (hasShellOnPipe(parsed)) found.add("reverse.shell");
  // Whoever is asked for a credential gives a secret away.
  if (found.has("credential.read")) found.add("secret.read");
  return [...found].sort();
}

/** Words that name files which a program carries away or opens, in ways that no table of paths follows. */
export function toCarriedWords(command: SimpleCommand): string[] {
  const isGitAdd =
    command.program === "git" &&
    /^(add|show|archive|stash)\b/.test(toOperands("git", command.argv.map(text)).join(" "));
  if (!isGitAdd && !hasName(CARRIERS, command.program)) return [];
  return command.argv
    .map((word) => (/\$\{?HOME\b/.test(text(word)) ? toTilde(text(word)) : text(word)))
    .map((word) => word.replace(/^(if=|@|[\w-]+=[@<]?)/, ""))
    .filter((word) => word !== "" && !/[\s$`]|:\/\/|^-/.test(word));
}

/** `@"$HOME/x"` as `@~/x`. */
const toTilde = (source: string): string => source.replaceAll('"', "").replace(/\$\{HOME\}|\$HOME\b/g, "~");

/** `HUSKY=0 git commit` and its like. */
function skipsHooks(assignments: readonly Assignment[]): boolean {
  return assignments.some(
    ({ name, value }) =>
      (name === "HUSKY" && text(value) === "0") ||
      (/^(HUSKY_SKIP_HOOKS|LEFTHOOK)$/.test(name) && /^(1|0|true|false)$/.test(text(value))) ||
      (/^GIT_CONFIG_(KEY_\d+|PARAMETERS)$/.test(name) && /core\.hookspath/i.test(text(value))),
  );
}

function isReverseShell(code: string): boolean {
  return (
    /socket/i.test(code) && /dup2|pty\.spawn|subprocess|child_process|\/bin\/(ba|z|da)?sh|exec\b/i.test(code)
  );
}

/** `cat fifo | sh -i | nc host port > fifo`: a shell between two ends of a connection. */
function hasShellOnPipe({ commands }: ParsedCommand): boolean {
  const piped = commands.filter(({ input, within }) => input === "pipe" || within.includes("pipe"));
  return (
    piped.some(({ program }) => /^(nc|ncat|netcat|socat|telnet)$/.test(program)) &&
    piped.some(({ program, input }) => SHELLS.test(program) && input === "pipe")
  );
}

/** What `npx serverless deploy` and its like run: the program by its words, though the package may bring any other. */
function toRunByRunner(command: SimpleCommand): SimpleCommand[] {
  const verbs = RUNNERS.get(command.program);
  if (verbs === undefined) return [];
  const rest = command.argv.filter((word) => !text(word).startsWith("-"));
  const program = verbs === "" ? rest[0] : hasName(verbs, text(rest[0] ?? NOTHING)) ? rest[1] : undefined;
  if (program?.kind !== "literal") return [];
  const name = program.text.replace(/(.)@[^/]*$/, "$1").replace(/^.*\//, "");
  const argv = command.argv.slice(command.argv.indexOf(program) + 1);
  return [{ ...command, program: name, argv: toFullWords(name, argv) }];
}
const NOTHING: Word = { kind: "literal", text: "" };
const RUNNERS: ReadonlyMap<string, string> = new Map([
  ["npx", ""],
  ["bunx", ""],
  ["pnpx", ""],
  ["uvx", ""],
  ["pipx", "run"],
  ["npm", "exec x"],
  ["pnpm", "exec dlx"],
  ["yarn", "exec dlx"],
  ["bun", "x"],
  ["uv", "run"],
  ["poetry", "run"],
  ["bundle", "exec"],
]);

function matches(rule: IntentRule, command: SimpleCommand): boolean {
  if (!hasName(rule.programs, toKnownName(command.program))) return false;
  const words = command.argv.map(text);
  const some = (pattern: RegExp): boolean => words.some((word) => pattern.test(word));
  if (
    rule.option !== undefined &&
    !words.some((word) => word.startsWith("-") && rule.option?.test(word) === true)
  )
    return false;
  if (rule.word !== undefined && !some(rule.word)) return false;
  if (rule.unless !== undefined && some(rule.unless) && !mayBeTakenBack(command)) return false;
  if (rule.line !== undefined && !rule.line.test(` ${words.join(" ")} `)) return false;
  return rule.verb === undefined || rule.verb.test(toOperands(command.program, words).join(" "));
}

/** Options of deploying programs whose value is the next word. */
const OPTION_VALUES =
  "-f --filename --values -k --kustomize -n --namespace --context --kube-context -l --selector -o --output --set --version -u";
/** Whether `--dry-run` and its like may be undone by another word: `--dry-run=none`, or one that the text does not fix. */
const mayBeTakenBack = ({ argv }: SimpleCommand): boolean =>
  argv.some((word, at) =>
    word.kind === "literal"
      ? /^--(?:dry-run=(?:none|false|0)|no-(?:dry-run|snapshot))$/.test(word.text)
      : mayBeOption(word) && !hasName(OPTION_VALUES, text(argv[at - 1] ?? NOTHING)),
  );

const CLUSTER = "-s --server --token --user --cluster --as";
/** Options that are flags for other programs: `systemctl --user`. */
const VALUES_OF: ReadonlyMap<string, string> = new Map([
  ["kubectl", CLUSTER],
  ["oc", CLUSTER],
  ["aws", "--query --endpoint-url --output"],
]);

/** Operands without the options in front of the verb, so that `git -C dir push` is a push. */
function toOperands(program: string, words: readonly string[]): string[] {
  const takesValue =
    program === "git"
      ? "-C -c --git-dir --work-tree --namespace"
      : "-n --namespace --context --profile --region -f --kubeconfig -chdir --prefix -C --project";
  const operands: string[] = [];
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? "";
    if (!word.startsWith("-")) operands.push(word);
    else if (hasName(takesValue, word) || hasName(VALUES_OF.get(program), word)) at += 1;
  }
  return operands;
}
