import { toGitCall } from "./git-words.ts";
import { onlyLooksAtPatch } from "./looks-only.ts";
import { mayBeOption, scanAllOptions } from "./options.ts";
import type { ParsedCommand, Risk, SimpleCommand, Word } from "./parsed-command.ts";

/** Options of curl that take a value, by letter: without them a cluster such as `-sSfLd x` cannot be read. */
const CURL_VALUES =
  "-A -b -c -C -d -D -e -E -F -h -H -K -m -o -P -Q -r -t -T -u -U -w -x -X -y -Y -z --data --url-query --request --header --cookie --variable";
const WGET_VALUES =
  "-e -o -a -i -B -t -O -T -w -Q -P -U -l -A -R -D -I -X --execute --method --header --use-askpass";

/** Long options of curl with which data leave; every beginning of five letters counts. */
const CURL_SENDS =
  "--data --data-ascii --data-binary --data-raw --data-urlencode --form --form-string --form-escape --upload-file --json --quote --prequote --postquote --mail-from --mail-rcpt --mail-auth --telnet-option --unix-socket --abstract-unix-socket --append --proxy-header --expand-data --expand-url --expand-header";
const SENDING_LETTERS = "-d -F -T -Q -t -a";
const HARMLESS_METHOD = /^(?:GET|HEAD|OPTIONS)$/i;

/** Whether a command gives data away, or speaks a protocol that is more than fetching a page. */
export function sendsData(command: SimpleCommand): boolean {
  const { program, argv } = command;
  if (program === "curl") return curlSends(argv) || argv.some(hasOtherScheme);
  if (program === "wget") return wgetSends(argv) || argv.some(hasOtherScheme);
  if (/^(?:g?tar|cpio|mt)$/.test(program)) return hasFarArchive(argv);
  if (carriesInAddress(command)) return true;
  if (/^(?:dig|nslookup|host|getent|ping|ping6|drill|kdig|resolvectl|traceroute|whois|finger)$/.test(program))
    // A name that is put together from elsewhere carries it to whoever answers for the zone.
    return argv.some((word) => word.kind === "unresolved");
  return program === "openssl" && /^s_(?:client|time)$/.test(toText(argv[0]));
}

/** `tar cf host:x .`: an archive on another machine, by ssh. */
function hasFarArchive(argv: readonly Word[]): boolean {
  const words = argv.map(toText);
  if (words.includes("--force-local")) return false;
  return words.some((text, at) => {
    const before = words[at - 1] ?? "";
    const isOld = at === 1 && /^[A-Za-z]*f[A-Za-z]*$/.test(before);
    const isValue = isOld || /^-[A-Za-z]*[fFOI]$/.test(before) || /^--file$/.test(before);
    const value = isValue ? text : (/^(?:--file=|-[A-Za-z]*?[fFOI])([\s\S]+)$/.exec(text)?.[1] ?? "");
    return /^[^/:]+:/.test(value);
  });
}

