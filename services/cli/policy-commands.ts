import type { Command } from "commander";
import type { Actions, Recordings } from "./actions.ts";
import type { Bind } from "./command-action.ts";
import { toCount } from "./command-action.ts";

interface RecordingOptions {
  readonly since?: string;
  readonly tenant?: string;
  readonly limit?: number;
  readonly file?: string;
}

const noTokenText = "\nReads the database as the auditor's login of the configuration: no token is needed.";
const tokenText = "a file with the token of a person; default: ask for the people's passphrase";

/** `fabric policy …`. */
export function addPolicyCommands(program: Command, actions: Actions, action: Bind): void {
  const policy = program.command("policy").description("policy bundles: folders of Cedar and YAML files");
  policy
    .command("check")
    .argument("<dir>", "folder of a bundle")
    .description("every fault with file and line, and whether the bundle answers its own cases")
    .action(action((dir: string) => (common) => actions.policyCheck(common, { dir })));
  policy
    .command("test")
    .argument("<dir>", "folder of a bundle")
    .description("the same; exit 1 names each case that is not answered as it says")
    .action(action((dir: string) => (common) => actions.policyTest(common, { dir })));
  policy
    .command("activate")
    .argument("<bundle>", "folder of a bundle, or a revision that is stored")
    .description("make it the policy of every gate, without a restart")
    .option("--note <text>", "why; stays in the history")
    .option("--token-file <file>", tokenText)
    .addHelpText(
      "after",
      "\nNeeds the role admin of the tenant `fabric`. The gate validates the bundle and runs its cases first; a bundle that\n" +
        "fails, or that can deny nothing, is refused, and the policy before stays." +
        '\n\nExamples:\n  fabric policy activate deploy/policy/strict --note "audit week"\n  fabric policy activate policy@2026-11-30.2',
    )
    .action(
      action(
        (bundle: string, options: { note?: string; tokenFile?: string }) => (common) =>
          actions.policyActivate(common, { bundle, note: options.note, tokenFile: options.tokenFile }),
      ),
    );
  policy
    .command("rollback")
    .description("activate the revision before the active one")
    .option("--note <text>", "why; stays in the history")
    .option("--token-file <file>", tokenText)
    .action(
      action(
        (options: { note?: string; tokenFile?: string }) => (common) =>
          actions.policyRollback(common, { note: options.note, tokenFile: options.tokenFile }),
      ),
    );
  policy
    .command("list")
    .description("stored revisions, the newest first, and which one is active")
    .option("--limit <n>", "at most n", toCount, 20)
    .addHelpText("after", noTokenText)
    .action(action((options: { limit: number }) => (common) => actions.policyList(common, options)));
  policy
    .command("show")
    .argument("[revision]", "revision, or its beginning; none: the active one", "active")
    .description("the files of a stored revision")
    .option("--file <path>", "print this file of it")
    .addHelpText("after", noTokenText)
    .action(
      action(
        (revision: string, options: { file?: string }) => (common) =>
          actions.policyShow(common, { revision, file: options.file }),
      ),
    );
  withRecordings(
    policy
      .command("simulate")
      .description(
        "judge recorded requests by another bundle: which decisions would change, and by which rules",
      )
      .requiredOption("--bundle <bundle>", "folder of a bundle, or a stored revision")
      .option("--details <n>", "changed decisions that are listed", toCount, 50)
      .addHelpText(
        "after",
        "\nReads and writes nothing else. It also makes each decision again by the policy that made it: every one has to\n" +
          "come out the same." +
          "\n\nExamples:\n  fabric policy simulate --bundle deploy/policy/strict --since 7d\n  fabric policy simulate --bundle next --file requests.jsonl",
      ),
  ).action(
    action(
      (options: RecordingOptions & { bundle: string; details: number }) => (common) =>
        actions.policySimulate(common, {
          bundle: options.bundle,
          details: options.details,
          recordings: toRecordings(options),
        }),
    ),
  );
  policy
    .command("explain")
    .argument("[id]", "decision id, or the runtime's id of the call")
    .description("which rules of which stage spoke, and why the winner won")
    .option("--bundle <dir>", "with --request: explain by this folder, without a database")
    .option("--request <file>", "a request as JSON")
    .action(
      action(
        (id: string | undefined, options: { bundle?: string; request?: string }) => (common) =>
          actions.policyExplain(common, { id, bundle: options.bundle, request: options.request }),
      ),
    );
  withRecordings(
    policy
      .command("diff")
      .argument("<before>", "folder of a bundle, or a stored revision")
      .argument("<after>", "the other one")
      .description("rules, tools and signals that were added, removed or changed; exit 1 if there are any")
      .option("--simulate", "also judge recorded requests by both"),
  ).action(
    action(
      (before: string, after: string, options: RecordingOptions & { simulate?: boolean }) => (common) =>
        actions.policyDiff(common, {
          before,
          after,
          simulate: options.simulate === true,
          recordings: toRecordings(options),
        }),
    ),
  );
}

function withRecordings(command: Command): Command {
  return command
    .option("--since <span>", "recorded within this span, such as 7d or 12h, or since a time")
    .option("--tenant <id>", "this tenant alone")
    .option("--limit <n>", "at most n decisions", toCount)
    .option("--file <jsonl>", "recorded requests of a file instead of the database");
}

function toRecordings({ since, tenant, limit, file }: RecordingOptions): Recordings {
  return { since, tenant, limit, file };
}
