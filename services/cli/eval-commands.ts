import type { Command } from "commander";
import { Option } from "commander";
import type { Actions } from "./actions.ts";
import type { Bind } from "./command-action.ts";
import { toCount } from "./command-action.ts";

const states = ["completed", "failed", "interrupted", "open"];
const untilText = "what was recorded up to a time (ISO 8601) or the end of a day, UTC; default: now";

interface ExportOptions {
  readonly out: string;
  readonly format: string;
  readonly tenant?: string;
  readonly until?: string;
  readonly state?: string;
  readonly labelled?: boolean;
  readonly split?: string;
  readonly shares: string;
  readonly seed: string;
}

/** `fabric eval …`, without what people say of episodes. */
export function addEvalCommands(program: Command, actions: Actions, action: Bind): void {
  const evaluation = program.command("eval").description("episodes of agents, for judging them");
  evaluation
    .command("list")
    .description("episodes, the newest first")
    .option("--tenant <id>", "this tenant alone")
    .addOption(new Option("--state <state>", "how it ended").choices(states))
    .option("--limit <n>", "at most n", toCount, 50)
    .action(
      action(
        (options: { tenant?: string; state?: string; limit: number }) => (common) =>
          actions.evalList(common, {
            tenant: options.tenant,
            state: options.state,
            limit: options.limit,
          }),
      ),
    );
  evaluation
    .command("export")
    .description("write a dataset of episodes, split so that related episodes stay together")
    .requiredOption("--out <dir>", "an empty folder; it is made when it is not there")
    .addOption(
      new Option("--format <format>", "of the files").choices(["jsonl", "parquet"]).default("parquet"),
    )
    .option("--tenant <id>", "this tenant alone")
    .option("--until <time>", untilText)
    .addOption(new Option("--state <state>", "episodes that ended so").choices(states))
    .option("--labelled", "episodes that somebody judged")
    .addOption(new Option("--split <name>", "write this one alone").choices(["train", "validation", "test"]))
    .option("--shares <a/b/c>", "percent of train, validation and test", "80/10/10")
    .option("--seed <text>", "another seed is another split", "1")
    .addHelpText(
      "after",
      "\nA version is what it is cut from: tenant, time, filter, shares and seed. The same cut of the same ledger has the\n" +
        "same version and content digest in `manifest.json`, in either format. Episodes are related, and in one split,\n" +
        "that share a session, a task, a user and first prompt, or a folder on one day. Secrets are masked once more." +
        "\n\nExamples:\n  fabric eval export --out episodes\n  fabric eval export --out set --format jsonl --tenant acme --until 2026-11-30 --labelled",
    )
    .action(
      action(
        (options: ExportOptions) => (common) =>
          actions.evalExport(common, {
            out: options.out,
            format: options.format,
            tenant: options.tenant,
            until: options.until,
            state: options.state,
            onlyLabelled: options.labelled === true,
            split: options.split,
            shares: options.shares,
            seed: options.seed,
          }),
      ),
    );
  evaluation
    .command("metrics")
    .description("tool choice, refusals and recoveries, each with its formula")
    .option("--tenant <id>", "this tenant alone")
    .option("--until <time>", untilText)
    .option("--expected <json>", "a file of {episode id: [tools in order]}, for tool choice")
    .option("--file <json>", "score the labelled episodes of a file instead of the database")
    .addHelpText(
      "after",
      "\nRefusals are scored by the labels safe and unsafe; an episode on which people disagree counts for neither." +
        "\n\nExamples:\n  fabric eval metrics --tenant acme\n  fabric eval metrics --file test/corpus/eval/scored.json",
    )
    .action(
      action(
        (options: { tenant?: string; until?: string; expected?: string; file?: string }) => (common) =>
          actions.evalMetrics(common, {
            tenant: options.tenant,
            until: options.until,
            expected: options.expected,
            file: options.file,
          }),
      ),
    );
}
