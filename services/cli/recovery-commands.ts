import type { Command } from "commander";
import { Option } from "commander";
import { Fault } from "../../schemas/faults.ts";
import type { Actions, LetterKind, LetterSelection } from "./actions.ts";
import type { Bind } from "./command-action.ts";
import { toCount } from "./command-action.ts";
import { toSpanMs } from "./span.ts";

const tokenText = "a file with the token of a person; default: ask for the people's passphrase";
const states = ["unsettled", "open", "waiting", "redriven", "archived", "all"];
const roleText =
  "\nNeeds the role sre. A token of the tenant `fabric` sees every tenant's; another one its own letters alone.";

interface WithToken {
  readonly tokenFile?: string;
}
interface SelectionOptions {
  readonly processor?: string;
  readonly topic?: string;
  readonly cause?: string;
  readonly tenant?: string;
  readonly olderThan?: number;
  readonly newerThan?: number;
}

/** `fabric dlq|quarantine|gaps|emissions|outbox …`: what stands still, and what a person does about it. */
export function addRecoveryCommands(program: Command, actions: Actions, action: Bind): void {
  addLetterCommands(program, actions, action, "dead");
  addLetterCommands(program, actions, action, "quarantine");
  addGapCommands(program, actions, action);
  addEmissionCommands(program, actions, action);
  addOutboxCommands(program, actions, action);
}

function addLetterCommands(program: Command, actions: Actions, action: Bind, kind: LetterKind): void {
  const [name, text] =
    kind === "dead"
      ? (["dlq", "inputs that were understood and could not be processed"] as const)
      : (["quarantine", "inputs that could not be understood, bytes kept"] as const);
  const letters = program.command(name).description(text);
  withSelection(letters.command("list"))
    .description("letters by cause; --each for single ones")
    .addOption(new Option("--state <state>", "default: open and waiting").choices(states))
    .option("--each", "single letters, the newest first")
    .option("--limit <n>", "at most n", toCount, 100)
    .option("--token-file <file>", tokenText)
    .addHelpText(
      "after",
      `${roleText}\n\nExamples:\n  fabric ${name} list\n  fabric ${name} list --each --processor cost --older-than 2h`,
    )
    .action(
      action(
        (options: { state?: string; each?: boolean; limit: number } & SelectionOptions & WithToken) =>
          (common) =>
            actions.lettersList(common, {
              selection: toSelection(kind, options),
              state: options.state,
              each: options.each === true,
              limit: options.limit,
              tokenFile: options.tokenFile,
            }),
      ),
    );
  letters
    .command("show")
    .argument("<id>", "letter id")
    .description("one letter with where its bytes lie; the bytes need a right of their own")
    .option("--token-file <file>", tokenText)
    .action(
      action(
        (id: string, options: WithToken) => (common) =>
          actions.lettersShow(common, { id, tokenFile: options.tokenFile }),
      ),
    );
  withSelection(letters.command("redrive"))
    .argument("[id...]", "letter ids")
    .description("send letters through the consumer that set them aside, and through no other")
    .option("--all", "every open letter, when no filter is given")
    .option("--dry-run", "only say what would be done")
    .option("--rate <n>", "at most n letters a second", toCount, 100)
    .option("--beyond-limit", "named letters that were redriven as often as one may")
    .option("--detach", "do not wait for the end")
    .requiredOption("--reason <text>", "why; it stays in the trail")
    .option("--token-file <file>", tokenText)
    .addHelpText(
      "after",
      `${roleText}\nIt reads by today's schemas, for tenants that are served today. What fails again comes back as the same letter.` +
        "\nCtrl-C leaves it to the hosts; `stop` stops it." +
        "\nExit 1: a letter came back, it was stopped, or nothing could be sent." +
        `\n\nExamples:\n  fabric ${name} redrive --processor cost --cause PROJECTION_FAILED --dry-run --reason "cost 1.4"` +
        `\n  fabric ${name} redrive --processor cost --rate 50 --reason "cost 1.4 is out"`,
    )
    .action(
      action(
        (
          ids: string[],
          options: {
            all?: boolean;
            dryRun?: boolean;
            rate: number;
            beyondLimit?: boolean;
            detach?: boolean;
            reason: string;
          } & SelectionOptions &
            WithToken,
        ) =>
          (common) =>
            actions.lettersRedrive(common, {
              selection: toSelection(kind, options, ids, options.all === true),
              dryRun: options.dryRun === true,
              perSecond: options.rate,
              beyondLimit: options.beyondLimit === true,
              detach: options.detach === true,
              reason: options.reason,
              tokenFile: options.tokenFile,
            }),
      ),
    );
  withSelection(letters.command("archive"))
    .argument("[id...]", "letter ids")
    .description("put letters away for good: their inputs will not be processed")
    .option("--all", "every open letter, when no filter is given")
    .option("--dry-run", "only say what would be put away")
    .requiredOption("--reason <text>", "why; it stays in the trail")
    .option("--token-file <file>", tokenText)
    .addHelpText("after", roleText)
    .action(
      action(
        (
          ids: string[],
          options: { all?: boolean; dryRun?: boolean; reason: string } & SelectionOptions & WithToken,
        ) =>
          (common) =>
            actions.lettersArchive(common, {
              selection: toSelection(kind, options, ids, options.all === true),
              dryRun: options.dryRun === true,
              reason: options.reason,
              tokenFile: options.tokenFile,
            }),
      ),
    );
  letters
    .command("redrives")
    .argument("[id...]", "redrive ids; none: the newest")
    .description("how far redrives are")
    .option("--limit <n>", "at most n", toCount, 20)
    .option("--token-file <file>", tokenText)
    .action(
      action(
        (ids: string[], options: { limit: number } & WithToken) => (common) =>
          actions.redrivesList(common, { ids, limit: options.limit, tokenFile: options.tokenFile }),
      ),
    );
  addRedriveCommands(letters, name, actions, action);
}

