import { readFile } from "node:fs/promises";
import type { z } from "zod";
import { Fault } from "../../schemas/faults.ts";
import type { GateAnswer, GateRequest } from "../../schemas/gate.ts";
import { gateAnswerSchema, gateRequestSchema } from "../../schemas/gate.ts";
import type { Common } from "../cli/actions.ts";
import type { Report } from "../cli/report.ts";
import { wrapText } from "../cli/report.ts";
import type { Ruling } from "../gate/ruling.ts";
import type { NeutralFacts } from "../gate/simulate-record.ts";
import { toFacts } from "../gate/simulate-record.ts";
import { systemClock } from "../platform/clock.ts";
import type { Config } from "../platform/config.ts";
import { requireSetting } from "../platform/config.ts";
import type { AskedRequest, JudgedRequest } from "./decide-file.ts";
import { parseDecideFile, renderJudged } from "./decide-file.ts";
import { callGate } from "./gate-client.ts";
import { openPolicyEngine, openPolicy } from "./policy-engine.ts";

interface DecideOptions {
  readonly bundle: string | undefined;
  readonly file: string | undefined;
  readonly environment: string | undefined;
  readonly readRequest: () => Promise<string>;
}

/** Decisions of one source. */
type Decide = (asked: AskedRequest) => Promise<GateAnswer>;

/** Decisions by the running gate, which records them, or by a bundle alone, which records nothing. */
export async function decideAction(
  common: Common,
  configOf: () => Promise<Config>,
  options: DecideOptions,
): Promise<Report> {
  const decide =
    options.bundle === undefined ? await askGate(configOf) : await judgeAlone(options.bundle, options);
  if (options.file !== undefined) {
    return decideFile(common, options.file, decide, options.bundle === undefined ? gateAtOnce : 1);
  }
  const request = parseRequest(await options.readRequest());
  const answer = await decide({ name: "", request, facts: undefined, expected: null, expectedReason: null });
  return {
    json: answer,
    text: [
      `${answer.decision} ${answer.reason_code}`,
      answer.message,
      wrapText(
        `rules: ${answer.matched_rules.join(", ") || "none"} · policy ${answer.policy_revision}`,
        common.screen.columns,
        "  ",
      ),
    ].join("\n"),
    exit: answer.decision === "allow" || answer.decision === "modify" ? 0 : 4,
  };
}

/** Calls that the gate may commit together. */
const gateAtOnce = 16;

async function decideFile(common: Common, file: string, decide: Decide, atOnce: number): Promise<Report> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    throw new Fault("USAGE", `the file \`${file}\` cannot be read`, { cause: error });
  }
  const asked = parseDecideFile(text, file);
  const judged: JudgedRequest[] = [];
  for (let from = 0; from < asked.length; from += atOnce) {
    common.signal.throwIfAborted();
    judged.push(
      ...(await Promise.all(
        asked.slice(from, from + atOnce).map(async (one) => ({ asked: one, answer: await decide(one) })),
      )),
    );
  }
  return renderJudged(common.screen, judged);
}

function parseRequest(text: string): GateRequest {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new Fault("BODY_NOT_JSON", "give one request as JSON on stdin; `fabric decide --help` shows one");
  }
  const parsed = gateRequestSchema.safeParse(json);
  if (!parsed.success) throw new Fault("REQUEST_INVALID", toFieldFaults(parsed.error));
  return { ...parsed.data, input: (json as GateRequest).input };
}

/** Each fault with its field, and where to read what a request holds. */
function toFieldFaults(error: z.ZodError): string {
  const faults = error.issues.map((issue) => {
    const field = issue.path.join(".");
    if (issue.code === "unrecognized_keys") return `\`${issue.keys.join("`, `")}\` is no field of a request`;
    return issue.code === "invalid_type" && issue.message.endsWith("undefined")
      ? `\`${field}\` is missing`
      : `\`${field}\`: ${issue.message.toLowerCase()}`;
  });
  return `${faults.join("; ")} (\`fabric decide --help\` lists the fields)`;
}

async function askGate(configOf: () => Promise<Config>): Promise<Decide> {
  const config = await configOf();
  const tokenFile = requireSetting(config.tokenFile, "FABRIC_TOKEN_FILE", "the gate wants a bearer token");
  const token = (await readFile(tokenFile, "utf8")).trim();
  return async ({ request }) => {
    const body = await callGate(config, { method: "POST", path: "/v1/gate/decide", token, body: request });
    const answer = gateAnswerSchema.safeParse(body);
    if (answer.success) return answer.data;
    throw new Fault("REQUEST_INVALID", "the gate's answer is of another version than this command");
  };
}

/**
 * A bundle's ruling on a session without history, or on the facts that a file names. Nothing is recorded, so no right is
 * issued; scripts that a command would run count as readable.
 */
async function judgeAlone(bundle: string, { environment }: DecideOptions): Promise<Decide> {
  const engine = await openPolicyEngine();
  const policy = await openPolicy(engine, bundle, () => {
    throw new Fault("USAGE", `\`${bundle}\` is no folder of a bundle`);
  });
  return ({ request, facts: given }) => {
    const neutral: NeutralFacts = {
      nowMs: systemClock.nowMs(),
      tenantId: "local",
      environment: environment ?? "development",
    };
    const { facts, operands } = toFacts(given, neutral);
    const record = { decisionId: null, request, facts, operands, isPartial: true, answer: null };
    return Promise.resolve(toUnrecordedAnswer(engine.judgeRecord(record, policy), policy.revision));
  };
}

function toUnrecordedAnswer(ruling: Ruling, policyRevision: string): GateAnswer {
  return {
    decision: ruling.decision,
    decision_id: "not-recorded",
    reason_code: ruling.reason,
    message: ruling.message,
    policy_revision: policyRevision,
    plan_digest: ruling.planDigest,
    correlation_id: "not-recorded",
    risk: { score: ruling.riskScore, level: ruling.risk },
    ...(ruling.waitsFor === null
      ? {}
      : {
          defer: {
            facts: [...ruling.waitsFor.facts],
            until: new Date(ruling.waitsFor.untilMs).toISOString(),
          },
        }),
    constraints: ruling.constraints,
    ...(ruling.modifiedInput === null ? {} : { modified_input: { ...ruling.modifiedInput } }),
    matched_rules: [...ruling.matchedRules],
    labels: [...ruling.labels],
    repeated: false,
  };
}
