import type { Actions, Common } from "../cli/actions.ts";
import type { Report } from "../cli/report.ts";
import { toTable } from "../cli/report.ts";
import { style } from "../cli/screen.ts";
import { toTrusted } from "../gate/policy/trusted-programs.ts";
import { checkBundle } from "../gate/policy/load-policy.ts";
import { toProblemJson, toProblemLines } from "../gate/policy/problem.ts";
import type { Activated } from "../gate/revisions/activate.ts";
import { createCaseJudge, toFailureLine } from "../gate/revisions/judge-bundle.ts";
import { listRevisions } from "../gate/revisions/revision-rows.ts";
import { Fault } from "../../schemas/faults.ts";
import type { Config } from "../platform/config.ts";
import type { Database } from "../platform/postgres.ts";
import { callGate } from "./gate-client.ts";
import { operatorToken } from "./operator-token.ts";
import { findStored, isFolder, openPolicyEngine, readBundle } from "./policy-engine.ts";
import { serviceDatabase } from "./wiring.ts";

type PolicyActions = Pick<
  Actions,
  "policyCheck" | "policyTest" | "policyActivate" | "policyRollback" | "policyList" | "policyShow"
>;

/** A bundle's cases run at the gate before it is activated. */
const activationTimeoutMs = 60_000;
const adminHint =
  "changing the policy needs the role admin of the tenant `fabric`; `fabric tokens issue --role admin --tenant fabric` makes such a token";

/** `fabric policy check|test|activate|rollback|list|show`. */
export function policyActions(configOf: (common: Common) => Promise<Config>): PolicyActions {
  return {
    // One check with two names: what is found here is what `activate` refuses.
    policyCheck: (common, { dir }) => checkFolder(common, dir),
    policyTest: (common, { dir }) => checkFolder(common, dir),
    async policyActivate(common, { bundle, note, tokenFile }) {
      const config = await configOf(common);
      const body: Record<string, unknown> = note === undefined ? {} : { note };
      if (await isFolder(bundle)) {
        const { name, files } = await readBundle(bundle);
        Object.assign(body, { name, files: Object.fromEntries(files) });
      } else if (bundle.startsWith("policy@")) body["revision"] = bundle;
      else
        throw new Fault(
          "USAGE",
          `\`${bundle}\` is no folder, and no revision, which begins with \`policy@\``,
        );
      return changePolicy(config, common, "/v1/policy/activate", body, tokenFile);
    },
    policyRollback: async (common, { note, tokenFile }) =>
      changePolicy(
        await configOf(common),
        common,
        "/v1/policy/rollback",
        note === undefined ? {} : { note },
        tokenFile,
      ),
    policyList: async (common, { limit }) =>
      withAuditor(await configOf(common), async (database) => {
        const rows = await listRevisions(database, limit);
        if (rows.length === 0) {
          return {
            json: [],
            text: "no policy is stored yet; `fabric policy activate DIR` stores one",
            exit: 1,
          };
        }
        const table = toTable(
          ["", "REVISION", "BUNDLE", "STORED", "BY", "LAST ACTIVATED", "BY"],
          rows.map((row) => [
            row.is_active ? "*" : "",
            row.revision,
            row.name,
            toMinute(row.created_at),
            row.created_by,
            row.activated_at === null ? "never" : toMinute(row.activated_at),
            row.activated_by ?? "",
          ]),
          common.screen.columns,
        );
        return { json: rows, text: `${table}\n* is in force` };
      }),
    policyShow: async (common, { revision, file }) =>
      withAuditor(await configOf(common), async (database) => {
        const stored = await findStored(revision, database);
        if (file !== undefined) {
          const text = stored.files.get(file);
          if (text === undefined) {
            throw new Fault(
              "USAGE",
              `\`${stored.revision}\` has no file \`${file}\`; without --file they are listed`,
            );
          }
          return { json: { revision: stored.revision, file, text }, text: text.trimEnd() };
        }
        const files = [...stored.files].sort(([a], [b]) => (a < b ? -1 : 1));
        return {
          json: { revision: stored.revision, name: stored.name, files: Object.fromEntries(files) },
          text: `${stored.revision}, bundle ${stored.name}\n\n${toTable(
            ["FILE", "LINES", "BYTES"],
            files.map(([path, text]) => [
              path,
              String(text.split("\n").length - 1),
              String(Buffer.byteLength(text)),
            ]),
            common.screen.columns,
          )}\n\nshow one with --file <path>`,
        };
      }),
  };
}