/** Of redrives, whatever kinds of letters they send. */
function addRedriveCommands(letters: Command, name: string, actions: Actions, action: Bind): void {
  const withRedrives = (command: Command): Command =>
    command
      .argument("[id...]", "redrive ids, as `redrives` shows them")
      .option("--all", "all of them, when no id is given")
      .requiredOption("--reason <text>", "why; it stays in the trail")
      .option("--token-file <file>", tokenText);
  withRedrives(letters.command("stop"))
    .description("stop redrives under way: once it answers, no letter of theirs moves")
    .option("--give-up", "for good: their letters wait for nothing again")
    .addHelpText(
      "after",
      `${roleText}\nLetters that have not gone through keep waiting, and \`fabric ${name} resume\` goes on with them.` +
        "\nExit 1: nothing was under way." +
        `\n\nExamples:\n  fabric ${name} redrives\n  fabric ${name} stop --all --reason "cost still counts twice"`,
    )
    .action(
      action(
        (ids: string[], options: { all?: boolean; giveUp?: boolean; reason: string } & WithToken) =>
          (common) =>
            actions.redrivesStop(common, {
              ids: chosen(ids, options.all),
              givesUp: options.giveUp === true,
              reason: options.reason,
              tokenFile: options.tokenFile,
            }),
      ),
    );
  withRedrives(letters.command("resume"))
    .description("let redrives that were stopped go on where they stopped")
    .addHelpText("after", `${roleText}\nExit 1: nothing was stopped.`)
    .action(
      action(
        (ids: string[], options: { all?: boolean; reason: string } & WithToken) => (common) =>
          actions.redrivesResume(common, {
            ids: chosen(ids, options.all),
            reason: options.reason,
            tokenFile: options.tokenFile,
          }),
      ),
    );
}

function chosen(ids: readonly string[], isAll = false): readonly string[] {
  if (ids.length === 0 && !isAll) throw new Fault("USAGE", "name redrives, or say --all");
  return ids;
}

function addGapCommands(program: Command, actions: Actions, action: Bind): void {
  const gaps = program.command("gaps").description("partitions that stand still since records are gone");
  gaps
    .command("list")
    .description("which consumer, where, since when, and what the log holds now")
    .option("--token-file <file>", tokenText)
    .action(
      action((options: WithToken) => (common) => actions.gapsList(common, { tokenFile: options.tokenFile })),
    );
  gaps
    .command("resume")
    .argument("<consumer>", "name of the processor")
    .argument("<topic/partition>", "as `gaps list` shows it")
    .description("let it go on; what was lost stays lost")
    .requiredOption("--from <start|end|offset>", "where: the log's start, its end, or an offset in it")
    .requiredOption("--reason <text>", "why; it stays in the trail")
    .option("--token-file <file>", tokenText)
    .addHelpText(
      "after",
      "\nNeeds the role sre of the tenant `fabric`. The choice is an event." +
        '\n\nExamples:\n  fabric gaps list\n  fabric gaps resume audit agent.tool.denied/3 --from start --reason "retention was an hour"',
    )
    .action(
      action(
        (consumer: string, place: string, options: { from: string; reason: string } & WithToken) =>
          (common) =>
            actions.gapsResume(common, {
              consumer,
              ...toPlace(place),
              from: toStart(options.from),
              reason: options.reason,
              tokenFile: options.tokenFile,
            }),
      ),
    );
}

