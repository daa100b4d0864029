import { toFdLaunches } from "./found-by-fd.ts";
import { toOpaque, toSource } from "./launch.ts";
import type { Launch } from "./launch.ts";
import { scanAllOptions } from "./options.ts";
import type { Word } from "./parsed-command.ts";

/** What the value of an option is: a command line of the shell, a file of code, or code of its own. */
type Value = "command" | "file" | "code";

/** Options of one kind. Long ones count by every beginning of three letters and more, as getopt takes them. */
type Row = { readonly options: string; readonly value: Value };
const row = (value: Value, options: string): Row => ({ options, value });

const COMPILER = [row("code", "-wrapper -fplugin -specs -B -fuse-ld --specs -Xclang")];
const GO = [
  row("command", "-toolexec --toolexec -vettool --vettool -exec --exec"),
  row("code", "-overlay -modfile"),
];
const NODE_PACKAGES = [
  row(
    "code",
    "--script-shell --scriptShell --node-options --shell --git --editor --viewer --shell-emulator --registry --userconfig --globalconfig",
  ),
];

/** Options that name what runs, by program. */
const TABLE: ReadonlyMap<string, readonly Row[]> = new Map<string, readonly Row[]>([
  ["split", [row("command", "--filter")]],
  ["gsplit", [row("command", "--filter")]],
  ["sort", [row("command", "--compress-program")]],
  ["gsort", [row("command", "--compress-program")]],
  ["install", [row("command", "--strip-program")]],
  ["cpio", [row("command", "--rsh-command")]],
  ["rg", [row("command", "--pre --hostname-bin")]],
  ["ag", [row("command", "--pager")]],
  ["ack", [row("command", "--pager")]],
  ["bat", [row("command", "--pager")]],
  ...["gcc", "g++", "cc", "c++", "clang", "clang++", "gfortran"].map((name): [string, Row[]] => [
    name,
    COMPILER,
  ]),
  ["go", GO],
  ...["npm", "pnpm", "yarn"].map((name): [string, Row[]] => [name, NODE_PACKAGES]),
  ["gradle", [row("file", "-I --init-script"), row("code", "-Dorg.gradle.jvmargs")]],
  ["gradlew", [row("file", "-I --init-script")]],
  ["cmake", [row("file", "-P -C"), row("code", "-E")]],
  ["ctest", [row("file", "-S -SP --script"), row("code", "--build-and-test")]],
  ["protoc", [row("code", "--plugin")]],
  ["openssl", [row("code", "-engine -provider-path")]],
  ["gpg", [row("command", "--agent-program --dirmngr-program --photo-viewer --keyboxd-program")]],
  ["svn", [row("command", "--diff-cmd --diff3-cmd --editor-cmd"), row("code", "--config-option")]],
  ["hg", [row("code", "--config --config-file -e --ssh --remotecmd")]],
  ["rpm", [row("code", "--eval -E --pipe --define -D --root")]],
  ["dpkg", [row("code", "--pre-invoke --post-invoke --status-logger")]],
  ["apt", [row("code", "-o --option -c --config-file")]],
  ["apt-get", [row("code", "-o --option -c --config-file")]],
  [
    "aria2c",
    [
      row(
        "code",
        "--on-bt-download-complete --on-download-complete --on-download-error --on-download-pause --on-download-start --on-download-stop",
      ),
    ],
  ],
  ["helm", [row("code", "--post-renderer --kubeconfig")]],
  // Another cluster or machine than the one that is set up, or settings that start programs to sign in.
  ["kubectl", [row("code", "--kubeconfig --server")]],
  ["docker", [row("code", "-H --host --config")]],
  ["wget", [row("code", "--use-askpass --config")]],
  ["tcpdump", [row("code", "-z")]],
  ["nmap", [row("code", "--script")]],
  ["ssh-keygen", [row("code", "-D -w -P11")]],
  ["pylint", [row("code", "--init-hook")]],
  ["less", [row("code", "-k --lesskey-file --lesskey-src --lesskey-content")]],
  ["ld", [row("code", "-plugin")]],
  ["prettier", [row("code", "--plugin")]],
  ["javac", [row("code", "-processorpath --processor-path -processor")]],
  ["mysql", [row("command", "--pager")]],
  ["mariadb", [row("command", "--pager")]],
  ["pylint", [row("code", "--init-hook")]],
  ["pandoc", [row("file", "-F --filter -L --lua-filter"), row("command", "--pdf-engine")]],
  ["rake", [row("code", "-e --execute -E --execute-continue -p --execute-print")]],
  ["prove", [row("command", "-e --exec")]],
  ["just", [row("code", "-c --command --shell --shell-arg")]],
  ["rebar3", [row("code", "--eval")]],
  ["bazel", [row("command", "--run_under")]],
  ["phpunit", [row("file", "--bootstrap")]],
  ["django-admin", [row("code", "-c --command")]],
  ["ipdb3", [row("code", "-c")]],
]);

