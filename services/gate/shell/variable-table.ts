/** Variables whose value is run as a command by the programs that read them. */
const COMMANDS =
  /^(?:PROMPT_COMMAND|GIT_SSH_COMMAND|GIT_SSH|GIT_EXTERNAL_DIFF|GIT_PROXY_COMMAND|VISUAL|FCEDIT|\w*_?(?:EDITOR|PAGER|ASKPASS)|RSYNC_RSH|RSYNC_CONNECT_PROG|CVS_RSH|SVN_SSH|BROWSER|FZF_DEFAULT_COMMAND|TAR_OPTIONS|MAKEFLAGS)$/;
/** Variables that load code or settings, or change what every later word means. */
const LOADERS =
  /^(?:LD_\w+|DYLD_\w+|BASH_ENV|ENV|BASH_FUNC_.*|SHELLOPTS|BASHOPTS|PS[0-4]|SHELL|EXECIGNORE|ZDOTDIR|FPATH|INPUTRC|HOME|XDG_CONFIG_(?:HOME|DIRS)|XDG_DATA_(?:HOME|DIRS)|GIT_CONFIG\w*|GIT_EXEC_PATH|GIT_TEMPLATE_DIR|GIT_DIR|GIT_WORK_TREE|GIT_INDEX_FILE|GIT_OBJECT_DIRECTORY|GIT_ALTERNATE_OBJECT_DIRECTORIES|GIT_COMMON_DIR|GH_(?:REPO|HOST|CONFIG_DIR)|GL(?:AB)?_(?:HOST|CONFIG_DIR|REPO)|GITLAB_(?:HOST|URI)|HGRCPATH|LESSOPEN|LESSCLOSE|LESSKEY\w*|RIPGREP_CONFIG_PATH|PSQLRC|WGETRC|CURL_HOME|TAPE|AWKPATH|AWKLIBPATH|VIMINIT|EXINIT|EMACSLOADPATH|SCREENRC|GNUPGHOME|PYTHON(?:STARTUP|HOME|BREAKPOINT|INSPECT|USERBASE|EXECUTABLE)|PERL5DB|PERL_MM_OPT|GCONV_PATH|GTK_MODULES|QT_PLUGIN_PATH|OPENSSL_(?:CONF|ENGINES|MODULES)|NODE_EXTRA_CA_CERTS|NODE_TLS_REJECT_UNAUTHORIZED|GIT_SSL_NO_VERIFY|KRB5_CONFIG|npm_config_\w+|NPM_CONFIG_\w+|YARN_\w+|PIP_(?!NO_|DISABLE_|REQUIRE_|DEFAULT_TIMEOUT)\w+|UV_(?!NO_|SYSTEM_|LINK_)\w+|\w*_?INDEX_URL|\w*_?REGISTRY|BUNDLE_(?!GEMFILE|WITHOUT|JOBS|FROZEN|DEPLOYMENT)\w+|MAKEFILES|MAKE|GNUMAKEFLAGS|RUSTC|RUSTDOC|RUSTC_\w*WRAPPER|CARGO_\w*(?:WRAPPER|RUNNER|LINKER|RUSTC|RUSTFLAGS|CONFIG\w*)|CARGO_HOME|RUSTUP_\w+|CMAKE_\w*(?:LAUNCHER|COMPILER|INCLUDE\w*|MAKE_PROGRAM)|\w+_(?:WRAPPER|LAUNCHER|PRELOAD)|ELIXIR_ERL_OPTIONS|ERL_\w*FLAGS|ERL_LIBS|DOTNET_(?:STARTUP_HOOKS|ADDITIONAL_DEPS|SHARED_STORE)|CORECLR_\w+|COR_\w+|PHPRC|PHP_INI_SCAN_DIR|LUA_INIT\w*|R_PROFILE\w*|R_ENVIRON\w*|JULIA_DEPOT_PATH|PYTEST_PLUGINS|KUBECONFIG|DOCKER_(?:HOST|CONFIG|CONTEXT|CERT_PATH)|AWS_(?:CONFIG_FILE|SHARED_CREDENTIALS_FILE|ENDPOINT_URL\w*)|CLOUDSDK_CONFIG|(?:https?|all|ftp|HTTPS?|ALL|FTP)_(?:proxy|PROXY)|RSYNC_PROXY|DOCKER_BUILDKIT_FRONTEND)$/;