function addEmissionCommands(program: Command, actions: Actions, action: Bind): void {
  const emissions = program
    .command("emissions")
    .description("events of processors that their fan-out guard holds back");
  emissions
    .command("list")
    .description("which processor, how many, since when and why")
    .option("--token-file <file>", tokenText)
    .action(
      action(
        (options: WithToken) => (common) => actions.emissionsList(common, { tokenFile: options.tokenFile }),
      ),
    );
  for (const [name, choice, text] of [
    ["release", "release", "let them go out, the oldest first, and hold back no more"],
    ["drop", "drop", "throw them away, and hold back no more"],
  ] as const) {
    emissions
      .command(name)
      .argument("<processor>", "name of the processor")
      .description(text)
      .requiredOption("--reason <text>", "why; it stays in the trail")
      .option("--token-file <file>", tokenText)
      .addHelpText("after", "\nNeeds the role sre of the tenant `fabric`.")
      .action(
        action(
          (consumer: string, options: { reason: string } & WithToken) => (common) =>
            actions.emissionsEnd(common, {
              consumer,
              choice,
              reason: options.reason,
              tokenFile: options.tokenFile,
            }),
        ),
      );
  }
}

function addOutboxCommands(program: Command, actions: Actions, action: Bind): void {
  const outbox = program.command("outbox").description("events on their way to Kafka");
  const parked = outbox.command("parked").description("events that the broker refused");
  parked
    .command("list")
    .description("parked events, the oldest first, with what the broker said")
    .option("--archived", "those that were put away too")
    .option("--limit <n>", "at most n", toCount, 100)
    .option("--token-file <file>", tokenText)
    .action(
      action(
        (options: { archived?: boolean; limit: number } & WithToken) => (common) =>
          actions.parkedList(common, {
            archived: options.archived === true,
            limit: options.limit,
            tokenFile: options.tokenFile,
          }),
      ),
    );
  for (const [name, text] of [
    ["retry", "put events back into the outbox, behind what their keys have said since"],
    ["archive", "put events away for good: they will not be published"],
  ] as const) {
    parked
      .command(name)
      .argument("<id...>", "event ids")
      .description(text)
      .requiredOption("--reason <text>", "why; it stays in the trail")
      .option("--token-file <file>", tokenText)
      .addHelpText("after", "\nNeeds the role sre of the tenant `fabric`.")
      .action(
        action(
          (ids: string[], options: { reason: string } & WithToken) => (common) =>
            actions.parkedEnd(common, {
              ids,
              choice: name,
              reason: options.reason,
              tokenFile: options.tokenFile,
            }),
        ),
      );
  }
}

function withSelection(command: Command): Command {
  return command
    .option("--processor <name>", "of this consumer")
    .option("--topic <type>", "of this topic")
    .option("--cause <code>", "of this fault code, such as PROJECTION_FAILED")
    .option("--tenant <id>", "of this tenant")
    .option("--older-than <span>", "buried longer ago: 30s, 15m, 2h, 3d", toSpanMs)
    .option("--newer-than <span>", "buried since", toSpanMs);
}

function toSelection(
  kind: LetterKind,
  options: SelectionOptions,
  ids: readonly string[] = [],
  isAll = true,
): LetterSelection {
  const selection = {
    kind,
    processor: options.processor,
    topic: options.topic,
    code: options.cause,
    tenant: options.tenant,
    olderThanMs: options.olderThan,
    newerThanMs: options.newerThan,
    ids: ids.length === 0 ? undefined : ids,
  };
  const isNarrowed = Object.entries(selection).some(
    ([name, value]) => name !== "kind" && value !== undefined,
  );
  if (!isNarrowed && !isAll) throw new Fault("USAGE", "name letters, give a filter, or say --all");
  return selection;
}

function toPlace(text: string): { readonly topic: string; readonly partition: number } {
  const match = /^(.+)\/(\d{1,7})$/.exec(text);
  if (match === null) throw new Fault("USAGE", `\`${text}\` is not topic/partition`);
  return { topic: match[1] ?? "", partition: Number(match[2]) };
}

function toStart(text: string): "log_start" | "log_end" | number {
  if (text === "start") return "log_start";
  if (text === "end") return "log_end";
  const offset = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(offset))
    throw new Fault("USAGE", `\`${text}\` is neither start nor end nor an offset`);
  return offset;
}
