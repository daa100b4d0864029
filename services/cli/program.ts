import { Command, CommanderError, Option } from "commander";
import { Fault, faultTable } from "../../schemas/faults.ts";
import type { Actions, Common } from "./actions.ts";
import { addApprovalCommands } from "./approval-commands.ts";
import type { Bind, Run } from "./command-action.ts";
import { toCount } from "./command-action.ts";
import { addCostCommands } from "./cost-commands.ts";
import { addEvalCommands } from "./eval-commands.ts";
import { addIncidentCommands } from "./incident-commands.ts";
import { addPolicyCommands } from "./policy-commands.ts";
import { addReplayCommands } from "./replay-commands.ts";
import type { ExitCode } from "./report.ts";
import { addRuntimeCommands } from "./runtime-commands.ts";
import type { Screen } from "./screen.ts";
import { addRecoveryCommands } from "./recovery-commands.ts";
import { addSqlCommands, addWorkshopCommands } from "./sql-commands.ts";
import { addTakeoverCommands } from "./takeover-commands.ts";

/** Streams and process matters, handed in so that a test can run a command line in-process. */
export interface Surroundings {
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  readonly readStdin: () => Promise<string>;
  readonly colour: boolean;
  readonly signal: AbortSignal;
  readonly version: string;
  /** See `Common`. */
  readonly askSecret: (prompt: string) => Promise<string>;
  /** See `Screen`. */
  readonly columns?: number;
  readonly isWatched?: boolean;
}

