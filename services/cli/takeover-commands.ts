import type { Command } from "commander";
import { Option } from "commander";
import { Fault } from "../../schemas/faults.ts";
import type { Actions } from "./actions.ts";
import type { Bind } from "./command-action.ts";
import { toCount } from "./command-action.ts";

const tokenText = "a file with the token of a person; default: ask for the people's passphrase";
const states = ["waiting", "open", "claimed", "breached", "resolved", "settled", "all"];
const outcomes = [
  "no_action",
  "approval_proposed",
  "redrive_proposed",
  "incident_proposed",
  "fixed_elsewhere",
];

interface WithToken {
  readonly tokenFile?: string;
}

/** `fabric takeover …`, and `fabric eval label` and `erase`. */
export function addTakeoverCommands(program: Command, actions: Actions, action: Bind): void {
  const takeover = program.command("takeover").description("what waits for a person, with its evidence");
  takeover
    .command("list")
    .description("what waits, the most urgent first")
    .addOption(new Option("--state <state>", "default: open and claimed").choices(states))
    .option("--limit <n>", "at most n", toCount, 50)
    .option("--token-file <file>", tokenText)
    .action(
      action(
        (options: { state?: string; limit: number } & WithToken) => (common) =>
          actions.takeoverList(common, {
            state: options.state,
            limit: options.limit,
            tokenFile: options.tokenFile,
          }),
      ),
    );
  takeover
    .command("show")
    .argument("<id>", "item id")
    .description("an item with all that it rests on")
    .option("--token-file <file>", tokenText)
    .action(
      action(
        (id: string, options: WithToken) => (common) =>
          actions.takeoverShow(common, { id, tokenFile: options.tokenFile }),
      ),
    );
  takeover
    .command("claim")
    .argument("<id>", "item id")
    .description("take an item for half an hour, or for half an hour more")
    .option("--token-file <file>", tokenText)
    .action(
      action(
        (id: string, options: WithToken) => (common) =>
          actions.takeoverDo(common, { id, deed: { kind: "claim" }, tokenFile: options.tokenFile }),
      ),
    );
  takeover
    .command("note")
    .argument("<id>", "item id")
    .argument("<text>", "what you found; it stays in the trail")
    .description("write something down about an item")
    .option("--token-file <file>", tokenText)
    .action(
      action(
        (id: string, note: string, options: WithToken) => (common) =>
          actions.takeoverDo(common, { id, deed: { kind: "note", note }, tokenFile: options.tokenFile }),
      ),
    );
  takeover
    .command("reassign")
    .argument("<id>", "item id")
    .description("hand an item to somebody else")
    .requiredOption("--to <person>", "who has it from now on")
    .option("--token-file <file>", tokenText)
    .action(
      action(
        (id: string, options: { to: string } & WithToken) => (common) =>
          actions.takeoverDo(common, {
            id,
            deed: { kind: "reassign", to: options.to },
            tokenFile: options.tokenFile,
          }),
      ),
    );
  takeover
    .command("resolve")
    .argument("<id>", "item id")
    .description("close an item; what it proposes, another command has to do")
    .addOption(new Option("--outcome <outcome>", "what came of it").choices(outcomes).makeOptionMandatory())
    .option("--note <text>", "why")
    .option("--proposal <text>", "what is proposed; needed with an outcome that proposes")
    .option("--token-file <file>", tokenText)
    .addHelpText(
      "after",
      "\nNeeds the role approver or sre. A resolution never acts: it says what somebody should do." +
        '\n\nExamples:\n  fabric takeover resolve tko_… --outcome no_action --note "the agent asked again by itself"' +
        '\n  fabric takeover resolve tko_… --outcome redrive_proposed --proposal "redrive letters of cost after 1.4"',
    )
    .action(
      action(
        (id: string, options: { outcome: string; note?: string; proposal?: string } & WithToken) =>
          (common) =>
            actions.takeoverDo(common, {
              id,
              deed: {
                kind: "resolve",
                outcome: options.outcome,
                note: options.note,
                proposal: options.proposal,
              },
              tokenFile: options.tokenFile,
            }),
      ),
    );

  const evaluation =
    program.commands.find((one) => one.name() === "eval") ??
    program.command("eval").description("episodes of agents, for judging them");
  evaluation
    .command("label")
    .argument("<episode-id>", "episode")
    .argument("<label>", "a lower case word, such as good, bad, unsafe")
    .description("judge an episode; your last word on it counts")
    .option("--score <0-100>", "how good, in hundredths", toScore)
    .option("--note <text>", "why")
    .option("--token-file <file>", tokenText)
    .action(
      action(
        (id: string, label: string, options: { score?: number; note?: string } & WithToken) => (common) =>
          actions.episodeLabel(common, {
            id,
            label,
            score: options.score,
            note: options.note,
            tokenFile: options.tokenFile,
          }),
      ),
    );
  evaluation
    .command("erase")
    .description(
      "blank what people and tools wrote in a tenant's episodes up to now; it cannot be taken back",
    )
    .requiredOption("--tenant <id>", "whose")
    .requiredOption("--reason <text>", "why")
    .option("--token-file <file>", tokenText)
    .addHelpText(
      "after",
      "\nNeeds the role admin of the tenant. Prompts, inputs, resources, folders, persons and notes go, also from what is\n" +
        "recorded before now and comes later; decisions, outcomes, numbers and labels stay. Nothing else is erased: not the\n" +
        "audit trail, not the vault, not files that were exported." +
        '\n\nExamples:\n  fabric eval erase --tenant acme --reason "the contract ended"',
    )
    .action(
      action(
        (options: { tenant: string; reason: string } & WithToken) => (common) =>
          actions.episodesErase(common, {
            tenant: options.tenant,
            reason: options.reason,
            tokenFile: options.tokenFile,
          }),
      ),
    );
}

function toScore(text: string): number {
  const score = Number(text);
  if (text.trim() === "" || !Number.isInteger(score) || score < 0 || score > 100)
    throw new Fault("USAGE", `\`${text}\` is no whole number from 0 to 100`);
  return score;
}