async function checkFolder({ screen }: Common, dir: string): Promise<Report> {
  const engine = await openPolicyEngine();
  const check = await checkBundle(dir, createCaseJudge(engine.classify));
  const { policy, problems, failures } = check;
  if (policy === null || failures.length > 0) {
    const lines = [
      ...(problems.length === 0 ? [] : toProblemLines(problems).split("\n")),
      ...failures.map(toFailureLine),
    ];
    const wrong = failures.filter((one) => one.name !== null).length;
    const head = style(
      screen,
      "red",
      policy === null
        ? `${dir} is refused: ${counted(problems.length, "fault")}`
        : wrong === 0
          ? `${dir} is refused: no case proves that it can deny anything`
          : `${dir} is refused: ${counted(wrong, "case")} of ${String(check.cases)} not as expected`,
    );
    return {
      json: {
        ok: false,
        revision: policy?.revision ?? null,
        problems: problems.map(({ file, line, text }) => toProblemJson({ file, line, text })),
        failures: failures.map(toProblemJson),
      },
      text: [head, ...lines].join("\n"),
      exit: 1,
    };
  }
  const shape = [
    counted(policy.tools.length, "tool"),
    counted(policy.signals.length, "signal"),
    ...(policy.programs === undefined ? [] : [counted(policy.programs.size, "program")]),
    counted(check.cases, "case"),
  ].join(", ");
  const trusted = toTrusted(policy.programs);
  const ran = `; all cases as expected, ${String(check.denies)} of them denied`;
  return {
    json: {
      ok: true,
      revision: policy.revision,
      digest: policy.digest,
      cases: check.cases,
      denies: check.denies,
      trusted,
    },
    text: [
      `${style(screen, "green", "ok")} ${policy.revision}: ${shape}${ran}`,
      ...trusted.map(
        ({ program, line, reason }) =>
          `${style(screen, "yellow", "trusted")} ${program} (programs.yaml:${String(line)}): ${reason}`,
      ),
    ].join("\n"),
  };
}

async function changePolicy(
  config: Config,
  common: Common,
  path: string,
  body: object,
  tokenFile: string | undefined,
): Promise<Report> {
  const token = await operatorToken(config, common, { roles: ["admin"], tokenFile, tenant: "fabric" });
  const done = (await callGate(config, {
    method: "POST",
    path,
    token,
    body,
    roleHint: adminHint,
    timeoutMs: activationTimeoutMs,
  })) as Activated;
  const { screen } = common;
  const text = done.changed
    ? [
        `${style(screen, "green", "active")} ${done.revision}, bundle ${done.name}, ${counted(done.cases, "case")} as expected`,
        `before: ${done.previous_revision ?? "none"}; every gate follows within a second`,
        ...(done.revoked_capabilities === 0
          ? []
          : [`${counted(done.revoked_capabilities, "right")} ended: the new policy denies their plans`]),
      ].join("\n")
    : `${done.revision} is active already, since ${toMinute(done.activated_at)}; nothing changed`;
  return { json: done, text };
}

async function withAuditor(config: Config, work: (database: Database) => Promise<Report>): Promise<Report> {
  const database = serviceDatabase(config, "auditor", { maxConnections: 2 });
  try {
    return await work(database);
  } finally {
    await database.end();
  }
}

function counted(count: number, thing: string): string {
  return `${String(count)} ${thing}${count === 1 ? "" : "s"}`;
}

function toMinute(iso: string): string {
  return `${iso.slice(0, 16).replace("T", " ")}Z`;
}
