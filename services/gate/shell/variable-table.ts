/** Variables whose value is run as a command by the programs that read them. */
const COMMANDS =
  /^(PROMPT_COMMAND|GIT_SSH_COMMAND|GIT_SSH|GIT_EDITOR|GIT_SEQUENCE_EDITOR|GIT_PAGER|GIT_EXTERNAL_DIFF|GIT_ASKPASS|GIT_PROXY_COMMAND|EDITOR|VISUAL|FCEDIT|PAGER|MANPAGER|SSH_ASKPASS|SUDO_ASKPASS|RSYNC_RSH|BROWSER|KUBE_EDITOR|TAR_OPTIONS|MAKEFLAGS)$/;
/** Variables that load code, or change what every later word means. */
const LOADERS =
  /^(LD_\w+|DYLD_\w+|BASH_ENV|ENV|BASH_FUNC_.*|SHELLOPTS|BASHOPTS|PS[0-4]|IFS|CDPATH|GLOBIGNORE|SHELL|GIT_CONFIG\w*|GIT_EXEC_PATH|GIT_TEMPLATE_DIR|GIT_DIR|GIT_WORK_TREE|GIT_INDEX_FILE|GIT_OBJECT_DIRECTORY|GIT_ALTERNATE_OBJECT_DIRECTORIES|GIT_COMMON_DIR|LESSOPEN|LESSCLOSE|PYTHONSTARTUP|PYTHONPATH|PYTHONHOME|PERL5OPT|PERL5LIB|PERL5DB|RUBYOPT|RUBYLIB|NODE_OPTIONS|NODE_PATH|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|GCONV_PATH|CC|CXX|npm_config_\w+|NPM_CONFIG_\w+|EXECIGNORE)$/;

/** What setting a variable does to the commands that see it. */
export type VariableEffect = "command" | "loader" | "search_path" | "none";

/** Judges a variable by name, and by its value where a harmless one is common. */
export function classifyVariable(name: string, value: string | undefined): VariableEffect {
  if (name === "PATH" || name === "BASH_CMDS") return "search_path";
  if (COMMANDS.test(name)) return "command";
  if (!LOADERS.test(name)) return "none";
  if (name === "NODE_OPTIONS" && /^--max-old-space-size=\d+$/.test(value ?? "$")) return "none";
  // Splitting is accounted for where words are made; a changed IFS by itself runs nothing.
  if (name === "IFS" || name === "CDPATH" || name === "GLOBIGNORE") return "none";
  return "loader";
}
