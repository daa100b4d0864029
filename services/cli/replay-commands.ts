import type { Command } from "commander";
import { Option } from "commander";
import type { Actions, ReplayStart } from "./actions.ts";
import type { Bind } from "./command-action.ts";
import { toCount } from "./command-action.ts";

const tokenText =
  "a file with the token of an sre of the tenant `fabric`; default: ask for the people's passphrase";
const samplesText = "show n rows of each kind of difference";

interface WithToken {
  readonly tokenFile?: string;
}

/** `fabric replay …`. */
export function addReplayCommands(program: Command, actions: Actions, action: Bind): void {
  const replay = program
    .command("replay")
    .description("run a processor over a part of the log into tables of its own, and compare")
    .addHelpText(
      "after",
      "\nA shadow publishes nothing: its own database login may write its own tables and nothing else." +
        "\n\nA rebuild, or a new version over the whole log, then in the live one's place:" +
        "\n  fabric replay start --processor cost --shadow rebuilt" +
        "\n  fabric replay diff rebuilt" +
        '\n  fabric replay accept rebuilt --reason "the prices of May"' +
        "\n  fabric replay promote rebuilt && fabric replay drop rebuilt" +
        "\n\nBefore a version goes live: fabric replay canary --processor cost --version cost.ts --last 6h" +
        "\nFor a policy in place of a processor: fabric policy simulate --bundle DIR --since 7d",
    );
  replay
    .command("start")
    .requiredOption("--processor <name>", "which processor")
    .requiredOption("--shadow <name>", "name of the shadow")
    .option("--from <point>", "where to begin; default: the beginning of the log")
    .option("--to <point>", "where to end, excluded; default: where the log ends now")
    .option(
      "--version <file>",
      "run the processor of this file (.ts or compiled) in place of the one that ships",
    )
    .option("--migrations <dir>", "the new version's own migrations; default: those that ship")
    .addOption(
      new Option("--against <side>", "what it is compared with; default: live for the whole log").choices([
        "live",
        "baseline",
      ]),
    )
    .option("--token-file <file>", tokenText)
    .description("run it; the same command again goes on where a run was broken off")
    .addHelpText(
      "after",
      "\nA point is earliest, latest, an offset, topic/partition@offset[,…], a time such as 2026-11-30T10:00Z, or a span before" +
        "\nnow such as 6h. A part of the log is compared with the version that ships, run over the same part (baseline):" +
        "\nlive rows hold what came before and after." +
        "\n\nExamples:\n  fabric replay start --processor audit --shadow again" +
        "\n  fabric replay start --processor cost --version dist/cost.js --from 2026-11-01 --to 2026-11-30 --shadow november",
    )
    .action(
      action(
        (
          options: Pick<ReplayStart, "processor" | "shadow"> &
            Partial<Omit<ReplayStart, "processor" | "shadow">> &
            WithToken,
        ) =>
          (common) =>
            actions.replayStart(common, {
              processor: options.processor,
              shadow: options.shadow,
              from: options.from,
              to: options.to,
              version: options.version,
              migrations: options.migrations,
              against: options.against,
              tokenFile: options.tokenFile,
            }),
      ),
    );
  replay
    .command("list")
    .alias("status")
    .description("shadows, how far they are, and what was done with them")
    .action(action(() => (common) => actions.replayList(common)));
  replay
    .command("diff")
    .argument("<shadow>", "name of the shadow")
    .description("compare row by row at the same offsets; exit 1 when anything differs")
    .option("--samples <n>", samplesText, toCount, 5)
    .addHelpText(
      "after",
      "\nThe live processor is held at a commit for the moment in which both stand at the same offset, and goes on." +
        "\n\nExamples:\n  fabric replay diff rebuilt\n  fabric replay diff rebuilt --json --samples 100",
    )
    .action(
      action(
        (name: string, options: { samples: number }) => (common) =>
          actions.replayDiff(common, { name, samples: options.samples }),
      ),
    );
  replay
    .command("accept")
    .argument("<shadow>", "name of the shadow")
    .requiredOption("--reason <text>", "why the difference is as it should be")
    .option("--token-file <file>", tokenText)
    .description("accept the last difference; a later one that is not the same is to be accepted anew")
    .action(
      action(
        (name: string, options: { reason: string } & WithToken) => (common) =>
          actions.replayAccept(common, { name, reason: options.reason, tokenFile: options.tokenFile }),
      ),
    );
  replay
    .command("promote")
    .argument("<shadow>", "name of the shadow")
    .option("--without-older", "give up rows of records before the shadow's beginning")
    .option("--token-file <file>", tokenText)
    .description("put the shadow in the place of the live projection; never the audit trail")
    .addHelpText(
      "after",
      "\nThe live processor stops for the last records and the swap. The tables of before stay under the shadow's name until" +
        "\n`fabric replay drop`. After a new version, partitions wait for hosts that run it: deploy it then.",
    )
    .action(
      action(
        (name: string, options: { withoutOlder?: boolean } & WithToken) => (common) =>
          actions.replayPromote(common, {
            name,
            withoutOlder: options.withoutOlder === true,
            tokenFile: options.tokenFile,
          }),
      ),
    );
  replay
    .command("drop")
    .argument("<shadow>", "name of the shadow")
    .option("--token-file <file>", tokenText)
    .description("remove a shadow, or what a promoted one replaced")
    .action(
      action(
        (name: string, options: WithToken) => (common) =>
          actions.replayDrop(common, { name, tokenFile: options.tokenFile }),
      ),
    );
  replay
    .command("canary")
    .requiredOption("--processor <name>", "which processor")
    .requiredOption("--version <file>", "file of the new version")
    .option("--migrations <dir>", "the new version's own migrations; default: those that ship")
    .option("--last <span>", "how far back, such as 6h", "6h")
    .option("--samples <n>", samplesText, toCount, 5)
    .option("--keep", "keep the shadow, for `fabric replay diff`")
    .option("--token-file <file>", tokenText)
    .description("a new version over the last hours, beside the one that ships; exit 1 when anything differs")
    .action(
      action(
        (
          options: {
            processor: string;
            version: string;
            migrations?: string;
            last: string;
            samples: number;
            keep?: boolean;
          } & WithToken,
        ) =>
          (common) =>
            actions.replayCanary(common, {
              ...options,
              migrations: options.migrations,
              keep: options.keep === true,
              tokenFile: options.tokenFile,
            }),
      ),
    );
  replay
    .command("adapter")
    .argument("<runtime>", "such as codex")
    .requiredOption("--version <file>", "file of the new version")
    .option(
      "--from <dir>",
      "a folder of raw payloads as JSON, or `vault`; default: the recorded ones that ship",
    )
    .option("--samples <n>", samplesText, toCount, 5)
    .option("--token-file <file>", `with --from vault: ${tokenText}`)
    .description(
      "recorded raw payloads through the adapter that ships and a new one; exit 1 when anything differs",
    )
    .action(
      action(
        (runtime: string, options: { version: string; from?: string; samples: number } & WithToken) =>
          (common) =>
            actions.replayAdapter(common, {
              runtime,
              version: options.version,
              from: options.from,
              samples: options.samples,
              tokenFile: options.tokenFile,
            }),
      ),
    );
  replay.command("run", { hidden: true }).action(action(() => (common) => actions.replayRun(common)));
}