/** Commands and code that programs take as the value of an option. */
export function toOptionCommands(program: string, args: readonly Word[]): Launch[] {
  return [...byTable(program, args), ...(BY_HAND.get(program)?.(args, program) ?? [])];
}

function byTable(program: string, args: readonly Word[]): Launch[] {
  const rows = TABLE.get(program);
  if (rows === undefined) return [];
  return args.flatMap((word, index): Launch[] => {
    const text = word.kind === "literal" ? word.text : word.prefix;
    if (!text.startsWith("-") || text === "-" || text === "--") return [];
    for (const { options, value } of rows)
      for (const option of options.split(" ")) {
        const found = readValue(option, text, word, args[index + 1]);
        if (found !== null) return toLaunch(program, value, text, found);
      }
    return [];
  });
}

const MISSING: Word = { kind: "unresolved", reason: "syntax", source: "(option)", prefix: "" };

/** The value that a word gives to an option, or null when it is another option. */
function readValue(option: string, text: string, word: Word, next: Word | undefined): Word | null {
  const [name = text] = text.split("=", 1);
  const isLong = option.startsWith("--");
  const isShort = option.length === 2;
  if (name === option || (isLong && name.length >= 5 && option.startsWith(name))) {
    if (!text.includes("=")) return next ?? MISSING;
    return word.kind === "literal" ? { kind: "literal", text: text.slice(name.length + 1) } : word;
  }
  if (!isShort || text.startsWith("--") || !text.startsWith(option)) return null;
  return word.kind === "literal" ? { kind: "literal", text: text.slice(2) } : word;
}

function toLaunch(program: string, value: Value, option: string, found: Word): Launch[] {
  switch (value) {
    case "command":
      return [{ kind: "code", code: found, layer: "option" }];
    case "file":
      return [{ kind: "file", file: found, language: program }];
    case "code":
      return [toOpaque("inline_code", `${option} ${toSource(found)}`, program)];
  }
}

type Judge = (args: readonly Word[], program: string) => Launch[];
const opaqueWhere =
  (pattern: RegExp): Judge =>
  (args, program) =>
    args.flatMap((word): Launch[] =>
      pattern.test(word.kind === "literal" ? word.text : word.source)
        ? [toOpaque("inline_code", toSource(word), program)]
        : [],
    );
const verbsOf = (args: readonly Word[]): string[] =>
  args.map(toSource).filter((text) => !text.startsWith("-"));

/** `-cIsh`, and `cIf sh` in the old style, whose values follow in the order of their letters. */
const judgeTarLetters: Judge = (args, program) => {
  const first = args[0] === undefined ? "" : toSource(args[0]);
  if (/^[A-Za-z]*[IF][A-Za-z]*$/.test(first)) return [toOpaque("inline_code", first, program)];
  const { options } = scanAllOptions(args, "-f -C -X -T -b -g -H -K -L -N -V -I -F");
  return options.flatMap(({ name, value }): Launch[] =>
    name === "-I" || name === "-F" ? [{ kind: "code", code: value ?? MISSING, layer: "option" }] : [],
  );
};

