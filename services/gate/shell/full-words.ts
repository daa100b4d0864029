import { PATH_TABLE } from "./path-table.ts";
import type { Word } from "./parsed-command.ts";
import { PROGRAM_TABLE } from "./program-table.ts";

/**
 * Long options that rules speak of, beside those of the tables. An option is read as the first one that it begins, so
 * those that do more stand first; harmless ones stand here too when another begins with their name.
 */
const LONG_OPTIONS: Readonly<Record<string, string>> = {
  git:
    "--delete --force --mirror --prune --no-verify --hard --merge --output --output-directory --no-index --prefix --repo --edit " +
    "--work-tree --git-dir --exec --receive-pack --upload-pack --extcmd --open-files-in-pager --global --system --file " +
    "--force-with-lease --force-if-includes --config --template --config-env --exec-path --patch --separate-git-dir --no-verify-signatures",
  rm: "--recursive --force --no-preserve-root",
  curl:
    "--output --output-dir --data --data-raw --data-binary --data-ascii --data-urlencode --form --form-string --upload-file --json " +
    "--request --config --dump-header --cookie-jar --cookie --trace --trace-ascii --stderr --libcurl --hsts --alt-svc --etag-save " +
    "--write-out --remote-name --remote-name-all --user --user-agent --url --url-query --proxy --proxy-user --head --header --key " +
    "--key-type --cert --cert-type --retry --retry-delay --compressed --connect-timeout --fail --fail-with-body --ssl --get --silent " +
    "--show-error --location --insecure --verbose --version --help --max-time --include --range --http2 --socks5 --time-cond --no-progress-meter",
  wget:
    "--output-document --output-file --post-data --post-file --body-data --body-file --method --directory-prefix --save-cookies " +
    "--append-output --config --execute --use-askpass --input-file --user --user-agent --quiet --no-check-certificate --continue " +
    "--header --timeout --tries --recursive --spider --version --help",
  chmod: "--recursive --reference",
  chown: "--recursive --reference",
  chgrp: "--recursive --reference",
  tar:
    "--extract --get --create --append --update --delete --to-command --use-compress-program --checkpoint-action --info-script " +
    "--new-volume-script --rsh-command --rmt-command --absolute-names --transform --xform --directory --file --list --to-stdout " +
    "--checkpoint --one-top-level --exclude --exclude-from --files-from --verbose --gzip --remove-files",
  gpg: "--output --export-secret-keys --export-secret-subkeys --decrypt --export",
  gh: "--force --delete-branch --method --field --raw-field --input",
  glab: "--method --field --raw-field --input",
  npm: "--prefix --pack-destination --global --script-shell --workspace",
  mktemp: "--tmpdir --suffix",
  sed: "--in-place --expression --file",
  sort: "--output --compress-program --files0-from --temporary-directory --key --field-separator",
  unzip: "",
  docker: "--privileged --push --volume --mount --network --security-opt --device --cap-add --pid",
  podman: "--privileged --push --volume --mount --network --security-opt --device --cap-add --pid",
  make: "--eval --file --makefile --directory",
  gmake: "--eval --file --makefile --directory",
  sops: "--decrypt",
  psql:
    "--output --log-file --log --command --file --variable --version --set --single-transaction --single-line --single-step --dbname --host --html --help --port --pset --username --list " +
    "--no-align --no-password --no-psqlrc --no-readline --csv --tuples-only --quiet --expanded --echo-all --echo-errors --echo-queries --echo-hidden",
  mysql: "--tee --execute --init-command --pager --table --tls-version",
  mariadb: "--tee --execute --init-command --pager --table --tls-version",
  rsync:
    "--rsh --rsync-path --remove-source-files --delete --log-file --backup-dir --password-file --exclude --exclude-from --include " +
    "--include-from --files-from --filter",
};

const optionsByProgram = new Map<string, readonly string[]>();
function toKnownOptions(program: string): readonly string[] {
  const before = optionsByProgram.get(program);
  if (before !== undefined) return before;
  const paths = PATH_TABLE.get(program);
  const launch = PROGRAM_TABLE.get(program)?.launch;
  const lists = [
    Object.hasOwn(LONG_OPTIONS, program) ? LONG_OPTIONS[program] : undefined,
    ...[paths?.outputs, paths?.into, paths?.onlyWith, paths?.unless, paths?.values],
    ...[launch?.code, launch?.directory, launch?.values, launch?.flags, launch?.queries],
  ];
  const made = [...new Set(lists.flatMap((list) => (list ?? "").split(" ")))].filter((name) =>
    name.startsWith("--"),
  );
  // Names come with requests; only those of the tables are kept.
  if (made.length > 0) optionsByProgram.set(program, made);
  return made;
}

/** Verbs that a program takes by their beginning, and what rules call them. */
const VERBS: Readonly<
  Record<string, { readonly exact: string; readonly verbs: string; readonly least: number }>