/** Options of a program, without a place in its words. */
const OPTIONS = /(?:^|_|[A-Z5])(?:OPTS?|OPTIONS|ADDOPTS|FLAGS)$|^MAVEN_ARGS$/;
/** Folders, or files, in which code is looked for: those below are harmless for code of the workspace, see `code-paths.ts`. */
export const CODE_PATHS =
  /^(?:PYTHONPATH|NODE_PATH|RUBYLIB|PERL5LIB|PERLLIB|CLASSPATH|LUA_C?PATH|JULIA_LOAD_PATH|JULIA_PROJECT|GUILE_LOAD_PATH|R_LIBS\w*|GOPATH|GEM_(?:HOME|PATH)|BUNDLE_GEMFILE|VIRTUAL_ENV|CONDA_PREFIX|CMAKE_TOOLCHAIN_FILE|CMAKE_MODULE_PATH|CMAKE_PREFIX_PATH|TCLLIBPATH)$/;
/** Programs that a build calls. */
const TOOLS = /^(?:CC|CXX|CPP|LD|AR|AS|NM|RANLIB|FC|PYTHON|NODE)$/;

const PLAIN_TOOL =
  /^(?:ccache )?(?:gcc|g\+\+|clang|clang\+\+|cc|c\+\+|tcc|ld|lld|mold|ar|nm|as|ranlib|gfortran|python3?(?:\.\d+)?|node)(?:-\d+)?$/;
/** Below the folder that the command runs in. */
const BELOW = /^(?!.*(?:^|[/:])\.\.(?:[/:]|$))(?:[\w.][\w./ -]*)?(?::(?:[\w.][\w./ -]*)?)*$/;
/** Options that bring no code: no path, and no name of an agent, a plugin or a program. */
const PLAIN_OPTION =
  /^--?[A-Za-z][\w.+-]*(?:=[\w.,:%+-]*)?$|^-X(?:m[nsx]|ss)\d+[kmgKMG]?$|^-XX:[+-]?\w+(?:=\w+)?$/;
const BRINGS_CODE =
  /^-{1,2}[rMmepcBIsZ]$|^-(?:r(?!ace$)|[MeBZ])[^=]|^-m(?!od=|ax-|arch=|tune=|cpu=|fpu=|no-|avx|sse|f?pie$|64$|32$|acosx|ios|float)|^-(?:javaagent|agent|Xboot|Xrun|XX:On|XX:VMOptionsFile|XX:Flags|Xlog|Xshare|toolexec|vettool|exec|overlay|modfile|fplugin|fuse-ld|specs|wrapper|Xclang|plugin|run|W[lpa],|C?link)|(?:require|import|[lL]oader|[pP]lugin|[cC]onfig|[sS]cript|init|[aA]gent|class-?[pP]ath|[cC]ommand|[lL]auncher|[wW]rapper|eval|exec|-file|inspect(?:-\w+)?|VMOptionsFile)\b|^-D(?:java|jdk|sun)\.(?!awt\.headless|net\.prefer)|class\.path|\.ext\.|[fF]lags=|^-XX:(?:Error|HeapDump|Log|Trace|Perf|CompileCommand)/;
const VALUE_OF: ReadonlyMap<string, RegExp> = new Map([
  ["-n", /^(?:\d+|auto)$/],
  ["-j", /^\d+$/],
  [
    "-C",
    /^(?:target-(?:cpu|feature)|opt-level|debuginfo|codegen-units|panic|lto|strip|instrument-coverage)(?:=[\w+,-]*)?$/,
  ],
  ["-p", /^no:\w+$/],
  ["-A", /^[\w:-]+$/],
  ["-D", /^[\w:-]+$/],
]);

