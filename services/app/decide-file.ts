import { z } from "zod";
import { Fault } from "../../schemas/faults.ts";
import type { DecisionName, GateAnswer, GateRequest } from "../../schemas/gate.ts";
import { decisions } from "../../schemas/gate.ts";
import type { Report } from "../cli/report.ts";
import { toTable } from "../cli/report.ts";
import type { Screen } from "../cli/screen.ts";
import { style } from "../cli/screen.ts";
import { toRequest } from "../gate/simulate-record.ts";
import { paintDecisions } from "./simulate-text.ts";

/** A request of a file, with the answer that the file expects. */
export interface AskedRequest {
  readonly name: string;
  readonly request: GateRequest;
  /** As the file has them; undefined: none. */
  readonly facts: unknown;
  readonly expected: DecisionName | null;
  readonly expectedReason: string | null;
}
export interface JudgedRequest {
  readonly asked: AskedRequest;
  readonly answer: GateAnswer;
}

const decision = z.enum(decisions);
const expectSchema = z.union([
  decision.transform((one) => ({ decision: one, reason_code: undefined })),
  z.looseObject({ decision, reason_code: z.string().optional() }),
]);
const commandSchema = z.looseObject({ text: z.string(), decision: decision.optional() });
const caseSchema = z.looseObject({
  name: z.string().optional(),
  request: z.record(z.string(), z.unknown()),
  facts: z.unknown().optional(),
  expect: expectSchema.optional(),
  decision: decision.optional(),
});

/** What a request of a file need not say. */
const defaults = { runtime: "own", session_id: "fabric-decide" };
const commandDefaults = { ...defaults, tool: "shell.run", working_directory: "/project" };

/** The requests of a file: a JSON array or JSON lines, each a command, a case or a bare request. */
export function parseDecideFile(text: string, file: string): readonly AskedRequest[] {
  const items = parseItems(text, file);
  if (items.length === 0) throw new Fault("USAGE", `\`${file}\` holds no request`);
  const faults: string[] = [];
  const asked = items.flatMap((item, index): AskedRequest[] => {
    const one = toAsked(item);
    if (typeof one !== "string") return [one];
    faults.push(`item ${String(index + 1)}: ${one}`);
    return [];
  });
  if (faults.length === 0) return asked;
  const more = faults.length > 10 ? [`and ${String(faults.length - 10)} more`] : [];
  throw new Fault("REQUEST_INVALID", `\`${file}\`: ${[...faults.slice(0, 10), ...more].join("; ")}`);
}

function parseItems(text: string, file: string): readonly unknown[] {
  try {
    const whole: unknown = JSON.parse(text);
    return Array.isArray(whole) ? whole : [whole];
  } catch {
    // Not one document: one on each line.
  }
  return text
    .split("\n")
    .map((line, index) => ({ line, number: index + 1 }))
    .filter(({ line }) => line.trim() !== "")
    .map(({ line, number }) => {
      try {
        return JSON.parse(line) as unknown;
      } catch {
        throw new Fault(
          "BODY_NOT_JSON",
          `\`${file}\` line ${String(number)}; give a JSON array, or one JSON object on each line`,
        );
      }
    });
}

/** One item; a text says what is wrong with it. */
function toAsked(item: unknown): AskedRequest | string {
  if (typeof item === "string") return toAsked({ text: item });
  const command = commandSchema.safeParse(item);
  if (command.success) {
    const { text, decision: expected } = command.data;
    const request = toRequest({ ...commandDefaults, input: { command: text } });
    if (typeof request === "string") return request;
    return { name: text, request, facts: undefined, expected: expected ?? null, expectedReason: null };
  }
  const given = caseSchema.safeParse(item);
  if (given.success) {
    const { name, expect, facts } = given.data;
    const request = toRequest({ ...defaults, ...given.data.request });
    if (typeof request === "string") return request;
    return {
      name: name ?? toName(request),
      request,
      facts,
      expected: expect?.decision ?? given.data.decision ?? null,
      expectedReason: expect?.reason_code ?? null,
    };
  }
  if (typeof item === "object" && item !== null && "request" in item) {
    return `${given.error.issues[0]?.path.map(String).join(".") ?? ""}: ${given.error.issues[0]?.message ?? ""}`;
  }
  const request =
    typeof item === "object" && item !== null ? toRequest({ ...defaults, ...item }) : "it is no object";
  if (typeof request === "string") return request;
  return { name: toName(request), request, facts: undefined, expected: null, expectedReason: null };
}

/** The first text of the input tells most. */
function toName({ tool, input }: GateRequest): string {
  const text = Object.values(input).find((value) => typeof value === "string");
  return text === undefined ? tool : `${tool} ${text}`;
}

function isAsExpected({ asked, answer }: JudgedRequest): boolean {
  return (
    (asked.expected === null || asked.expected === answer.decision) &&
    (asked.expectedReason === null || asked.expectedReason === answer.reason_code)
  );
}

/** Rows up to which every one is shown; of more, those that differ. */
const rowsMax = 60;
const nameMaxChars = 70;

/** The table of a file's decisions; exit 1 when one is not what the file says. */
export function renderJudged(screen: Screen, judged: readonly JudgedRequest[]): Report {
  const wrong = judged.filter((one) => !isAsExpected(one));
  const shown = judged.length > rowsMax ? wrong : judged;
  const compared = judged.filter(({ asked }) => asked.expected !== null).length;
  const counts = decisions
    .map((name) => ({ name, count: judged.filter(({ answer }) => answer.decision === name).length }))
    .filter(({ count }) => count > 0)
    .map(({ name, count }) => `${String(count)} ${name}`);
  const summary = `${String(judged.length)} judged by ${judged[0]?.answer.policy_revision ?? "nobody"}: ${counts.join(", ")}`;
  const verdict =
    compared === 0
      ? "no decision was expected"
      : wrong.length === 0
        ? style(screen, "green", `all ${String(compared)} expected decisions came out`)
        : style(screen, "red", `${String(wrong.length)} of ${String(compared)} came out otherwise`);
  const table = toTable(
    ["", "DECISION", "REASON", "EXPECTED", "REQUEST", "RULES"],
    shown.map((one) => [
      isAsExpected(one) ? "" : "✗",
      one.answer.decision,
      one.answer.reason_code,
      isAsExpected(one)
        ? ""
        : [one.asked.expected, one.asked.expectedReason].filter((part) => part !== null).join(" "),
      cut(one.asked.name),
      one.answer.matched_rules.join(" "),
    ]),
    screen.columns,
  );
  return {
    json: {
      judged: judged.length,
      compared,
      differ: wrong.length,
      requests: judged.map((one) => ({
        name: one.asked.name,
        decision: one.answer.decision,
        reason_code: one.answer.reason_code,
        matched_rules: one.answer.matched_rules,
        expected: one.asked.expected,
        as_expected: isAsExpected(one),
      })),
    },
    text: [...(shown.length === 0 ? [] : [paintDecisions(screen, table), ""]), summary, verdict].join("\n"),
    exit: wrong.length === 0 ? 0 : 1,
  };
}

function cut(text: string): string {
  const line = text.replaceAll("\n", "⏎").replaceAll("\t", " ");
  return line.length > nameMaxChars ? `${line.slice(0, nameMaxChars - 1)}…` : line;
}
