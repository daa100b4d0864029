import { toFoundNames } from "./hidden-reads.ts";
import { toOptionCommands } from "./command-options.ts";
import { joinWords, replaceMark, toOpaque, toSource } from "./launch.ts";
import type { Launch } from "./launch.ts";
import { scanAllOptions, scanLeadingOptions } from "./options.ts";
import { toRunByPackages } from "./package-runners.ts";
import type { Word } from "./parsed-command.ts";

/** Commands and code that programs take in options of their own: `find -exec`, `git -c alias.x=!…`, `tar --to-command`. */
export function toEmbedded(program: string, args: readonly Word[]): readonly Launch[] {
  return [...(JUDGES.get(program)?.(args, program) ?? []), ...toOptionCommands(program, args)];
}

type Judge = (args: readonly Word[], program: string) => Launch[];

const toCode = (code: Word): Launch => ({ kind: "code", code, layer: "option" });
const literal = (text: string): Word => ({ kind: "literal", text });
const afterPrefix = (word: Word, prefix: string): Word =>
  word.kind === "literal" ? literal(word.text.slice(prefix.length)) : word;

const judgeFind: Judge = (args, program) => {
  const launches: Launch[] = [];
  for (let at = 0; at < args.length; at += 1) {
    const word = args[at];
    if (word === undefined) break;
    // A word that is not fixed may be `-exec`, unless its first letter says otherwise.
    if (
      word.kind === "unresolved" &&
      word.prefix === "" &&
      at > 0 &&
      word.reason !== "home" &&
      !/^["']?[*./?\\[]/.test(word.source) &&
      !toSource(args[at - 1] ?? literal("")).startsWith("-")
    )
      launches.push(toOpaque("unknown_option", word.source, program));
    if (word.kind === "unresolved" || !/^-(exec|execdir|ok|okdir)$/.test(word.text)) continue;
    const from = at + 1;
    while (at < args.length && !isExecEnd(args, at, from)) at += 1;
    const names = toFoundNames(args);
    const words = args
      .slice(from, at)
      .map((found) => replaceMark(found, "{}"))
      .map((word) =>
        word.kind === "unresolved" && word.source === "{}" && names !== undefined
          ? { ...word, choices: names }
          : word,
      );
    launches.push({ kind: "words", words });
  }
  return launches;
};
function isExecEnd(args: readonly Word[], at: number, from: number): boolean {
  const text = toSource(args[at] ?? literal(";"));
  return text === ";" || (text === "+" && at > from && toSource(args[at - 1] ?? literal("")) === "{}");
}

const GIT_COMMAND_KEYS =
  /^(core\.(pager|editor|sshcommand|fsmonitor|askpass|gitproxy)|pager\..*|sequence\.editor|diff\..*|difftool\..*|mergetool\..*|merge\..*|filter\..*|credential\..*|gpg\..*|http\.proxy|uploadpack\..*|receive\..*|browser\..*|trailer\..*|sendemail\..*|submodule\..*update|remote\..*|interactive\.difffilter|url\..*|include\..*|includeif\..*|core\.hookspath|core\.attributesfile|init\.templatedir|man\..*|web\.browser|tar\..*|ssh\.variant|protocol\..*|core\.(alternaterefscommand|worktree)|branch\..*\.(push)?remote|guitool\..*|instaweb\..*|imap\..*|pack\..*hook)$/i;
function judgeGitConfig(setting: Word, program: string): Launch[] {
  if (setting.kind === "unresolved") return [toOpaque("unresolved_code", setting.source, program)];
  const [, key = "", value = ""] = /^([^=]*)=?([\s\S]*)$/.exec(setting.text) ?? [];
  if (/^alias\./i.test(key))
    return value.startsWith("!")
      ? [toCode(literal(value.slice(1)))]
      : [toOpaque("alias", setting.text, program)];
  if (/^core\.(pager|editor|sshcommand)$|^sequence\.editor$/i.test(key))
    return value === "" ? [] : [toCode(literal(value))];
  return GIT_COMMAND_KEYS.test(key) ? [toOpaque("environment", setting.text, program)] : [];
}
const judgeGit: Judge = (args, program) => {
  const launches: Launch[] = [];
  const scan = scanLeadingOptions(args, {
    flags:
      "-p --paginate -P --no-pager --no-replace-objects --bare --no-optional-locks --version --help -h -v --html-path --man-path --info-path --literal-pathspecs --no-lazy-fetch --exec-path",
    values: "-c -C --git-dir --work-tree --namespace --super-prefix --config-env --list-cmds --attr-source",
  });
  if (!scan.ok) return [toOpaque("unknown_option", scan.detail, program)];
  for (const { name, value } of scan.options) {
    if (name === "-c" && value !== undefined) launches.push(...judgeGitConfig(value, program));
    if (/^--(config-env|git-dir)$/.test(name) || (name === "--exec-path" && value !== undefined))
      launches.push(
        toOpaque("environment", `${name} ${value === undefined ? "" : toSource(value)}`, program),
      );
  }
  const [verb, ...rest] = scan.rest;
  if (verb === undefined) return launches;
  if (verb.kind === "unresolved") return [...launches, toOpaque("unresolved_program", verb.source, program)];
  const texts = rest.map(toSource);
  const at = (test: RegExp): number => texts.findIndex((text) => test.test(text));
  const optionCode = (test: RegExp): void => {
    texts.forEach((text, index) => {
      const match = test.exec(text);
      if (match === null) return;
      const word = rest[index];
      const attached = match[1];
      if (word?.kind === "literal" && attached !== undefined && attached !== "")
        launches.push(toCode(literal(attached)));
      else
        launches.push(
          toCode(rest[index + 1] ?? { kind: "unresolved", reason: "syntax", source: text, prefix: "" }),
        );
    });
  };
  switch (verb.text) {
    case "config": {
      const { options, operands } = scanAllOptions(
        rest,
        "-f --file --blob --type --default --comment --value --url --get-color",
      );
      if (options.some(({ name }) => /^(-e|--edit)$/.test(name)))
        launches.push(toOpaque("unresolved_code", "the editor", program));
      const isReading = options.some(({ name }) =>
        /^(--get.*|--unset.*|--remove-section|-l|--list)$/.test(name),
      );
      const [first] = operands;
      const mode = first?.kind === "literal" ? first.text : "";
      if (mode === "edit") launches.push(toOpaque("unresolved_code", "the editor", program));
      if (isReading || /^(get|unset|list|edit|remove-section|rename-section)$/.test(mode)) break;
      const [key, value] = mode === "set" ? operands.slice(1) : operands;
      if (key === undefined || value === undefined) break;
      if (key.kind === "unresolved") {
        launches.push(toOpaque("unresolved_code", `${key.source}=${toSource(value)}`, program));
        break;
      }
      // A setting stays, and a later command runs it: it is asked for even where the text tells what it runs.
      if (/^alias\./i.test(key.text) || GIT_COMMAND_KEYS.test(key.text)) {
        launches.push(toOpaque("environment", `${key.text}=${toSource(value)}`, program));
        if (value.kind === "literal")
          launches.push(...judgeGitConfig(literal(`${key.text}=${value.text}`), program));
      }
      break;
    }
    case "submodule":
      if (texts.includes("foreach"))
        launches.push(
          toCode(
            joinWords(
              rest
                .slice(texts.indexOf("foreach") + 1)
                .filter((word) => !/^--(recursive|quiet)$/.test(toSource(word))),
            ),
          ),
        );
      break;
    case "bisect":
      if (texts[0] === "run") launches.push({ kind: "words", words: rest.slice(1) });
      break;
    case "rebase":
      optionCode(/^(?:-x|--exec(?:=([\s\S]*))?)$/);
      break;
    case "filter-branch":
      optionCode(
        /^--(?:setup|env|tree|index|parent|msg|commit|tag-name|subdirectory)-filter(?:=([\s\S]*))?$/,
      );
      break;
    case "difftool":
    case "mergetool":
      optionCode(/^(?:-[A-Za-z]*x|--ext[a-z]*(?:=([\s\S]*))?)$/);
      break;
    case "grep":
      if (at(/^(-O|--open-files-in-pager)/) >= 0)
        launches.push(toOpaque("unresolved_code", texts.join(" "), program));
      break;
    case "init":
      // What lies in a template becomes the repository's hooks.
      if (at(/^--template(=|$)/) >= 0) launches.push(toOpaque("environment", texts.join(" "), program));
      break;
    case "clone":
    case "fetch":
    case "pull":
    case "push":
    case "ls-remote":
    case "archive":
    case "remote":
      if (at(/^(-u|--upload-pack|--receive-pack|--exec)(=|$)/) >= 0 && verb.text !== "push")
        launches.push(toOpaque("inline_code", texts.join(" "), program));
      if (at(/^(--receive-pack|--exec)(=|$)/) >= 0 && verb.text === "push")
        launches.push(toOpaque("inline_code", texts.join(" "), program));
      if (at(/^(ext|fd)::/) >= 0) launches.push(toOpaque("inline_code", texts.join(" "), program));
      texts.forEach((text, index) => {
        if (verb.text === "clone" && /^(-c|--config)$/.test(text) && rest[index + 1] !== undefined)
          launches.push(...judgeGitConfig(rest[index + 1] ?? literal(""), program));
        if (verb.text === "clone" && text.startsWith("--config="))
          launches.push(...judgeGitConfig(literal(text.slice(9)), program));
        if (verb.text === "clone" && text.startsWith("--template"))
          launches.push(toOpaque("environment", text, program));
      });
      break;
    default:
  }
  return launches;
};

const judgeTar: Judge = (args, program) => {
  const launches: Launch[] = [];
  args.forEach((word, index) => {
    const text = toSource(word);
    for (const option of [
      "--to-command",
      "--use-compress-program",
      "--info-script",
      "--new-volume-script",
      "--rsh-command",
      "--rmt-command",
    ]) {
      if (text.startsWith(`${option}=`)) launches.push(toCode(afterPrefix(word, `${option}=`)));
      if (text === option && args[index + 1] !== undefined) launches.push(toCode(args[index + 1] ?? word));
    }
    if (/^--checkpoint-action=exec=/.test(text))
      launches.push(toCode(afterPrefix(word, "--checkpoint-action=exec=")));
    else if (/^--checkpoint-action(=|$)/.test(text) && !/=(dot|echo|bell|ttyout)/.test(text))
      launches.push(toOpaque("inline_code", text, program));
    if (/^-[A-Za-z]*[IF]$/.test(text) && args[index + 1] !== undefined)
      launches.push(toCode(args[index + 1] ?? word));
    // getopt takes any unambiguous beginning of a long option.
    if (
      /^--(to-c|to-co|to-com|to-comm|to-comma|to-comman|use[a-z-]*|checkpoint-a[a-z]*)(=|$)/.test(text) &&
      !/^--(use-compress-program|checkpoint-action)(=|$)/.test(text)
    )
      launches.push(toOpaque("unknown_option", text, program));
    if (
      word.kind === "unresolved" &&
      word.prefix === "" &&
      !/^["'./~]|^\$\{?HOME/.test(text) &&
      word.reason !== "home"
    )
      launches.push(toOpaque("unknown_option", text, program));
  });
  return launches;
};

const judgeRsync: Judge = (args) =>
  scanAllOptions(args, "-e --rsh --rsync-path")
    .options.filter(({ name }) => /^(-e|--rsh|--rsync-path)$/.test(name))
    .map(({ value }) => toCode(value ?? { kind: "unresolved", reason: "syntax", source: "-e", prefix: "" }));

const judgeCopyOverSsh: Judge = (args, program) =>
  scanAllOptions(args, "-S -o -F -i -P -c -J -l")
    .options.filter(
      ({ name, value }) =>
        name === "-S" ||
        name === "-F" ||
        (name === "-o" && /command/i.test(value === undefined ? "" : toSource(value))),
    )
    .map(({ value }) => toOpaque("inline_code", value === undefined ? "" : toSource(value), program));

const judgeAwk: Judge = (args, program) => {
  const { options, operands } = scanAllOptions(
    args,
    "-F -v -f -i -l -e -E -W --field-separator --assign --file --include --load --source --exec",
  );
  const launches: Launch[] = [];
  for (const { name, value } of options)
    if (/^(-f|-E|--file|--exec|-i|--include|-l|--load)$/.test(name))
      launches.push({ kind: "file", file: value ?? literal(""), language: "awk" });
    // `-W exec=file`, and every long option of gawk behind `-W`.
    else if (
      name === "-W" &&
      (value?.kind !== "literal" || /^(?:e|f|i(?!n?t)|l(?!int)|s(?!p))/.test(value.text))
    )
      launches.push(toOpaque("inline_code", toSource(value ?? literal("")), program));
  const sources = options.filter(({ name }) => /^(-e|--source)$/.test(name)).map(({ value }) => value);
  for (const code of sources.length > 0 ? sources : launches.length > 0 ? [] : operands.slice(0, 1))
    if (code?.kind !== "literal" || /system|getline|\||@|printf?\b[^;}]*>|close\s*\(/.test(code.text))
      launches.push({
        kind: "opaque",
        reason: {
          kind: "inline_code",
          detail: code === undefined ? "" : toSource(code),
          program,
          language: "awk",
        },
      });
  return launches;
};

const judgeSed: Judge = (args, program) => {
  const { options, operands } = scanAllOptions(args, "-e -f -l --expression --file --line-length");
  const launches: Launch[] = [];
  for (const { name, value } of options)
    if (/^(-f|--file)$/.test(name))
      launches.push({ kind: "file", file: value ?? literal(""), language: "sed" });
  const given = options.filter(({ name }) => /^(-e|--expression)$/.test(name)).map(({ value }) => value);
  for (const code of given.length > 0 ? given : launches.length > 0 ? [] : operands.slice(0, 1))
    if (code?.kind !== "literal" || code.text.length > 2000 || !isSafeSed(code.text))
      launches.push({
        kind: "opaque",
        reason: {
          kind: "inline_code",
          detail: code === undefined ? "" : toSource(code),
          program,
          language: "sed",
        },
      });
  return launches;
};
/** One command at a time: a pattern over the whole script would take exponential time on hostile ones. */
function isSafeSed(script: string): boolean {
  // A substitution with several letters that may be flags is read alone; other scripts in parts.
  if (SED_SAFE_ONE.test(script)) return true;
  return script.split(/[;\n]/).every((part) => SED_SAFE_ONE.test(part));
}
/** Addresses with p, d, q, =, or a substitution with harmless flags: what can neither run nor write. */
const SED_SAFE_ONE =
  /^\s*(?:\d+|\$|\/(?:[^/\\]|\\.)*\/)?(?:,[+~]?(?:\d+|\$|\/(?:[^/\\]|\\.)*\/))?\s?!?\s?(?:[pdqQhHgGxnNDP=l{}]|s([/|#,:@!%])(?:(?!\1)[^\\]|\\[\s\S])*\1(?:(?!\1)[^\\]|\\[\s\S])*\1[gpiIMm0-9]*)?\s*$/;

/** docker and podman: everything after the image, or the container, runs inside. */
const judgeDocker: Judge = (args, program) => {
  const verbAt = args.findIndex((word) => /^(run|exec|create)$/.test(toSource(word)));
  if (verbAt === -1) return [];
  const isExec = toSource(args[verbAt] ?? literal("")) === "exec";
  const scan = scanLeadingOptions(args.slice(verbAt + 1), {
    flags:
      "-d -i -t -P --detach --interactive --tty --rm --init --privileged --publish-all --read-only --no-healthcheck --oom-kill-disable --sig-proxy -q --quiet",
    values:
      "-e --env --env-file -v --volume --mount -p --publish -w --workdir -u --user --name --network --net -h --hostname --entrypoint -l --label -m --memory --cpus --platform --pull --restart --add-host --cap-add --cap-drop --device --dns --gpus --ipc --pid --security-opt --shm-size --tmpfs --ulimit --userns --volumes-from --log-driver --log-opt --expose --link --cidfile --runtime --stop-signal --stop-timeout --detach-keys -a --attach --group-add --health-cmd",
  });
  if (!scan.ok) return [toOpaque("unknown_option", scan.detail, program)];
  const entry = scan.options.find(({ name }) => name === "--entrypoint")?.value;
  const [target, ...words] = scan.rest;
  if (target === undefined || (target.kind === "unresolved" && !target.source.startsWith('"')))
    return [toOpaque("unresolved_program", target?.source ?? "", program)];
  const command = entry === undefined || isExec ? words : [entry, ...words];
  // An image's own entry point takes the words; without it they are the command.
  if (command.length > 0) return [{ kind: "words", words: command, where: "container" }];
  return isExec ? [] : [toOpaque("unparsed_launcher", args.map(toSource).join(" "), program)];
};

const judgeKubectl: Judge = (args) => {
  const texts = args.map(toSource);
  if (!texts.includes("exec") && !texts.includes("debug") && !texts.includes("run")) return [];
  const dashes = texts.indexOf("--");
  if (dashes === -1)
    return texts.includes("exec") ? [toOpaque("unparsed_launcher", texts.join(" "), "kubectl")] : [];
  return [{ kind: "words", words: args.slice(dashes + 1), where: "container" }];
};

/** Subcommands that start a program of the packages, or of the registry. */
const judgeRunner: Judge = (args, program) => {
  const known = toRunByPackages(program, args);
  if (known !== undefined) return [...known];
  const runs = RUNNERS.get(program);
  return toPossibleVerbs(args).some((verb) => runs?.test(verb) === true)
    ? [toOpaque("unparsed_launcher", args.map(toSource).join(" "), program)]
    : [];
};
/** The first operand; and the next ones, as long as those in front may be values of options. */
function toPossibleVerbs(args: readonly Word[]): string[] {
  const verbs: string[] = [];
  for (const [at, word] of args.entries()) {
    const text = toSource(word);
    if (text.startsWith("-")) continue;
    verbs.push(text);
    if (!toSource(args[at - 1] ?? literal("")).startsWith("-")) break;
  }
  return verbs;
}
const RUNNERS: ReadonlyMap<string, RegExp> = new Map([
  ["npx", /./],
  ["bunx", /./],
  ["npm", /^(exec|x|explore|init|create)$/],
  ["pnpm", /^(exec|dlx|create)$/],
  ["yarn", /^(exec|dlx|create)$/],
  ["bun", /^(x|create)$/],
  ["uv", /^(run|tool)$/],
  ["poetry", /^run$/],
  ["pipenv", /^run$/],
  ["bundle", /^exec$/],
  ["pdm", /^run$/],
  ["hatch", /^run$/],
  ["conda", /^run$/],
  ["mamba", /^run$/],
  ["nix", /^(run|shell|develop)$/],
  ["aws", /^(ssm)$/],
]);

const judgeMake: Judge = (args, program) => {
  const { options, operands } = scanAllOptions(args, "-f -C -I -j -l -o -W --file --makefile --directory");
  const launches: Launch[] = [];
  for (const { name, value } of options) {
    if (/^(-f|--file|--makefile)$/.test(name))
      launches.push(
        value === undefined || toSource(value) === "-"
          ? { kind: "input", language: "make" }
          : { kind: "file", file: value, language: "make" },
      );
    if (/^(--eval|-E)$/.test(name))
      launches.push(toOpaque("inline_code", value === undefined ? "" : toSource(value), program));
  }
  for (const word of operands)
    if (/^(SHELL|\.SHELLFLAGS|MAKE|MAKEFLAGS)\b.*=/.test(toSource(word)))
      launches.push(toOpaque("environment", toSource(word), program));
  return launches;
};

/** Builtins that evaluate a name: `a[$(rm x)]` runs rm. */
const judgeNames: Judge = (args, program) => {
  const launches: Launch[] = [];
  // A name that stands for another name: what is assigned later is not what it seems.
  if (/^(declare|typeset|local)$/.test(program) && args.some((word) => /^-\w*n/.test(toSource(word))))
    launches.push(toOpaque("environment", args.map(toSource).join(" "), program));
  for (const word of args) {
    if (
      program === "printf" &&
      toSource(args[0] ?? literal("")) !== "-v" &&
      !toSource(args[0] ?? literal("")).startsWith("-v")
    )
      break;
    if (/[$`]/.test(word.kind === "literal" ? word.text : "") && /\[/.test(toSource(word)))
      launches.push(toOpaque("arithmetic_text", toSource(word), program));
    if (word.kind === "unresolved" && !/^[A-Za-z_]\w*\+?=/.test(word.prefix) && program !== "printf")
      launches.push(toOpaque("arithmetic_text", word.source, program));
  }
  if (program === "printf" && args[0]?.kind === "literal" && args[0].text.startsWith("-v")) {
    const target = args[0].text === "-v" ? args[1] : literal(args[0].text.slice(2));
    if (target?.kind !== "literal" || !/^[A-Za-z_]\w*$/.test(target.text))
      launches.push(toOpaque("arithmetic_text", target === undefined ? "" : toSource(target), program));
  }
  return launches;
};
const judgeTest: Judge = (args, program) =>
  args.flatMap((word, index) => {
    const isNameTest = /^-[vR]$/.test(toSource(args[index - 1] ?? literal("")));
    return isNameTest && (word.kind === "unresolved" || /\[/.test(word.text))
      ? [toOpaque("arithmetic_text", toSource(word), program)]
      : [];
  });

const judgeTrap: Judge = (args) => {
  const [first] = args[0] !== undefined && toSource(args[0]) === "--" ? args.slice(1) : args;
  if (first === undefined || args.length < 2) return [];
  if (first.kind === "literal" && /^(-|-[lp]+|)$/.test(first.text)) return [];
  return [{ kind: "code", code: first, layer: "trap", isSameShell: true }];
};
const judgeAlias: Judge = (args, program) =>
  args.flatMap((word): Launch[] => {
    const text = toSource(word);
    const at = text.indexOf("=");
    if (at === -1) return word.kind === "literal" ? [] : [toOpaque("alias", text, program)];
    return [
      toOpaque("alias", text, program),
      ...(word.kind === "literal"
        ? [{ kind: "code" as const, code: literal(text.slice(at + 1)), layer: "alias" as const }]
        : []),
    ];
  });
const judgeSource: Judge = (args, program) => {
  const [file] = args[0] !== undefined && toSource(args[0]) === "--" ? args.slice(1) : args;
  if (file === undefined) return [];
  if (file.kind === "literal" && /^\/(dev\/(stdin|fd\/\d+)|proc\/self\/fd\/\d+)$/.test(file.text))
    return [{ kind: "input", language: "bash" }];
  return file.kind === "unresolved" && file.reason === "substitution" && !file.source.startsWith("<(")
    ? [toOpaque("unresolved_code", file.source, program)]
    : [{ kind: "file", file, language: "bash" }];
};
/** Programs with a word that names a command line for them to run. */
const judgeCommandWord: Judge = (args, program) => {
  const word = args.map(toSource).find((text) => COMMAND_WORDS.get(program)?.test(text.replace(/^["']/, "")));
  return word === undefined ? [] : [toOpaque("inline_code", word, program)];
};
const COMMAND_WORDS: ReadonlyMap<string, RegExp> = new Map([
  ["man", /^(?:-[A-Za-z]*[PH]|--pager|--html)/],
  ["less", /^\+.*[!|]/s],
  ["more", /^\+.*!/s],
  ["zip", /^(?:-TT|--unzip-command)/],
]);
/** Builtins with an option that loads code or names a program for later. */
const judgeBuiltin: Judge = (args, program) => {
  const texts = args.map(toSource);
  const pattern = BUILTIN_CODE.get(program);
  if (pattern === undefined || !texts.some((text) => pattern.test(text))) return [];
  return [toOpaque(program === "hash" ? "search_path" : "unresolved_code", texts.join(" "), program)];
};
const BUILTIN_CODE: ReadonlyMap<string, RegExp> = new Map([
  ["enable", /^-\w*f|^[^-]/],
  ["hash", /^-\w*p/],
  ["bind", /./],
  ["complete", /^-\w*[CF]/],
  ["compgen", /^-\w*[CFW]/],
  ["mapfile", /^-\w*C/],
  ["readarray", /^-\w*C/],
  ["fc", /./],
  ["shopt", /^expand_aliases$|^lastpipe$/],
]);

const JUDGES: ReadonlyMap<string, Judge> = new Map<string, Judge>([
  ["find", judgeFind],
  ["git", judgeGit],
  ["tar", judgeTar],
  ["bsdtar", judgeTar],
  ["gtar", judgeTar],
  ["rsync", judgeRsync],
  ["scp", judgeCopyOverSsh],
  ["sftp", judgeCopyOverSsh],
  ...["awk", "gawk", "mawk", "nawk"].map((name): [string, Judge] => [name, judgeAwk]),
  ["sed", judgeSed],
  ...[...COMMAND_WORDS.keys()].map((name): [string, Judge] => [name, judgeCommandWord]),
  ["docker", judgeDocker],
  ["podman", judgeDocker],
  ["kubectl", judgeKubectl],
  ["make", judgeMake],
  ["gmake", judgeMake],
  ...[...RUNNERS.keys()].map((name): [string, Judge] => [name, judgeRunner]),
  ...[
    "let",
    "declare",
    "typeset",
    "local",
    "readonly",
    "export",
    "unset",
    "read",
    "printf",
    "wait",
    "getopts",
  ].map((name): [string, Judge] => [name, judgeNames]),
  ["test", judgeTest],
  ["[", judgeTest],
  ["trap", judgeTrap],
  ["alias", judgeAlias],
  ["source", judgeSource],
  [".", judgeSource],
  ...[...BUILTIN_CODE.keys()].map((name): [string, Judge] => [name, judgeBuiltin]),
]);