/** Variables of make that stand where a recipe names a program. */
const TOOL_VARIABLE =
  /^(?:\w*_)?(?:CC|CXX|CPP|LD|AR|AS|NM|RANLIB|STRIP|OBJCOPY|YACC|LEX|FC|INSTALL|RM|CP|MV|MKDIR|PYTHON\d?|PIP|NODE|NPM|GO|CARGO|RUSTC|JAVA\w*|MVN|DOCKER|CMD|COMMAND|MAKEFILES|RUN\w*|EXEC|TOOL|LAUNCHER|WRAPPER|EDITOR|PAGER|SED|AWK|GREP|PERL|SUDO|BASH|SH)=/;
const PLAIN_TOOL =
  /^(?:ccache )?(?:gcc|g\+\+|clang|clang\+\+|cc|c\+\+|tcc|ld|lld|mold|ar|python3?(?:\.\d+)?|node|npm|go|cargo|docker|podman|install|true)(?:-\d+)?$/;
const judgeMakeVariables: Judge = (args, program) =>
  args.flatMap((word): Launch[] => {
    const text = word.kind === "literal" ? word.text : word.source;
    const match = /^[A-Za-z_.][\w.]*(?:[:?+!]|::)?=([\s\S]*)$/.exec(text);
    if (match === null) return [];
    const value = match[1] ?? "";
    const isTool = TOOL_VARIABLE.test(text.replace(/(?:[:?+!]|::)=/, "=")) && !PLAIN_TOOL.test(value);
    // What stands in a variable is expanded by make, and then once more by the shell of a recipe.
    const isCode =
      word.kind === "literal" &&
      /[$`;|&<>(){}\n!]|-fplugin|-wrapper|-specs|-Xclang|-plugin|-fuse-ld|-toolexec|-vettool/.test(value);
    return isTool || isCode ? [toOpaque("environment", text, program)] : [];
  });

/** Modules of Python that run a file, or the text that they are given. */
const PYTHON_MODULES =
  /^(?:timeit|pdb|cProfile|profile|trace|runpy|code|codeop|bdb|idlelib\S*|doctest|asyncio|IPython|ipykernel\S*|coverage|pyinstrument|memory_profiler|line_profiler|kernprof|debugpy|scalene|viztracer|xmlrpc\S*|lib2to3\S*)$/;
const judgePython: Judge = (args, program) => {
  for (let at = 0; at < args.length; at += 1) {
    const text = toSource(args[at] ?? MISSING);
    if (!text.startsWith("-") || text === "-") return [];
    const attached = /^-[bBdEhiIOqsSuvxP]*m(.*)$/s.exec(text);
    if (attached === null) {
      if (/^-[WX]$/.test(text)) at += 1;
      continue;
    }
    const next = attached[1] === "" ? args[at + 1] : ({ kind: "literal", text: attached[1] ?? "" } as const);
    if (next === undefined) return [];
    if (next.kind === "unresolved") return [toOpaque("unresolved_code", next.source, program)];
    const rest = args.slice(at + 1).map(toSource);
    if (next.text === "coverage" && !rest.includes("run")) return [];
    if (next.text === "coverage" && rest.includes("-m")) return [];
    return PYTHON_MODULES.test(next.text) ? [toOpaque("inline_code", rest.join(" "), program)] : [];
  }
  return [];
};

const judgeNpm: Judge = (args, program) => {
  const [verb, set] = verbsOf(args);
  const words = args.map(toSource).join(" ");
  const isSetting = (/^(?:config|c)$/.test(verb ?? "") && set !== "get" && set !== "list") || verb === "set";
  return isSetting &&
    /(?:script-?shell|node-?options|\bshell|editor|viewer|\bgit\b|registry|prefix|cafile|strict-ssl|proxy|globalconfig|userconfig|ignore-scripts|_auth)/i.test(
      words,
    )
    ? [toOpaque("environment", words, program)]
    : [];
};

/** What is no word of its own is a program `kubectl-name`, wherever it lies. */
const KUBECTL_VERBS =
  /^(?:alpha|annotate|api-resources|api-versions|apply|attach|auth|autoscale|certificate|cluster-info|completion|config|cordon|cp|create|debug|delete|describe|diff|drain|edit|events|exec|explain|expose|get|help|kustomize|label|logs|options|patch|plugin|port-forward|proxy|replace|rollout|run|scale|set|taint|top|uncordon|version|wait)$/;
const judgeKubectl: Judge = (args, program) => {
  const { operands } = scanAllOptions(
    args,
    "-n --namespace --context --cluster --user --kubeconfig -s --server --as --as-group --token --request-timeout --cache-dir --certificate-authority --client-certificate --client-key --profile --profile-output --tls-server-name --v -v --vmodule --password --username",
  );
  const [verb] = operands;
  if (verb === undefined || (verb.kind === "literal" && KUBECTL_VERBS.test(verb.text))) return [];
  return [toOpaque("unresolved_program", args.map(toSource).join(" "), program)];
};

/** An alias of gh is a name for a command line, and with `!` one of the shell. */
const judgeGh: Judge = (args, program) => {
  const [verb, set] = verbsOf(args);
  const isSet = verb === "alias" && (set === "set" || set === "import");
  const isShell = (verb === "codespace" || verb === "cs") && set === "ssh";
  return isSet || isShell ? [toOpaque("inline_code", args.map(toSource).join(" "), program)] : [];
};

const SWIFT_VERBS = /^(?:build|test|package|run|format|sdk|--version|--help)$/;
const judgeSwift: Judge = (args, program) => {
  const first = args.find((word) => !toSource(word).startsWith("-"));
  if (args.some((word) => /^-(?:e|i|repl)$/.test(toSource(word))))
    return [toOpaque("inline_code", args.map(toSource).join(" "), program)];
  return first === undefined || SWIFT_VERBS.test(toSource(first))
    ? []
    : [{ kind: "file", file: first, language: "swift" }];
};

/** `dotnet script x`, `dotnet fsi x`, `dotnet x.dll`. */
const judgeDotnet: Judge = (args, program) => {
  const [verb, file] = args.filter((word) => !toSource(word).startsWith("-"));
  if (verb === undefined) return [];
  if (/^(?:script|fsi|exec|dnx)$/.test(toSource(verb)))
    return [
      file === undefined
        ? toOpaque("code_from_input", toSource(verb), program)
        : { kind: "file", file, language: "dotnet" },
    ];
  return /\.(?:dll|exe|cs|csx|fsx)$/i.test(toSource(verb))
    ? [{ kind: "file", file: verb, language: "dotnet" }]
    : [];
};

/** `java -jar x.jar`, `java X.java`. */
const judgeJava: Judge = (args, program) => {
  if (args.some((word) => /^-(?:version|-version|-help|help|\?)$/.test(toSource(word)))) return [];
  const file = args.find((word) => /\.(?:jar|java)$/.test(toSource(word)));
  return file === undefined
    ? [toOpaque("script_file", args.map(toSource).join(" "), program)]
    : [{ kind: "file", file, language: "java" }];
};

const DENO_VERBS =
  /^(?:add|bench|cache|check|clean|compile|completions|coverage|deploy|doc|eval|fmt|help|info|init|install|jupyter|lint|lsp|outdated|publish|remove|repl|run|serve|task|test|types|uninstall|upgrade|vendor)$/;
/** `deno x.ts` is `deno run x.ts`; `deno test https://…` runs what lies there. */
const judgeDeno: Judge = (args, program) => {
  const [verb] = verbsOf(args);
  const isFile = verb !== undefined && !DENO_VERBS.test(verb);
  const isFetched = args.some((word) => /^(?:https?|npm|jsr):/.test(toSource(word)));
  const isRun = verb !== undefined && /^(?:run|serve|eval|repl|bench|test|compile|install)$/.test(verb);
  return isFile || (isFetched && isRun)
    ? [toOpaque("script_file", args.map(toSource).join(" "), program)]
    : [];
};

/** `bun run -`, `bun -e code`, `bun x.ts`. */
const judgeBun: Judge = (args, program) => {
  const texts = args.map(toSource);
  if (texts.some((text) => /^(?:-e|-p|--eval|--print|--preload|-r|--require|--import)(?:=|$)/.test(text)))
    return [toOpaque("inline_code", texts.join(" "), program)];
  const [verb, what] = args.filter((word) => toSource(word) === "-" || !toSource(word).startsWith("-"));
  const file = verb !== undefined && toSource(verb) === "run" ? what : verb;
  if (file === undefined) return [];
  if (toSource(file) === "-") return [{ kind: "input", language: "javascript" }];
  return /^[./~]|\.[cm]?[jt]sx?$/.test(toSource(file))
    ? [{ kind: "file", file, language: "javascript" }]
    : [];
};

/** `-o '|sh'`: psql gives what it finds to a command line. */
const judgePsql: Judge = (args, program) =>
  scanAllOptions(
    args,
    "-c -d -f -F -h -L -o -p -P -R -T -U -v --command --file --output --log-file --set --variable",
  ).options.flatMap(({ name, value }): Launch[] => {
    if (!/^(?:-o|--output)$/.test(name) || value === undefined) return [];
    if (value.kind === "literal")
      return /^\s*\|/.test(value.text)
        ? [
            {
              kind: "code",
              code: { kind: "literal", text: value.text.replace(/^\s*\|/, "") },
              layer: "option",
            },
          ]
        : [];
    const start = value.prefix.replace(/^(?:-o|--output=)/, "");
    return start === "" || start.startsWith("|") ? [toOpaque("unresolved_code", value.source, program)] : [];
  });

/** `mix run -e code`, `mix eval code`. */
const judgeMix: Judge = (args, program) => {
  const [verb] = verbsOf(args);
  const isCode = verb === "eval" || args.some((word) => /^(?:-e|--eval)(?:=|$)/.test(toSource(word)));
  return isCode ? [toOpaque("inline_code", args.map(toSource).join(" "), program)] : [];
};

const BY_HAND: ReadonlyMap<string, Judge> = new Map<string, Judge>([
  ["tar", judgeTarLetters],
  ["bsdtar", judgeTarLetters],
  ["gtar", judgeTarLetters],
  ["make", judgeMakeVariables],
  ["gmake", judgeMakeVariables],
  ["nmake", judgeMakeVariables],
  ...["python", "python2", "python3", "pypy", "pypy3"].map((name): [string, Judge] => [name, judgePython]),
  ["npm", judgeNpm],
  ["pnpm", judgeNpm],
  ["yarn", judgeNpm],
  ["openssl", opaqueWhere(/^engine$/)],
  // A setting that names modules to load.
  ["sphinx-build", opaqueWhere(/^(?:-D\s*)?(?:extensions|html_theme_path|templates_path)=/)],
  ["mlr", opaqueWhere(/\b(?:system|exec)\s*\(|\b(?:tee|emit\w*|print\w*|dump)\b[^;}]*[>|]/)],
  ["mix", judgeMix],
  ["kubectl", judgeKubectl],
  ["gh", judgeGh],
  ["fd", toFdLaunches],
  ["fdfind", toFdLaunches],
  ["rustc", opaqueWhere(/^(?:-C|--codegen=)?linker=/)],
  ["psql", judgePsql],
  ["usql", judgePsql],
  ...["gcc", "g++", "cc", "c++", "clang", "clang++", "ld"].map((name): [string, Judge] => [
    name,
    // A file of further options.
    opaqueWhere(/^@/),
  ]),
  ["swift", judgeSwift],
  ["dotnet", judgeDotnet],
  ["java", judgeJava],
  ["deno", judgeDeno],
  ["bun", judgeBun],
  ...["mvn", "mvnw", "mvnd"].map((name): [string, Judge] => [
    name,
    opaqueWhere(
      /(?:^|:)exec(?:-maven-plugin)?(?::|$)|^-Dexec\.|^-Dmaven\.ext|^-DargLine=.*-(?:javaagent|agent)|(?:groovy|antrun|scripting)[\w-]*:/,
    ),
  ]),
  ["cargo", opaqueWhere(/(?:rustc|wrapper|runner|linker|rustdoc|alias\.|source\.|registr|patch\.)[^\n]*=/)],
  [
    "cmake",
    opaqueWhere(
      /^-D?\w*(?:LAUNCHER|_COMPILER|_INCLUDE|TOOLCHAIN_FILE|MAKE_PROGRAM|CROSSCOMPILING_EMULATOR)\b[^=]*=/,
    ),
  ],
]);