/** Parses one command line, runs it, prints its report, and answers with the exit code. Never throws. */
export async function runCommandLine(
  argv: readonly string[],
  actions: Actions,
  around: Surroundings,
): Promise<ExitCode> {
  let exit: ExitCode = 0;
  const program = new Command("fabric");

  const action: Bind = (run) => {
    return async (...args: unknown[]) => {
      const global = program.opts<{ json?: boolean; stack: string }>();
      let hasRecords = false;
      const screen: Screen = {
        json: global.json === true,
        colour: around.colour && global.json !== true,
        line: (text) => {
          if (global.json === true) around.stderr(`${text}\n`);
          else around.stdout(`${text}\n`);
        },
        record: (json, text) => {
          hasRecords = true;
          around.stdout(global.json === true ? `${toJson(json, 0)}\n` : `${text}\n`);
        },
        progress: (text) => around.stderr(`${text}\n`),
        ...(around.columns === undefined || global.json === true ? {} : { columns: around.columns }),
        isWatched: around.isWatched === true,
        ...(around.isWatched === true
          ? { status: (text: string) => around.stderr(`\r\u001b[2K${text}`) }
          : {}),
      };
      const common: Common = {
        screen,
        signal: around.signal,
        stack: global.stack,
        askSecret: around.askSecret,
      };
      const report = await (run as (...all: unknown[]) => Run)(...args)(common);
      if (screen.json && report.json !== undefined) around.stdout(`${toJson(report.json, 2)}\n`);
      else if (screen.json) {
        // A stream said in its records what there is to say.
        if ((report.exit ?? 0) !== 0 && !hasRecords) around.stdout(toErrorLine("FAILED", report.text));
      } else if (report.text !== "") around.stdout(`${report.text}\n`);
      exit = report.exit ?? 0;
    };
  };

  program
    .description("Policy Hook Fabric: one policy gate and one event backbone for all agents")
    .addOption(new Option("--json", "print one JSON document on stdout"))
    .addOption(new Option("--stack <name>", "name of the local stack below .fabric/").default("local"))
    .configureOutput({ writeOut: around.stdout, writeErr: around.stderr })
    .showHelpAfterError("run the command with --help for its options and examples")
    .exitOverride()
    .addHelpText(
      "after",
      "\nExit codes: 0 done · 1 failed or found something · 2 usage · 3 something needed is unreachable · 4 refused" +
        "\n\nExamples:\n  fabric demo --once\n  fabric up --detach\n  fabric tail agent.tool.denied\n  fabric audit who toolu_01ABC",
    );

  program
    .command("up")
    .description("start the local stack and all services")
    .option("--detach", "leave them running in the background")
    .addHelpText(
      "after",
      "\nExamples:\n  fabric up             until Ctrl-C\n  fabric up --detach    then: fabric status, fabric down",
    )
    .action(
      action(
        (options: { detach?: boolean }) => (common) =>
          actions.up(common, { detach: options.detach === true }),
      ),
    );
  program
    .command("down")
    .description("stop the local stack and its services")
    .option("--wipe", "remove their data too")
    .action(
      action(
        (options: { wipe?: boolean }) => (common) => actions.down(common, { wipe: options.wipe === true }),
      ),
    );
  program
    .command("status")
    .description("endpoints, versions, health and lag")
    .action(action(() => (common) => actions.status(common)));
  program
    .command("demo")
    .description("the story on recorded payloads of real agents, against the running system")
    .option("--once", "end after the story; exit 0 only if every step held")
    .action(
      action(
        (options: { once?: boolean }) => (common) => actions.demo(common, { once: options.once === true }),
      ),
    );
  program
    .command("serve")
    .argument(
      "[role...]",
      "gate, relay, sealer, desk, exporter, cost-watch, processor <name>; none: all in one process",
    )
    .description("run services against the configuration")
    .addHelpText("after", "\nExamples:\n  fabric serve\n  fabric serve gate\n  fabric serve processor audit")
    .action(action((roles: string[]) => (common) => actions.serve(common, { roles })));

  // commander takes `--version` for the program's own wherever it stands; that of `replay` names a file.
  if (!argv.includes("replay")) program.version(around.version);

  const config = program.command("config").description("the configuration");
  config
    .command("check")
    .description("parse the configuration and show it, secrets masked")
    .action(action(() => (common) => actions.configCheck(common)));

  const schema = program.command("schema").description("event schemas as code");
  schema
    .command("list")
    .description("event types with version and owner")
    .action(action(() => (common) => actions.schemaList(common)));
  schema
    .command("show")
    .argument("<type>", "event type, such as agent.tool.requested")
    .description("the full Avro schema of one type")
    .action(action((type: string) => (common) => actions.schemaShow(common, { type })));
  schema
    .command("check")
    .description("lint, compatibility with every earlier version, stale generated files")
    .action(action(() => (common) => actions.schemaCheck(common)));
  schema
    .command("generate")
    .description("write schemas/generated from the sources")
    .option("--check", "write nothing; fail when a file is stale")
    .option("--accept", "also add current versions to schemas/history")
    .action(
      action(
        (options: { check?: boolean; accept?: boolean }) => (common) =>
          actions.schemaGenerate(common, { check: options.check === true, accept: options.accept === true }),
      ),
    );
  schema
    .command("register")
    .description("register every type with the registry, FULL_TRANSITIVE")
    .action(action(() => (common) => actions.schemaRegister(common)));

  const topics = program.command("topics").description("Kafka topics as code");
  topics
    .command("plan")
    .description("what apply would change")
    .action(action(() => (common) => actions.topicsPlan(common)));
  topics
    .command("apply")
    .description("create and adjust topics; never deletes")
    .action(action(() => (common) => actions.topicsApply(common)));
  topics
    .command("drift")
    .description("where the broker differs from the catalogue; exit 1 if it does")
    .action(action(() => (common) => actions.topicsDrift(common)));

  program
    .command("decide")
    .description("one decision for the request on stdin, or many of a file")
    .option("--bundle <dir>", "judge by this policy folder alone, without a running gate")
    .option("--file <json>", "judge every request of a file, and compare with the decisions that it names")
    .option("--environment <name>", "with --bundle: the environment that rules see")
    .addHelpText(
      "after",
      "\nFields of a request (JSON):\n" +
        "  runtime, session_id, tool, input     required; tool has the form shell.run, input is an object\n" +
        "  tool_call_id                         the same call again gets the stored answer\n" +
        "  working_directory                    what relative paths are resolved against\n" +
        "  turn_id, agent_id, user_id, phase, permission_mode, tool_alias, parent_session_id, traceparent" +
        "\n\nA file is a JSON array or JSON lines of requests, of {request, facts?, expect?}, or of commands\n" +
        "{text, decision?}. Exit 1: a decision is another one than the file names; 4: the one request is refused." +
        '\n\nExamples:\n  echo \'{"runtime":"own","session_id":"s1","tool":"shell.run","input":{"command":"ls"}}\' | fabric decide' +
        "\n  fabric decide --bundle deploy/policy/default --file test/corpus/commands/git.json",
    )
    .action(
      action(
        (options: { bundle?: string; file?: string; environment?: string }) => (common) =>
          actions.decide(common, {
            bundle: options.bundle,
            file: options.file,
            environment: options.environment,
            readRequest: around.readStdin,
          }),
      ),
    );
  addPolicyCommands(program, actions, action);
  addApprovalCommands(program, actions, action);
  addIncidentCommands(program, actions, action);
  addRuntimeCommands(program, actions, action);
  addCostCommands(program, actions, action);
  addEvalCommands(program, actions, action);
  addTakeoverCommands(program, actions, action);
  addRecoveryCommands(program, actions, action);
  addSqlCommands(program, actions, action);
  addWorkshopCommands(program, actions, action);
  addReplayCommands(program, actions, action);
  program
    .command("tail")
    .argument("[type...]", "event types; none: all")
    .description("events as they arrive, one a line")
    .option("--from-beginning", "start with what the topics hold")
    .option("--limit <n>", "end after n events", toCount)
    .action(
      action(
        (types: string[], options: { fromBeginning?: boolean; limit?: number }) => (common) =>
          actions.tail(common, {
            types,
            fromBeginning: options.fromBeginning === true,
            limit: options.limit,
          }),
      ),
    );
  program
    .command("trace")
    .argument("<id>", "event, correlation, tool call, session or decision id")
    .description("the causal tree around an id")
    .action(action((id: string) => (common) => actions.trace(common, { id })));

  const audit = program.command("audit").description("the audit trail");
  audit
    .command("verify")
    .description("recompute every sealed block; exit 1 names the first row that does not hold")
    .option("--tenant <id>", "this tenant alone")
    .action(
      action(
        (options: { tenant?: string }) => (common) => actions.auditVerify(common, { tenant: options.tenant }),
      ),
    );
  audit
    .command("who")
    .argument("<tool-call-id>", "the runtime's id of the call")
    .description("who asked, which rules matched, under which policy, what happened")
    .option("--tenant <id>", "when several tenants know the id")
    .action(
      action(
        (toolCallId: string, options: { tenant?: string }) => (common) =>
          actions.auditWho(common, { toolCallId, tenant: options.tenant }),
      ),
    );

  const tokens = program.command("tokens").description("access tokens");
  tokens
    .command("issue")
    .description("issue a token of the local stack; every role but runtime asks for the people's passphrase")
    .addOption(new Option("--role <role>", "one role").default("runtime"))
    .addOption(new Option("--tenant <id>", "tenant; `fabric` for who changes the policy").default("local"))
    .option("--subject <name>", "who holds it; default: developer, or for people your user name")
    .option("--ttl <seconds>", "lifetime in seconds; default a day, for people an hour", toCount)
    .option("--out <file>", "write it to this file, which only you can read, instead of showing it")
    .addHelpText(
      "after",
      "\nThe first token that is not of the role runtime makes this machine's key for people: it asks for a new\n" +
        "passphrase, on a terminal and nowhere else. Nobody approves what he asked for himself." +
        "\nThe watch over spending has a key of its own, for `--role reporter --subject cost-watch`: it asks for nothing," +
        "\nand its tokens tell how budgets stand and nothing else." +
        "\n\nExamples:\n  fabric tokens issue\n  fabric tokens issue --role approver --out approver.token" +
        "\n  fabric approvals list --token-file approver.token",
    )
    .action(
      action(
        (options: { role: string; tenant: string; subject?: string; ttl?: number; out?: string }) =>
          (common) =>
            actions.tokensIssue(common, {
              ...options,
              subject: options.subject,
              out: options.out,
              ttl: options.ttl ?? (options.role === "runtime" ? 86_400 : 3_600),
            }),
      ),
    );

  try {
    await program.parseAsync([...argv], { from: "user" });
    return exit;
  } catch (error) {
    return explain(error, around, argv.includes("--json"));
  }
}