/** Words by which programs that are no clients of the web take an address. */
const TAKES_ADDRESS: ReadonlyMap<string, RegExp> = new Map([
  ["git", /^(?:clone|fetch|pull|push|ls-remote|remote|submodule|archive|subtree|lfs)$/],
  ...["npm", "pnpm", "yarn", "bun"].map((name): [string, RegExp] => [
    name,
    /^(?:view|info|show|v|pack|search|find|ping|audit|install|i|add|ci|exec|x|dlx|diff|outdated|update|create|init)$/,
  ]),
  ["go", /^(?:list|get|mod|install|run)$/],
  ...["docker", "podman", "nerdctl"].map((name): [string, RegExp] => [
    name,
    /^(?:pull|search|build|image|manifest|buildx)$/,
  ]),
  ...["pip", "pip3", "uv"].map((name): [string, RegExp] => [
    name,
    /^(?:download|install|index|search|wheel|pip|add|sync)$/,
  ]),
  ...["cargo", "gem", "composer", "poetry", "bundle", "helm", "brew"].map((name): [string, RegExp] => [
    name,
    /^(?:install|search|info|add|fetch|pull|repo|show|update|require|tap|specification|list|query|git)$/,
  ]),
  ...["gh", "glab"].map((name): [string, RegExp] => [name, /^(?:api|repo)$/]),
  ["svn", /./],
  ["hg", /^(?:clone|pull|push|identify|id|incoming|outgoing)$/],
]);
/** What the shell puts in. */
const PUT_IN = /\$\([^)]*\)|`[^`]*`|\$\{[^}]*\}|\$\w+/g;

/** An address that is put together from elsewhere carries that to whoever answers it. */
function carriesInAddress({ program, argv }: SimpleCommand): boolean {
  const verbs = TAKES_ADDRESS.get(program);
  if (verbs === undefined) return false;
  const verb =
    program === "git" ? toGitCall(argv)?.verb : argv.map(toText).find((text) => !/^-|^$/.test(text));
  if (verb === undefined || !verbs.test(verb)) return false;
  return argv.some(
    (word) =>
      word.kind === "unresolved" &&
      word.reason !== "home" &&
      word.reason !== "glob" &&
      word.source.length < 20_000 &&
      /^["']?(?:-{1,2}[\w-]+=)?(?:[a-z][a-z0-9+]*:\/\/|[\w.@-]*\.[a-z]{2,24}[/:])/i.test(
        word.source.replace(PUT_IN, "x"),
      ),
  );
}

function curlSends(argv: readonly Word[]): boolean {
  return scanAllOptions(argv, CURL_VALUES).options.some(({ name, value }) => {
    const text = toText(value);
    if (` ${SENDING_LETTERS} `.includes(` ${name} `)) return true;
    if (name === "-X" || name === "--request") return !HARMLESS_METHOD.test(text);
    if (name === "-H" || name === "--header") return text.startsWith("@");
    if (name === "-b" || name === "--cookie") return value?.kind === "literal" && !text.includes("=");
    if (name === "--url-query") return value?.kind !== "literal" || /^\+?[^=]*@/.test(text);
    if (name === "--variable") return value?.kind !== "literal" || text.includes("@");
    return name.length >= 5 && CURL_SENDS.split(" ").some((option) => option.startsWith(name));
  });
}

function wgetSends(argv: readonly Word[]): boolean {
  return scanAllOptions(argv, WGET_VALUES).options.some(({ name, value }) => {
    const text = toText(value);
    if (name === "-e" || (name.length >= 4 && "--execute".startsWith(name)))
      return value?.kind !== "literal" || !/^\s*(?:robots|timeout|tries|quiet|recursive)\s*=/i.test(text);
    if (name === "--method") return !HARMLESS_METHOD.test(text);
    return name.length >= 4 && /^--(?:post|body)-(?:data|file)$/.test(completed(name));
  });
}
const completed = (name: string): string =>
  ["--post-data", "--post-file", "--body-data", "--body-file"].find((option) => option.startsWith(name)) ??
  name;

/** `smtp://`, `gopher://`, `dict://`, `telnet://`: what is sent there stands in the address. */
const hasOtherScheme = (word: Word): boolean =>
  /^(?!https?:|ftps?:|file:)[a-z][a-z0-9+.-]*:\/\//i.test(toText(word).replace(/^--url=/, ""));

const FETCHES =
  /^(?:curl|wget|http|https|xh|aria2c|lynx|w3m|links|nc|ncat|netcat|socat|ftp|lftp|scp|sftp|rsync)$/;
const RUNS: ReadonlySet<Risk> = new Set<Risk>([
  "unknown",
  "interpreter",
  "project_code",
  "shell",
  "packages",
  "infrastructure",
]);
/** Modules of Python that only read what they are given. */
const READS_ONLY = /^-m ?(?:json\.tool|base64|gzip|tarfile|zipfile)\b/;
const TELLS = /^(?:--version|-V|-v|--help)$/;

/**
 * Whether what a program of the line fetches from the network is handed on to one that may run it: through a pipe, or as
 * a file that a later build, test or script of the same line finds.
 */