> = {
  npm: {
    least: 2,
    verbs:
      "publish unpublish install uninstall update exec deprecate dist-tag run-script restart rebuild access adduser audit bugs cache " +
      "completion config dedupe diff docs doctor edit explain explore find-dupes fund help init link login logout outdated owner pack " +
      "ping pkg prefix profile prune query repo root sbom search shrinkwrap stars start stop team test token undeprecate version view whoami",
    exact:
      "i in add up ci it cit ic rb un rm r ln ls la ll list ddp c s se t tst x run set get org star unstar help-search hlep install-ci-test " +
      "install-test clean-install install-clean isntall upgrade udpate remove unlink show info why author home issues create innit verison",
  },
  cargo: { least: 3, verbs: "publish install add", exact: "" },
  kubectl: { least: 3, verbs: "delete drain apply create replace patch scale rollout edit", exact: "" },
  oc: { least: 3, verbs: "delete drain apply create replace patch scale rollout edit", exact: "" },
};
/** Other names of verbs. */
const OTHER_VERBS: ReadonlyMap<string, string> = new Map([
  ...["it", "install-test", "ins", "inst", "insta", "instal", "isnt", "isnta", "isntal"].map(
    (name): [string, string] => [`npm ${name}`, "install"],
  ),
  ["npm upgrade", "update"],
  ["npm udpate", "update"],
  ["npm up", "update"],
  ["npm ln", "link"],
]);

function toFullVerb(program: string, verb: string): string {
  const other = OTHER_VERBS.get(`${program} ${verb}`);
  if (other !== undefined) return other;
  const known = Object.hasOwn(VERBS, program) ? VERBS[program] : undefined;
  if (known === undefined || verb.length < known.least || known.exact.split(" ").includes(verb)) return verb;
  return known.verbs.split(" ").find((name) => name.startsWith(verb)) ?? verb;
}

/** Words with abbreviated options and verbs spelled out: programs take any beginning that fits one of them only. */
export function toFullWords(program: string, words: readonly Word[]): readonly Word[] {
  const options = toKnownOptions(program);
  const hasVerbs = Object.hasOwn(VERBS, program);
  const isPython = /^(python|pypy)\d*$/.test(program);
  if (options.length === 0 && !hasVerbs && !isPython) return words;
  let isVerbFound = !hasVerbs;
  let areOptionsOver = false;
  return words.flatMap((word): readonly Word[] => {
    const text = word.kind === "literal" ? word.text : word.prefix;
    if (word.kind === "literal" && text === "--") areOptionsOver = true;
    if (areOptionsOver) return [word];
    if (isPython) {
      // `-mpip` and `-Im pip` as `-m pip`, as long as they are options of the interpreter.
      if (!text.startsWith("-")) areOptionsOver = true;
      const module = /^-[bBdEiIOqsSuvxP]*m(.*)$/.exec(text);
      if (module === null || word.kind !== "literal") return [word];
      areOptionsOver = true;
      const name = module[1] ?? "";
      return [
        { kind: "literal", text: "-m" },
        ...(name === "" ? [] : [{ kind: "literal", text: name } as const]),
      ];
    }
    if (!text.startsWith("-") && !isVerbFound && word.kind === "literal") {
      isVerbFound = true;
      const full = toFullVerb(program, text);
      return full === text ? [word] : [{ kind: "literal", text: full }];
    }
    const name = /^--[\w-]+/.exec(text)?.[0];
    if (name === undefined || options.includes(name)) return [word];
    const rest = text.slice(name.length);
    // What follows the letters has to be the end or a value: `--out$X` is any option.
    if (!(rest.startsWith("=") || (rest === "" && word.kind === "literal"))) return [word];
    const full = options.find((option) => option.startsWith(name));
    if (full === undefined) return [word];
    if (word.kind === "literal") return [{ kind: "literal", text: full + rest }];
    const source = word.source.startsWith(name) ? full + word.source.slice(name.length) : word.source;
    return [{ ...word, source, prefix: full + rest }];
  });
}

/** Programs that are installed with their version in the name: `python3.12`, `gcc-13`. */
const VERSIONED =
  /^(python[23]?|pip[23]?|pypy3?|nodejs|node|ruby|gem|perl|php|lua|gcc|g\+\+|cpp|clang|clang\+\+|clang-format|clang-tidy|llvm-config|bash|zsh|tclsh|gdb|lldb|tsc|java|go)-?\d[\d.]*$/;

/** The name by which tables and rules know a program. */
export function toKnownName(program: string): string {
  if (PROGRAM_TABLE.has(program)) return program;
  const [, name] = VERSIONED.exec(program) ?? [];
  return name !== undefined && PROGRAM_TABLE.has(name) ? name : program;
}
