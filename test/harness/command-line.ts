import type { Actions } from "../../services/cli/actions.ts";
import { runCommandLine } from "../../services/cli/program.ts";

export interface TypedCommand {
  /** What stands on its standard input. */
  readonly stdin?: string;
  /** What is entered at its prompts, in their order; by default nobody is there. */
  readonly secrets?: readonly string[];
  readonly signal?: AbortSignal;
}

export interface CommandResult {
  readonly exit: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Its output as JSON; null: a text for people. */
  readonly json: unknown;
}

/** Runs `fabric` in this process, as somebody types it. */
export async function typeCommand(
  argv: readonly string[],
  actions: Actions,
  { stdin = "", secrets, signal = new AbortController().signal }: TypedCommand = {},
): Promise<CommandResult> {
  let stdout = "";
  let stderr = "";
  const answers = [...(secrets ?? [])];
  const exit = await runCommandLine(argv, actions, {
    stdout: (text) => (stdout += text),
    stderr: (text) => (stderr += text),
    readStdin: () => Promise.resolve(stdin),
    colour: false,
    signal,
    version: "0.0.0",
    askSecret: () =>
      secrets === undefined
        ? Promise.reject(new Error("nobody is there"))
        : Promise.resolve(answers.shift() ?? ""),
  });
  return { exit, stdout, stderr, json: toJson(stdout) };
}

function toJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