export function runsFetched({ commands, writes, operands }: ParsedCommand): boolean {
  const first = commands.findIndex(
    ({ program, argv }) =>
      FETCHES.test(program) || (/^(?:gh|glab)$/.test(program) && toText(argv[0]) === "api"),
  );
  const cloned = commands.findIndex(
    ({ program, argv }) =>
      /^(?:git|gh|glab|hg|svn)$/.test(program) && argv.some((word) => toText(word) === "clone"),
  );
  const later = (from: number): SimpleCommand[] =>
    from === -1 ? [] : commands.slice(from + 1).filter((command) => mayRun(command));
  if (later(first).some(({ input }) => input === "pipe")) return true;
  if (later(cloned).some(({ risk, program }) => risk === "project_code" || program === "docker")) return true;
  const brought = commands.findIndex(
    (command) => fetchesTree(command) || fetchesForeign(command) || changesTasks(command),
  );
  if (later(brought).some(({ risk }) => risk === "project_code" || risk === "interpreter")) return true;
  const unpacked = commands.findIndex(laysOut);
  if (
    later(unpacked).some(({ risk }) => risk === "project_code" || risk === "interpreter" || risk === "shell")
  )
    return true;
  if (first === -1) return false;
  const keeps =
    commands.some(keepsFile) ||
    writes.some(({ by }) => /^(?:>+|>\||&>+|tee|dd)$/.test(by)) ||
    commands.some(unpacks);
  return keeps && (later(first).length > 0 || operands.length > 0);
}

/** An address, another folder, or somebody's change that nobody has taken in yet. */
const FOREIGN = /:\/\/|^[^/]+@[^/]*:|^(?:\.{0,2}|~\w*)\/|^\+?(?:refs\/)?(?:pull|merge-requests|changes)\//;

/** Whether git brings in what is not of the repository's own remotes: `git pull https://x main`, `git submodule add`. */
function fetchesForeign({ program, argv }: SimpleCommand): boolean {
  const call = program === "git" ? toGitCall(argv) : undefined;
  if (call?.verb === "submodule") return call.rest.some((word) => toText(word) === "add");
  return (
    call !== undefined &&
    /^(?:pull|fetch|fetch-pack|subtree|remote-\w+)$/.test(call.verb ?? "") &&
    call.rest.some((word) => FOREIGN.test(toText(word)))
  );
}

/** Whether the line itself says what a task does: `npm pkg set scripts.test=…`. */
function changesTasks({ program, argv }: SimpleCommand): boolean {
  const words = argv.map(toText).filter((text) => !text.startsWith("-"));
  return (
    /^(?:npm|pnpm|bun|yarn|composer)$/.test(program) &&
    /^(?:(?:pm )?pkg (?:set|delete|fix)|set-script|config scripts)\b/.test(words.join(" "))
  );
}

/** Whether files that somebody else wrote come into the folder: `gh pr checkout 12`, `gh run download 1`. */
export function fetchesTree({ program, argv }: Pick<SimpleCommand, "program" | "argv">): boolean {
  if (!/^(?:gh|glab)$/.test(program)) return false;
  const words = argv.map(toText).filter((text) => !text.startsWith("-"));
  return words.some((word, at) =>
    /^(?:(?:pr|mr) checkout|(?:run|release) download)$/.test(`${word} ${words[at + 1] ?? ""}`),
  );
}

/** Whether files come out of an archive of the folder: what is in it stands in no text. */
function laysOut(command: SimpleCommand): boolean {
  const { program, argv } = command;
  const words = argv.map(toText);
  if (/^(?:bsd|g)?tar$/.test(program))
    return (
      !onlyLooks(command) &&
      (/^[A-Za-z]*x[A-Za-z]*$/.test(words[0] ?? "") ||
        words.some((word) => /^-[A-Za-z]*x[A-Za-z]*$|^--(?:extract|get)$/.test(word)))
    );
  if (/^(?:bsd)?unzip$/.test(program))
    return words.length > 0 && !words.some((word) => /^-[lptvzZ]$/.test(word));
  if (/^7z[ar]?$/.test(program)) return /^[xe]$/.test(words[0] ?? "");
  if (program === "cpio")
    return words.some((word) => /^-[A-Za-z]*i|^--extract$/.test(word)) && !onlyLooks(command);
  return program === "jar" && /^-?[a-z]*x/.test(words[0] ?? "");
}

/** Whether what the line fetches is laid over files through a pipe, unseen. */
export function unpacksFetched({ commands }: ParsedCommand): boolean {
  const first = commands.findIndex(({ program }) => FETCHES.test(program));
  return first !== -1 && commands.slice(first + 1).some((command) => unpacks(command) && !onlyLooks(command));
}

