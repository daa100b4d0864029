import type { Command } from "commander";
import { Option } from "commander";
import type { Actions } from "./actions.ts";
import type { Bind } from "./command-action.ts";
import { toCount } from "./command-action.ts";

const tokenText = "a file with the token of a person; default: ask for the people's passphrase";
const dimensions = [
  "tenant",
  "agent",
  "user",
  "model",
  "tool",
  "runtime",
  "environment",
  "session",
  "correlation",
  "kind",
  "day",
];

interface CorrectOptions {
  readonly event?: string;
  readonly account?: string;
  readonly amountMicros: string;
  readonly cause: string;
  readonly id?: string;
  readonly tokenFile?: string;
}

/** `fabric cost …`. */
export function addCostCommands(program: Command, actions: Actions, action: Bind): void {
  const cost = program.command("cost").description("what agents use, and what it comes to");
  cost
    .command("report")
    .description("cost and quantities of a period, by one dimension")
    .addOption(new Option("--by <dimension>", "one line for each").choices(dimensions).default("tenant"))
    .option("--period <period>", "2026-11, 2026-11-30, or 7d; default: this month; UTC")
    .option("--tenant <id>", "this tenant alone")
    .option("--limit <n>", "the n dearest lines; the total counts all", toCount, 50)
    .addHelpText(
      "after",
      "\nInput counts all input once; CACHED and WRITTEN are parts of it, as REASONING is of OUTPUT." +
        "\n\nExamples:\n  fabric cost report --by model\n  fabric cost report --by user --period 2026-11 --tenant acme\n  fabric cost report --by day --period 7d --json",
    )
    .action(
      action(
        (options: { by: string; period?: string; tenant?: string; limit: number }) => (common) =>
          actions.costReport(common, { ...options, period: options.period, tenant: options.tenant }),
      ),
    );
  cost
    .command("budgets")
    .description("what each budget has spent in its period; exit 1 when a hard limit is reached")
    .option("--tenant <id>", "this tenant alone")
    .action(
      action(
        (options: { tenant?: string }) => (common) => actions.costBudgets(common, { tenant: options.tenant }),
      ),
    );
  cost
    .command("check")
    .description("read the price list and the budgets; every fault with file and line")
    .action(action(() => (common) => actions.costCheck(common)));
  cost
    .command("correct")
    .description("correct the ledger by an entry of its own; nothing that is booked is changed")
    .requiredOption("--amount-micros <n>", "millionths to add; below 0 takes away")
    .requiredOption("--cause <text>", "why; stays in the ledger")
    .option("--event <id>", "the event whose cost it corrects; its dimensions are taken over")
    .option("--account <account>", "without an event: an account such as spend:model?model=gpt-5&user=ann")
    .option("--id <id>", "name of the correction: the same one again changes nothing")
    .option("--token-file <file>", tokenText)
    .addHelpText(
      "after",
      '\nNeeds the role admin.\n\nExamples:\n  fabric cost correct --event evt_… --amount-micros -250000 --cause "refunded by the provider" --id invoice-7',
    )
    .action(
      action(
        (options: CorrectOptions) => (common) =>
          actions.costCorrect(common, {
            event: options.event,
            account: options.account,
            amount: options.amountMicros,
            cause: options.cause,
            id: options.id,
            tokenFile: options.tokenFile,
          }),
      ),
    );
  cost
    .command("months")
    .description("each month: what is booked, what was stated when it was closed, what came late")
    .option("--tenant <id>", "this tenant alone")
    .option("--limit <n>", "the n newest", toCount, 24)
    .action(
      action(
        (options: { tenant?: string; limit: number }) => (common) =>
          actions.costMonths(common, { tenant: options.tenant, limit: options.limit }),
      ),
    );
  cost
    .command("close")
    .description("close a month: what is booked is stated for good; later entries correct it")
    .argument("<month>", "a UTC month such as 2026-11, which is over by an hour")
    .option("--note <text>", "stays with the statement")
    .option("--dry-run", "only show what would be stated")
    .option("--tenant <id>", "tenant of the token that is asked for")
    .option("--token-file <file>", tokenText)
    .addHelpText(
      "after",
      "\nMonths are closed in order. What comes late for a closed month is carried by the next statement." +
        '\nNeeds the role admin.\n\nExamples:\n  fabric cost close 2026-10 --dry-run\n  fabric cost close 2026-10 --note "invoice 7"',
    )
    .action(
      action(
        (period: string, options: { note?: string; dryRun?: boolean; tenant?: string; tokenFile?: string }) =>
          (common) =>
            actions.costClose(common, {
              period,
              note: options.note,
              dryRun: options.dryRun === true,
              tenant: options.tenant,
              tokenFile: options.tokenFile,
            }),
      ),
    );
  cost
    .command("reprice")
    .description("book what calls without a price cost by the price list as it is now")
    .option("--tenant <id>", "needed when calls of several tenants wait")
    .option("--limit <n>", "at most n calls", toCount, 1_000)
    .option("--dry-run", "only show what would be booked")
    .option("--token-file <file>", tokenText)
    .action(
      action(
        (options: { tenant?: string; limit: number; dryRun?: boolean; tokenFile?: string }) => (common) =>
          actions.costReprice(common, {
            tenant: options.tenant,
            limit: options.limit,
            dryRun: options.dryRun === true,
            tokenFile: options.tokenFile,
          }),
      ),
    );
}