function explain(error: unknown, around: Surroundings, json: boolean): ExitCode {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return 0;
    // The text is on stderr already.
    if (json) around.stdout(toErrorLine("USAGE", toUsageText(error)));
    return 2;
  }
  if (around.signal.aborted) {
    around.stderr("fabric: stopped\n");
    if (json) around.stdout(toErrorLine("STOPPED", "stopped before it was done"));
    return 1;
  }
  const fault =
    error instanceof Fault
      ? error
      : new Fault("INTERNAL", error instanceof Error ? error.message : String(error), { cause: error });
  around.stderr(`fabric: ${fault.code}: ${fault.message}\n`);
  if (!(error instanceof Fault) && error instanceof Error) around.stderr(`${error.stack ?? ""}\n`);
  if (json) around.stdout(toErrorLine(fault.code, fault.message));
  return faultTable[fault.code].exit;
}

function toUsageText({ code, message }: CommanderError): string {
  return code === "commander.help" ? "name a command; --help lists them" : message.replace(/^error: /, "");
}

/** What stdout holds under `--json` when a command failed. */
function toErrorLine(code: string, message: string): string {
  return `${JSON.stringify({ error: { code, message } })}\n`;
}

/** bigint has no JSON form; offsets and counts of ours fit a double. */
function toJson(value: unknown, indent: number): string {
  return JSON.stringify(value, (_key, one: unknown) => (typeof one === "bigint" ? Number(one) : one), indent);
}