/** `tar t`, `git apply --check`: what comes is only looked at. */
const onlyLooks = (command: SimpleCommand): boolean => {
  const { program, argv } = command;
  const words = argv.map(toText);
  if (program === "git")
    return !/^(?:apply|am)$/.test(toGitCall(argv)?.verb ?? "apply") || onlyLooksAtPatch(command);
  if (program === "patch") return onlyLooksAtPatch(command);
  if (argv.some(mayBeOption)) return false;
  return /tar$/.test(program)
    ? words.some((word) => /^-?[A-Za-z]*t[A-Za-z]*$/.test(word) || /^--(?:list|to-stdout)$/.test(word)) &&
        !words.some((word) => /^-?[A-Za-z]*x/.test(word))
    : words.some((word) => /^(?:-[lptv]|--list|-it)$/.test(word));
};

const mayRun = ({ risk, argv }: SimpleCommand): boolean => {
  const words = argv.map(toText);
  return RUNS.has(risk) && !READS_ONLY.test(words.join(" ")) && !words.some((word) => TELLS.test(word));
};

/** Whether a program makes files of what comes through a pipe. */
const unpacks = ({ program, input }: SimpleCommand): boolean =>
  input === "pipe" && /^(?:tar|bsdtar|gtar|cpio|unzip|bsdunzip|7z|patch|git|sponge)$/.test(program);

/** Whether a program that fetches leaves a file behind. */
function keepsFile({ program, argv }: SimpleCommand): boolean {
  if (!FETCHES.test(program)) return false;
  const words = argv.map(toText);
  if (program === "wget") {
    const { options } = scanAllOptions(argv, `${WGET_VALUES} --output-document`);
    return !options.some(
      ({ name, value }) =>
        name === "--spider" ||
        ((name === "-O" || name === "--output-document") && /^(?:-|\/dev\/null)$/.test(toText(value))),
    );
  }
  if (program === "curl") {
    const { options } = scanAllOptions(argv, `${CURL_VALUES} --output`);
    return options.some(
      ({ name, value }) =>
        /^(?:-O|-J|--remote-name(?:-all)?|--output-dir)$/.test(name) ||
        ((name === "-o" || (name.length >= 4 && "--output".startsWith(name))) &&
          !/^(?:-|\/dev\/null)$/.test(toText(value))),
    );
  }
  return (
    /^(?:aria2c|scp|sftp|rsync|ftp|lftp)$/.test(program) ||
    words.some((word) => /^(?:-o|--output|-d|--download)/.test(word))
  );
}

/** Whether a client of a store of another language than SQL reads its commands from the input. */
export const takesDatabaseInput = ({ program, input }: SimpleCommand): boolean =>
  input !== "inherited" &&
  /^(?:redis-cli|valkey-cli|keydb-cli|mongo|mongosh|cqlsh|etcdctl|influx|cypher-shell|neo4j-shell)$/.test(
    program,
  );

/** What kinds of programs run: a policy that closes the network looks at these, not at names. */
export function toProgramSignals({ commands }: ParsedCommand): string[] {
  return [...new Set(commands.map(({ risk }) => risk))].flatMap((risk) => SIGNALS[risk] ?? []);
}
const SIGNALS: Partial<Record<Risk, string>> = {
  network: "program.network",
  unknown: "program.unknown",
  interpreter: "program.interpreter",
  packages: "program.packages",
  infrastructure: "program.infrastructure",
  project_code: "program.project-code",
};

/** A function, of any name, that pipes itself into itself, or starts itself twice in the background. */
export function isForkBomb(source: string): boolean {
  if (source.length > 20_000) return false;
  for (const [, name = ""] of source.matchAll(
    /(?:^|[\s;&|(){}])(?:function\s+)?([^\s;&|(){}$`"'<>]{1,64})\s*\(\s*\)/g,
  )) {
    const own = name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    if (new RegExp(`(?:^|[\\s;&{(])${own}\\s*\\|&?\\s*${own}(?:[\\s;&)}]|$)`).test(source)) return true;
    if (new RegExp(`(?:^|[\\s;{(])${own}\\s*&\\s*;?\\s*${own}(?:[\\s;&)}]|$)`).test(source)) return true;
  }
  for (const [, name = ""] of source.matchAll(/\bfunction\s+([^\s;&|(){}$`"'<>]{1,64})\s*\{/g)) {
    const own = name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    if (new RegExp(`(?:^|[\\s;&{(])${own}\\s*(?:\\|&?|&)\\s*${own}(?:[\\s;&)}]|$)`).test(source)) return true;
  }
  return false;
}

const toText = (word: Word | undefined): string =>
  word === undefined ? "" : word.kind === "literal" ? word.text : word.prefix;
