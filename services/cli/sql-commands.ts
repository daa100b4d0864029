import type { Command } from "commander";
import { Fault } from "../../schemas/faults.ts";
import type { Actions } from "./actions.ts";
import type { Bind } from "./command-action.ts";
import { toCount } from "./command-action.ts";

/** `fabric sql …` and `fabric analysts …`. */
export function addSqlCommands(program: Command, actions: Actions, action: Bind): void {
  const sql = program
    .command("sql")
    .description("the views of schema analytics, and tested questions to them");
  sql
    .command("questions")
    .description("the questions that ship, with what they take")
    .action(action(() => (common) => actions.sqlQuestions(common)));
  sql
    .command("ask")
    .argument("<question>", "name of a question, as `fabric sql questions` lists it")
    .description("run a question as an analyst, who sees the granted tenants alone")
    .option("--tenant <id>", "this tenant alone")
    .option("--param <name=value>", "a value that the question takes; may be repeated", toParameter, {})
    .option("--sql", "print the statement instead of running it")
    .addHelpText(
      "after",
      "\nConnects by FABRIC_DATABASE_URL_ANALYST, and cannot write. Exit 1: there is no row." +
        "\n\nExamples:\n  fabric sql ask refusals --param since=2026-11-01\n  fabric sql ask who-did-this --param call=toolu_01ABC",
    )
    .action(
      action(
        (name: string, options: { tenant?: string; param: Record<string, string>; sql?: boolean }) =>
          (common) =>
            actions.sqlAsk(common, {
              name,
              tenant: options.tenant,
              parameters: options.param,
              printOnly: options.sql === true,
            }),
      ),
    );
  sql
    .command("catalog")
    .description("every view and column with its meaning, as the database has it")
    .option("--check <file>", "write nothing; exit 1 when this page says something else")
    .option("--write <file>", "write the page")
    .action(
      action(
        (options: { check?: string; write?: string }) => (common) =>
          actions.sqlCatalog(common, { check: options.check, write: options.write }),
      ),
    );

  const analysts = program.command("analysts").description("who reads which tenant in SQL");
  analysts
    .command("grant")
    .description("let a Postgres login read one tenant; makes the login where it is missing")
    .requiredOption("--role <name>", "the login")
    .requiredOption("--tenant <id>", "the tenant")
    .addHelpText(
      "after",
      "\nNeeds FABRIC_DATABASE_URL_ADMIN. A new login's password is printed once and kept nowhere." +
        "\n\nExamples:\n  fabric analysts grant --role ann --tenant acme\n  fabric analysts revoke --role ann",
    )
    .action(
      action(
        (options: { role: string; tenant: string }) => (common) => actions.analystsGrant(common, options),
      ),
    );
  analysts
    .command("revoke")
    .description("take one tenant away; without --tenant all of them, the login and its connections")
    .requiredOption("--role <name>", "the login")
    .option("--tenant <id>", "this tenant alone")
    .action(
      action(
        (options: { role: string; tenant?: string }) => (common) =>
          actions.analystsRevoke(common, { role: options.role, tenant: options.tenant }),
      ),
    );
  analysts
    .command("list")
    .description("logins with their tenants")
    .action(action(() => (common) => actions.analystsList(common)));
}

/** `fabric bench …` and `fabric new …`. */
export function addWorkshopCommands(program: Command, actions: Actions, action: Bind): void {
  program
    .command("bench")
    .description("what a bench needs")
    .command("seed")
    .description("months of realistic events, the same ones for the same seed")
    .option("--months <n>", "how far back they reach", toCount, 3)
    .option("--sessions <n>", "sessions of agents; each is about 100 events", toCount, 1_000)
    .option("--seed <n>", "another one is another history", toCount, 1)
    .option("--prefix <name>", "the tenants' names begin with it", "seed")
    .option("--until <day>", "day after the last one, as 2026-11-30; default: today")
    .option("--direct", "into the projections, past the bus: for a database of a bench, and millions of rows")
    .option("--only <processors>", "with --direct: these alone, separated by commas")
    .addHelpText(
      "after",
      "\nWithout --direct the events go through the outbox, as real ones do. With it each processor's own code writes its\n" +
        "tables; what it would emit is left out, and running it twice counts twice." +
        "\n\nExamples:\n  fabric bench seed --sessions 200\n  fabric bench seed --months 6 --sessions 200000 --direct --only audit,cost",
    )
    .action(
      action(
        (options: {
          months: number;
          sessions: number;
          seed: number;
          prefix: string;
          until?: string;
          direct?: boolean;
          only?: string;
        }) =>
          (common) =>
            actions.benchSeed(common, {
              ...options,
              until: options.until,
              direct: options.direct === true,
              only: options.only?.split(","),
            }),
      ),
    );
  program
    .command("new")
    .description("start a part of your own")
    .command("processor")
    .argument("<name>", "consumer group, Postgres schema and folder; lower case letters, digits, -")
    .description("a consumer with its test and its table, registered")
    .requiredOption("--topic <types...>", "event types that it reads")
    .addHelpText("after", "\nExample:\n  fabric new processor refusals --topic agent.tool.denied")
    .action(
      action(
        (name: string, options: { topic: string[] }) => (common) =>
          actions.newProcessor(common, { name, topics: options.topic }),
      ),
    );
}

function toParameter(text: string, before: Record<string, string>): Record<string, string> {
  const at = text.indexOf("=");
  if (at < 1) throw new Fault("USAGE", `\`${text}\` is not name=value`);
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
}
