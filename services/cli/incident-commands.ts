import type { Command } from "commander";
import type { Actions, HoldTarget } from "./actions.ts";
import type { Bind } from "./command-action.ts";
import { toCount } from "./command-action.ts";

const tokenText = "a file with the token of a person; default: ask for the people's passphrase";

interface ListOptions {
  readonly all?: boolean;
  readonly limit: number;
  readonly tokenFile?: string;
}
interface EndOptions {
  readonly reason: string;
  readonly tokenFile?: string;
}
type DeclareOptions = { -readonly [K in keyof HoldTarget]?: HoldTarget[K] } & {
  readonly kind?: string;
  readonly reason: string;
  readonly tokenFile?: string;
};

/** `fabric incidents …` and `fabric breaker …`: what is held back, and how people end it. */
export function addIncidentCommands(program: Command, actions: Actions, action: Bind): void {
  const incidents = program.command("incidents").description("what people have frozen");
  incidents
    .command("list")
    .description("incidents that hold, the newest first")
    .option("--all", "also those that were lifted")
    .option("--limit <n>", "at most n", toCount, 50)
    .option("--token-file <file>", tokenText)
    .action(
      action(
        (options: ListOptions) => (common) =>
          actions.incidentsList(common, {
            all: options.all === true,
            limit: options.limit,
            tokenFile: options.tokenFile,
          }),
      ),
    );
  incidents
    .command("declare")
    .description("freeze something at once, at every gate, until a person lifts it")
    .option("--tenant [name]", "a tenant with everything in it; without a name: your own")
    .option("--correlation <cor_…>", "one goal, with all sessions that work on it")
    .option("--session <id>", "a session and its child sessions")
    .option("--agent <id>", "an agent of any session")
    .option("--user <name>", "everything that is asked for in a user's name")
    .option("--tool <name>", "a tool, whoever uses it")
    .option("--all", "every tenant; wants a person of the tenant fabric")
    .option("--kind <word>", "a word for it, such as runaway or leak")
    .requiredOption("--reason <text>", "why; agents are told, and it stays in the trail")
    .option("--token-file <file>", tokenText)
    .addHelpText(
      "after",
      "\nNeeds the role incident. Rights that are out can be used no more. It holds while Kafka is away." +
        '\n\nExamples:\n  fabric incidents declare --session s1 --reason "agent runs wild"' +
        '\n  fabric incidents declare --tenant --kind leak --reason "a key is in the log"',
    )
    .action(
      action(
        (options: DeclareOptions) => (common) =>
          actions.incidentsDeclare(common, {
            target: {
              all: options.all === true,
              tenant: options.tenant,
              correlation: options.correlation,
              session: options.session,
              agent: options.agent,
              user: options.user,
              tool: options.tool,
            },
            kind: options.kind,
            reason: options.reason,
            tokenFile: options.tokenFile,
          }),
      ),
    );
  incidents
    .command("lift")
    .argument("<id>", "incident id")
    .description("let what was frozen go on; nobody but a person does")
    .requiredOption("--reason <text>", "why; stays in the trail")
    .option("--token-file <file>", tokenText)
    .action(
      action(
        (id: string, options: EndOptions) => (common) =>
          actions.incidentsLift(common, { id, reason: options.reason, tokenFile: options.tokenFile }),
      ),
    );

  const breaker = program.command("breaker").description("what the breaker has put to read-only");
  breaker
    .command("status")
    .description("trips that hold, with what the breaker saw")
    .option("--all", "also those that were reset")
    .option("--limit <n>", "at most n", toCount, 50)
    .option("--token-file <file>", tokenText)
    .action(
      action(
        (options: ListOptions) => (common) =>
          actions.breakerStatus(common, {
            all: options.all === true,
            limit: options.limit,
            tokenFile: options.tokenFile,
          }),
      ),
    );
  breaker
    .command("reset")
    .argument("<id>", "trip id")
    .description("let the scope have effects again")
    .requiredOption("--reason <text>", "what you found; stays in the trail")
    .option("--token-file <file>", tokenText)
    .addHelpText("after", "\nNeeds the role incident or sre. What was counted before counts no more.")
    .action(
      action(
        (id: string, options: EndOptions) => (common) =>
          actions.breakerReset(common, { id, reason: options.reason, tokenFile: options.tokenFile }),
      ),
    );
}
