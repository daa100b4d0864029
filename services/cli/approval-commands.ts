import type { Command } from "commander";
import type { Actions } from "./actions.ts";
import type { Bind } from "./command-action.ts";
import { toCount } from "./command-action.ts";

const tokenText = "a file with the token of a person; default: ask for the people's passphrase";

/** `fabric approvals …` and `fabric capabilities …`. */
export function addApprovalCommands(program: Command, actions: Actions, action: Bind): void {
  const approvals = program.command("approvals").description("frozen plans that a person has to agree to");
  approvals
    .command("list")
    .description("open approvals, the newest first")
    .option("--state <state>", "pending, approved, refused, expired, consumed or voided")
    .option("--limit <n>", "at most n", toCount, 50)
    .option("--token-file <file>", tokenText)
    .action(
      action(
        (options: { state?: string; limit: number; tokenFile?: string }) => (common) =>
          actions.approvalsList(common, {
            state: options.state,
            limit: options.limit,
            tokenFile: options.tokenFile,
          }),
      ),
    );
  approvals
    .command("show")
    .argument("<id>", "approval id")
    .description("the frozen plan, its risk, the rules behind it")
    .option("--token-file <file>", tokenText)
    .action(
      action(
        (id: string, options: { tokenFile?: string }) => (common) =>
          actions.approvalsShow(common, { id, tokenFile: options.tokenFile }),
      ),
    );
  for (const [name, approve, text] of [
    ["approve", true, "agree to exactly this plan, for one use"],
    ["refuse", false, "refuse it; the same plan is refused until the approval would have expired"],
  ] as const) {
    approvals
      .command(name)
      .argument("<id>", "approval id")
      .description(text)
      .option("--note <text>", "why; the requester sees it")
      .option("--digest <sha256:…>", "the plan that you saw; another one is refused")
      .option("--token-file <file>", tokenText)
      .addHelpText("after", "\nNeeds the role approver. Nobody approves what he asked for himself.")
      .action(
        action(
          (id: string, options: { note?: string; digest?: string; tokenFile?: string }) => (common) =>
            actions.approvalsDecide(common, {
              id,
              approve,
              note: options.note,
              digest: options.digest,
              tokenFile: options.tokenFile,
            }),
        ),
      );
  }

  const capabilities = program.command("capabilities").description("rights to carry out one plan");
  capabilities
    .command("list")
    .description("rights, the newest first")
    .option("--state <state>", "live, held, spent, expired or revoked")
    .option("--session <id>", "of this session alone")
    .option("--limit <n>", "at most n", toCount, 50)
    .option("--token-file <file>", tokenText)
    .action(
      action(
        (options: { state?: string; session?: string; limit: number; tokenFile?: string }) => (common) =>
          actions.capabilitiesList(common, {
            state: options.state,
            session: options.session,
            limit: options.limit,
            tokenFile: options.tokenFile,
          }),
      ),
    );
  capabilities
    .command("revoke")
    .argument("[id]", "capability id; or one of the options below")
    .description("end rights at once, at every gate")
    .option("--plan <sha256:…>", "a plan's digest: nobody may carry it out any more")
    .option("--session <id>", "all rights of a session")
    .option("--subject <name>", "all rights of a user")
    .requiredOption("--reason <text>", "why; stays in the trail")
    .option("--token-file <file>", tokenText)
    .addHelpText(
      "after",
      "\nNeeds the role incident or admin." +
        '\n\nExamples:\n  fabric capabilities revoke cap_… --reason "wrong repository"\n  fabric capabilities revoke --session s1 --reason "agent runs wild"',
    )
    .action(
      action(
        (
          id: string | undefined,
          options: { plan?: string; session?: string; subject?: string; reason: string; tokenFile?: string },
        ) =>
          (common) =>
            actions.capabilitiesRevoke(common, {
              id,
              plan: options.plan,
              session: options.session,
              subject: options.subject,
              reason: options.reason,
              tokenFile: options.tokenFile,
            }),
      ),
    );
}
