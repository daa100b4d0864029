import { readFile } from "node:fs/promises";
import { z } from "zod";
import { Fault } from "../../schemas/faults.ts";
import type { GateAnswer } from "../../schemas/gate.ts";
import { gateAnswerSchema, gateRequestSchema } from "../../schemas/gate.ts";
import type { Report } from "../cli/report.ts";
import { toAnswer } from "../gate/answer.ts";
import { loadBundle } from "../gate/bundle.ts";
import { decide } from "../gate/decide.ts";
import { systemClock } from "../platform/clock.ts";
import type { Config } from "../platform/config.ts";
import { requireSetting } from "../platform/config.ts";

/** One decision: by the running gate, which records it, or by a bundle alone, which records nothing. */
export async function decideAction(
  configOf: () => Promise<Config>,
  options: { bundle: string | undefined; request: string },
): Promise<Report> {
  const request = parseRequest(options.request);
  const answer =
    options.bundle === undefined
      ? await askGate(await configOf(), request)
      : await judgeAlone(options.bundle, request);
  return {
    json: answer,
    text: [
      `${answer.decision} ${answer.reason_code}`,
      answer.message,
      `rules: ${answer.matched_rules.join(", ") || "none"} · policy ${answer.policy_revision}`,
    ].join("\n"),
    exit: answer.decision === "allow" || answer.decision === "modify" ? 0 : 4,
  };
}

function parseRequest(text: string): z.output<typeof gateRequestSchema> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new Fault("BODY_NOT_JSON", "give one request as JSON on stdin; `fabric decide --help` shows one");
  }
  const parsed = gateRequestSchema.safeParse(json);
  if (!parsed.success) throw new Fault("REQUEST_INVALID", toFieldFaults(parsed.error));
  return parsed.data;
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

async function askGate(config: Config, request: unknown): Promise<GateAnswer> {
  const url = requireSetting(config.gate.url, "FABRIC_GATE_URL", "that is where the gate listens");
  const tokenFile = requireSetting(config.tokenFile, "FABRIC_TOKEN_FILE", "the gate wants a bearer token");
  const token = (await readFile(tokenFile, "utf8")).trim();
  let response: Response;
  try {
    response = await fetch(`${url}/v1/gate/decide`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(request),
      signal: AbortSignal.timeout(10_000),
    });
  } catch (error) {
    throw new Fault(
      "GATE_UNREACHABLE",
      `no answer from ${url}; start it with \`fabric up\`, or judge with --bundle`,
      {
        cause: error,
      },
    );
  }
  const body: unknown = await response.json();
  const answer = gateAnswerSchema.safeParse(body);
  if (answer.success) return answer.data;
  const problem = z.object({ code: z.string(), detail: z.string() }).safeParse(body);
  throw new Fault(
    response.status === 401 || response.status === 403 ? "TOKEN_INVALID" : "REQUEST_INVALID",
    problem.success
      ? `${problem.data.code}: ${problem.data.detail}`
      : `the gate answered ${String(response.status)}`,
  );
}

/** A bundle's ruling on a session without history. Nothing is recorded, so no right is issued. */
async function judgeAlone(dir: string, request: z.output<typeof gateRequestSchema>): Promise<GateAnswer> {
  const bundle = await loadBundle(dir);
  const ruling = decide(
    request,
    { tenant: { state: "active", version: 1 }, session: { version: 0, labels: [] } },
    bundle,
  );
  const { capability: _notIssued, ...answer } = toAnswer(ruling, request, {
    decisionId: "not-recorded",
    capabilityId: "not-issued",
    correlationId: "not-recorded",
    nowMs: systemClock.nowMs(),
    policyRevision: bundle.revision,
  });
  return answer;
}
