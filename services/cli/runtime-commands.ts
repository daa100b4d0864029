import type { Command } from "commander";
import { InvalidArgumentError, Option } from "commander";
import type { Actions } from "./actions.ts";
import type { Bind } from "./command-action.ts";
import { toSpanMs } from "./span.ts";

const programOption = ["--program <file>", "the client's program, when it is not the one on PATH"] as const;
const homeOption = ["--home <dir>", "whose configuration; default: yours"] as const;

/** Below the ten minutes that clients give a hook at most. */
const waitMaxSeconds = 540;
function toWaitSeconds(text: string): number {
  const seconds = Number(text);
  if (Number.isInteger(seconds) && seconds >= 0 && seconds <= waitMaxSeconds) return seconds;
  throw new InvalidArgumentError(`give whole seconds, at most ${String(waitMaxSeconds)}`);
}

/** `fabric install|uninstall|doctor|hook <runtime>`, `fabric runtimes`. */
export function addRuntimeCommands(program: Command, actions: Actions, action: Bind): void {
  program
    .command("install")
    .argument("<runtime>", "a runtime, as `fabric runtimes` lists them")
    .description("put the gate's hooks into an agent's configuration: shows the diff, keeps what is there")
    .option("--form <form>", "how the client asks the gate; default: the first that it takes")
    .option("--gate-url <url>", "default: FABRIC_GATE_URL")
    .option("--token-file <file>", "a token of the role runtime; default: a new one of this machine's key")
    .option(
      "--wait <seconds>",
      "hold a call for so long while its approval is open; default: none, it gets a ticket at once",
      toWaitSeconds,
      0,
    )
    .option("--trust", "say yes to what the client itself would ask about its hooks")
    .option("--dry-run", "show the diff and write nothing")
    .option(...programOption)
    .option(...homeOption)
    .addHelpText(
      "after",
      "\nAgain: the same installation, or this version's. Exit 4: this version of the client cannot be made fail-closed." +
        "\n\nExamples:\n  fabric install claude-code --dry-run\n  fabric install codex --trust && fabric doctor codex",
    )
    .action(
      action(
        (
          runtime: string,
          options: {
            form?: string;
            gateUrl?: string;
            tokenFile?: string;
            trust?: boolean;
            wait: number;
            dryRun?: boolean;
            program?: string;
            home?: string;
          },
        ) =>
          (common) =>
            actions.runtimeInstall(common, {
              runtime,
              form: options.form,
              gateUrl: options.gateUrl,
              tokenFile: options.tokenFile,
              trust: options.trust === true,
              waitSeconds: options.wait,
              dryRun: options.dryRun === true,
              program: options.program,
              home: options.home,
            }),
      ),
    );
  program
    .command("uninstall")
    .argument("<runtime>")
    .description("take the hooks out again; what others wrote since stays")
    .option("--dry-run", "show the diff and write nothing")
    .option(...homeOption)
    .action(
      action(
        (runtime: string, options: { dryRun?: boolean; home?: string }) => (common) =>
          actions.runtimeUninstall(common, {
            runtime,
            dryRun: options.dryRun === true,
            home: options.home,
          }),
      ),
    );
  program
    .command("doctor")
    .argument("<runtime>")
    .description("prove on the installed client that the hooks hold: trust, openings, canaries, sessions")
    .option("--no-canaries", "do not run the client")
    .option(
      "--since <span>",
      "how far back the client's own records are compared with what the gate decided; at most to the installation",
      toSpanMs,
      toSpanMs("7d"),
    )
    .option(...programOption)
    .option(...homeOption)
    .addHelpText(
      "after",
      "\nThe client runs in an empty home with a scripted model: no account, no key, nothing of yours. Of sessions their ids and\n" +
        "those of their calls are compared, nothing else of them is sent. Exit 1: something does not hold.\n\nExample:\n  fabric doctor claude-code",
    )
    .action(
      action(
        (runtime: string, options: { canaries: boolean; since: number; program?: string; home?: string }) =>
          (common) =>
            actions.runtimeDoctor(common, {
              runtime,
              canaries: options.canaries,
              sinceMs: options.since,
              program: options.program,
              home: options.home,
            }),
      ),
    );
  program
    .command("hook")
    .argument("<runtime>")
    .description("what the installed command hook says to the payload on stdin: reply, message and exit code")
    .addOption(
      new Option("--mode <mode>", "`gate`: in front of an effect; `observe`: something happened")
        .choices(["gate", "observe"])
        .default("gate"),
    )
    .option(...homeOption)
    .addHelpText(
      "after",
      "\nClients run the installed script itself, which starts sooner. Exit 2 with a message: the call would not run.\n\n" +
        "Example:\n  fabric hook claude-code < payload.json",
    )
    .action(
      action(
        (runtime: string, options: { mode: "gate" | "observe"; home?: string }) => (common) =>
          actions.runtimeHook(common, { runtime, mode: options.mode, home: options.home }),
      ),
    );
  program
    .command("runtimes")
    .argument("[runtime]", "one runtime, event by event")
    .description("what each runtime's hooks can do, each statement with its evidence")
    .action(action((runtime: string | undefined) => (common) => actions.runtimes(common, { runtime })));
  program
    .command("app-server")
    .argument("[command...]", "the server's command line, after `--`")
    .description("stand between a client and Codex's App Server: the gate answers its questions")
    .addOption(
      new Option("--sandbox <sandbox>", "`none`: an accepted command runs once; `keep`: the client's own")
        .choices(["none", "keep"])
        .default("none"),
    )
    .option("--listen <url>", "take a client over WebSocket, such as ws://127.0.0.1:7430; this machine alone")
    .option(
      "--client-token-file <file>",
      "what that client has to show; made, mode 0600, where there is none",
    )
    .option(
      "--connect <url>",
      "a server that listens on a WebSocket of this machine, in place of a command line",
    )
    .option("--connect-token-file <file>", "what that server wants to be shown")
    .option("--gate-url <url>", "default: FABRIC_GATE_URL")
    .option("--token-file <file>", "a token of the role runtime; default: FABRIC_TOKEN_FILE")
    .addHelpText(
      "after",
      "\nThe client speaks to standard input and output, as it would to the server itself, or to the WebSocket.\n\nExamples:\n" +
        "  fabric app-server -- codex app-server\n" +
        "  fabric app-server --listen ws://127.0.0.1:7430 --client-token-file client.token -- codex app-server",
    )
    .action(
      action(
        (
          argv: string[],
          options: {
            sandbox: "keep" | "none";
            listen?: string;
            clientTokenFile?: string;
            connect?: string;
            connectTokenFile?: string;
            gateUrl?: string;
            tokenFile?: string;
          },
        ) =>
          (common) =>
            actions.appServer(common, {
              argv,
              sandbox: options.sandbox,
              listen: options.listen,
              clientTokenFile: options.clientTokenFile,
              connect: options.connect,
              connectTokenFile: options.connectTokenFile,
              gateUrl: options.gateUrl,
              tokenFile: options.tokenFile,
            }),
      ),
    );
}