/** Where letters stand together one of them may load code: `-wMEvil`, `-xpevil`. These do not. */
const CLUSTERS: ReadonlyMap<string, RegExp> = new Map([
  ["PERL5OPT", /^-(?:[wWtTX]+|C\d*)$/],
  ["RUBYOPT", /^-(?:w|W(?::[\w-]+|\d)?|[EK][\w:-]*|U)$/],
  ["PYTEST_ADDOPTS", /^-(?:[xvqslh]+|n(?:\d+|auto)?|r[A-Za-z]*)$/],
]);

/** Variables that name a file which a program writes: what it does, what it was told, what it covered. */
const OUTPUTS =
  /^(?:GIT_TRACE\w*|GIT_REDIRECT_(?:STDIN|STDOUT|STDERR)|HISTFILE|LESSHISTFILE|NODE_V8_COVERAGE|NODE_REDIRECT_WARNINGS|LLVM_PROFILE_FILE|COVERAGE_FILE|SSLKEYLOGFILE|MALLOC_TRACE|PSQL_HISTORY|MYSQL_HISTFILE|GOCOVERDIR)$/;
/** Switches, and numbers of files that are open already. */
const SWITCH = /^(?:|\d+|true|false|yes|no|on|off)$/i;

/** What setting a variable does to the commands that see it. */
export type VariableEffect = "command" | "loader" | "search_path" | "output" | "none";

/** Judges a variable by name, and by its value where a harmless one is common. Undefined: the text does not fix it. */
export function classifyVariable(name: string, value: string | undefined): VariableEffect {
  if (name === "PATH" || name === "BASH_CMDS") return "search_path";
  if (COMMANDS.test(name)) return "command";
  // Splitting is accounted for where words are made; a changed IFS by itself runs nothing.
  if (name === "IFS" || name === "CDPATH" || name === "GLOBIGNORE") return "none";
  if (OUTPUTS.test(name)) return value !== undefined && SWITCH.test(value) ? "none" : "output";
  if (LOADERS.test(name)) return isPlainSetting(name, value) ? "none" : "loader";
  if (TOOLS.test(name)) return value !== undefined && PLAIN_TOOL.test(value) ? "none" : "loader";
  if (CODE_PATHS.test(name)) return value !== undefined && BELOW.test(value) ? "none" : "loader";
  if (OPTIONS.test(name))
    return value !== undefined && arePlainOptions(value, CLUSTERS.get(name)) ? "none" : "loader";
  // A category of warnings is imported by its name.
  if (name === "PYTHONWARNINGS") return value !== undefined && !value.includes(".") ? "none" : "loader";
  if (name === "GOPROXY")
    return value !== undefined &&
      /^(?:direct|off|https:\/\/proxy\.golang\.org)(?:,(?:direct|off))?$/.test(value)
      ? "none"
      : "loader";
  return "none";
}

/** A proxy on this machine, and words that only switch something. */
function isPlainSetting(name: string, value: string | undefined): boolean {
  if (value === undefined) return false;
  if (/_proxy$/i.test(name))
    return value === "" || /^(?:https?:\/\/)?(?:localhost|127\.0\.0\.1)(?::\d+)?\/?$/.test(value);
  return (
    /^(?:YARN_|npm_config_|NPM_CONFIG_)/.test(name) &&
    /^(?:true|false|\d+|error|warn|silent)$/.test(value) &&
    !/ssl|ignore|script|shell/i.test(name)
  );
}

function arePlainOptions(value: string, short: RegExp | undefined): boolean {
  if (value.length > 2_000) return false;
  const words = value.split(/\s+/).filter((word) => word !== "");
  return words.every((word, at) => {
    if (!word.startsWith("-")) return VALUE_OF.get(words[at - 1] ?? "")?.test(word) === true;
    if (VALUE_OF.get(word)?.test(words[at + 1] ?? "") === true) return true;
    if (short !== undefined && !word.startsWith("--")) return short.test(word);
    return PLAIN_OPTION.test(word) && !BRINGS_CODE.test(word);
  });
}
