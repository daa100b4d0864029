import { scanAllOptions } from "./options.ts";
import { isSecretPath } from "./path-intents.ts";
import type { Word } from "./parsed-command.ts";

/** Programs whose words are texts, tests of what is there, or names that git is told of: no file is opened by them. */
const OPENS_NOTHING =
  /^(echo|printf|test|\[|\[\[|true|false|:|export|declare|typeset|local|readonly|unset|set|read|return|exit|cd|pushd|popd|type|which|whereis|command|builtin|eval|trap|alias|unalias|hash|kill|pkill|pgrep|ls|stat|file|du|basename|dirname|realpath|readlink|git|gh|glab|find|fd|tree|locate|chmod|chown|touch|man|logger|tput|seq|expr|sleep|date|env|sudo|xargs|bash|sh|zsh|dash)$/;
/** Programs whose first operand is a pattern or a script. */
const PATTERN_FIRST = /^(e|f|z)?grep$|^(rg|ag|ack|sed|awk|gawk|mawk|nawk|jq|yq|tr|mlr|dasel|sd)$/;
/** Options whose value names files that are left aside, or is a text. */
const LEAVES_OUT =
  /^(--?(exclude|ignore|skip|glob|iglob|include|message|title|body|match|filter|not)[\w-]*)(=|$)/;

/** Literal words that name a file with secrets: whatever the program is, it may read them. */
export function toSecretWords(program: string, args: readonly Word[]): Word[] {
  if (OPENS_NOTHING.test(program) || /^(ssh|kubectl|oc)$/.test(program)) return [];
  // What runs in a container is asked for already, and its files are others.
  if (
    /^(docker|podman|nerdctl)$/.test(program) &&
    args.some((word) => word.kind === "literal" && /^(run|exec|create|compose)$/.test(word.text))
  )
    return [];
  const first =
    PATTERN_FIRST.test(program) &&
    !args.some((word) => word.kind === "literal" && /^(-e|-f|--regexp|--file)/.test(word.text))
      ? scanAllOptions(args, "-A -B -C -m -g -t --arg").operands[0]
      : undefined;
  return args.flatMap((word, index): Word[] => {
    if (word.kind !== "literal" || word === first) return [];
    const before = args[index - 1];
    if (LEAVES_OUT.test(word.text)) return [];
    if (word.text.startsWith("!")) return [];
    if (before?.kind === "literal" && (LEAVES_OUT.test(before.text) || /^-[xgm]$/.test(before.text)))
      return [];
    const path = word.text.replace(/^(--?[\w-]+=|[\w.-]+=)?@?/, "");
    return !/[\s$`]|:\/\//.test(path) && isSecretPath(path) ? [{ kind: "literal", text: path }] : [];
  });
}
