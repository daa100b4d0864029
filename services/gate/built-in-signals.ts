import type { CommandIntent } from "./shell/command-intent.ts";
import type { OpaqueKind } from "./shell/parsed-command.ts";

/** What a command line, a patch or a tool is about to do. */
const intents = {
  "git.push": "commits go to a remote repository",
  "git.push.force": "a push that can take away what the remote has",
  "git.push.elsewhere": "a push to an address that is not one of the repository's remotes",
  "git.commit": "a commit is made",
  "git.discard": "work or history of a repository is thrown away",
  "git.hooks.skip": "hooks of a repository are skipped, or replaced by others",
  "history.delete": "a repository's own folder is deleted",
  "file.delete": "files are deleted",
  "file.delete.recursive": "folders are deleted with all that they hold",
  "file.delete.wide":
    "the deletion reaches the root, a home, the workspace itself, or all that lies in a folder",
  "pipe.to.shell": "a shell or an interpreter runs what it reads from a pipe",
  "code.inline": "code stands in the command line itself, in a language that is not read",
  "package.install": "packages are installed, and may run scripts",
  "package.publish": "a package or an image is published",
  "secret.read": "a secret is read, from a file or from a store",
  "credential.read": "a tool is asked to print a password, a token or a key",
  "network.fetch": "something is fetched from the network",
  "network.send": "data leave over the network",
  "network.listen": "a port is opened for others",
  "reverse.shell": "a shell is handed to another machine",
  deploy: "something is released to an environment",
  "infra.change": "infrastructure is changed",
  "infra.destroy": "infrastructure, data or containers are destroyed",
  "container.run.privileged": "a container gets rights over its host",
  "privilege.raise": "a command runs with more rights",
  "disk.write": "a disk is written below its file system",
  "permission.change": "files are opened to others, or change hands, in a wide way",
  "process.kill": "processes are ended",
  "system.stop": "a machine or a service is stopped",
  "service.change": "a system service is started, installed or changed",
  "cron.change": "something is set to run later, by itself",
} as const satisfies Record<CommandIntent, string>;

const opaqueKinds = {
  too_large: "longer, or of more parts, than is read",
  too_deep: "nested deeper than is read",
  syntax_error: "no valid bash",
  grammar_mismatch: "the grammar and bash may read it in different ways",
  control_character: "a control character",
  lookalike_character: "a character that is invisible, or looks like a blank",
  heredoc_backtick: "back-ticks in a here-document",
  unresolved_program: "the name of a program is not fixed",
  unresolved_code: "code that runs is not fixed",
  unresolved_path: "a path that is read or written is not fixed",
  inline_code: "code of a language that is not read",
  code_from_input: "code comes from an input",
  script_file: "a file holds the code",
  local_program: "a program of the workspace runs",
  unknown_option: "a launcher's option that no table names",
  unparsed_launcher: "a launcher that is not followed",
  foreign_shell: "a shell whose language is not read",
  environment: "a variable that changes what programs run",
  search_path: "the search path of programs changes",
  alias: "an alias changes what a name runs",
  arithmetic_text: "arithmetic on a text that may hold code",
  prompt_expansion: "a text is expanded a second time",
} as const satisfies Record<OpaqueKind, string>;

/** What a command may be about to do, by name: a bundle can say it of its own programs. */
export const commandIntents: ReadonlySet<string> = new Set(Object.keys(intents));

/** Every signal that classification makes by itself, with what it means. */
export const signalMeanings = {
  ...intents,
  "command.opaque": "something runs, or is written, that the command's text does not name",
  ...(Object.fromEntries(
    Object.entries(opaqueKinds).map(([kind, meaning]) => [`command.opaque.${kind}`, meaning]),
  ) as { readonly [Kind in OpaqueKind as `command.opaque.${Kind}`]: string }),
  "command.unbound":
    "something runs, or is written, that neither the text nor a bound file of the workspace fixes: `command.opaque` without `code.workspace`",
  "code.workspace": "a file of the workspace runs that the text names; the plan binds it by its digest",
  "code.elsewhere":
    "a build, a test or a tool of the project takes code or settings from a place outside of the working folder",
  "patch.hidden": "a patch is applied whose text is not in the command",
  "network.unpacks-fetched": "what is fetched is laid over files through a pipe, unseen",
  "task.release":
    "a task or a script of the workspace runs whose name says that it releases, publishes or destroys something",
  "command.unknown-program": "a program, or a subcommand of git, that no table knows",
  "command.unknown-verb":
    "a program whose verbs are known is called with another one, or with one that is not fixed",
  "network.runs-fetched": "what is fetched is handed on, by a pipe or a file, to what may run it",
  "database.input": "a database is given commands of a language that is not read, on its input",
  "fork.bomb": "a function starts itself without end",
  "program.network": "a program runs that speaks to the network",
  "program.unknown": "a program runs that no table names",
  "program.interpreter": "an interpreter runs",
  "program.packages": "a package manager of the system or of a language runs",
  "program.infrastructure": "a client of a database, a cluster, a cloud or of containers runs",
  "program.project-code": "a build tool or a test runner runs code of the workspace",
  "command.privileged": "part of the command runs through sudo or another wrapper that raises rights",
  "command.remote": "part of the command runs on another machine or in a container",
  "path.outside-workspace.read": "a file outside of the working folder is read",
  "path.outside-workspace.write": "a file outside of the working folder is written",
  "path.unresolved": "a path could not be resolved to one file",
  "path.unresolved.read": "a file is read whose name the text does not fix: it may be any",
  "path.fills-workspace":
    "a tree of names that the text does not tell is laid over the working folder, or above it",
  "environment.list":
    "variables, which may be tokens, are listed: of the environment, of processes, of states",
  "agent.start": "another agent is started",
  "input.unknown-field": "the input has a field that the tool's schema does not name",
  "url.unresolved": "a program that fetches is given an address whose host the text does not fix",
  "sql.read": "SQL that only reads",
  "sql.write": "SQL that writes rows, or has another effect",
  "sql.ddl": "SQL that changes the schema, roles or settings of a database",
  "sql.opaque": "SQL whose effect is not known from its text",
  "operand.unreadable": "a file whose content would run could not be read",
  "tool.wildcard": "the catalogue knows the tool by the beginning of its name only",
} as const satisfies Record<string, string>;

/** Names of all signals that need no `signals.yaml`. */
export const builtInSignals: readonly string[] = Object.keys(signalMeanings).sort();
