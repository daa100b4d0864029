import { z } from "zod";
import type { EventType } from "../../../schemas/catalog.ts";
import { catalog, eventTypes } from "../../../schemas/catalog.ts";
import { parseYamlFile } from "../policy/yaml-file.ts";
import type { PolicyProblem } from "../policy/problem.ts";
import { toProblemLines } from "../policy/problem.ts";

/** What is done past a limit. */
export type ThrottleAction =
  | { readonly kind: "drop" }
  | { readonly kind: "coalesce" }
  | { readonly kind: "delay"; readonly delayMs: number }
  | { readonly kind: "sample"; readonly oneIn: number };

/** A limit on observing events. */
export interface ThrottleRule {
  readonly id: string;
  readonly scope: "tenant" | "agent" | "tool" | "type";
  /** Empty: every type that the action may be applied to. */
  readonly types: readonly EventType[];
  readonly windowMs: number;
  readonly limit: number;
  readonly action: ThrottleAction;
}

/** Beginnings and ends, and what a person said, are evidence of everything between. */
const kept: ReadonlySet<EventType> = new Set([
  "agent.session.started",
  "agent.session.ended",
  "agent.subagent.started",
  "agent.subagent.stopped",
  "agent.prompt.submitted",
]);

/**
 * Types of which events may be left out: lifecycle alone. Policy, audit and webhook facts are never dropped or sampled.
 * INVARIANT: services/gate/throttle/throttle.test.ts "leaves nothing out that a decision or an audit rests on".
 */
export const omittableTypes: ReadonlySet<EventType> = new Set(
  eventTypes.filter((type) => catalog[type].class === "lifecycle" && !kept.has(type)),
);

/** A hook's shim waits for two seconds at most. */
const delayMaxMs = 1_000;

const ruleSchema = z
  .strictObject({
    id: z.string().regex(/^[a-z][a-z0-9.-]{0,62}$/, "an id has lower case letters, digits, dots and dashes"),
    scope: z.enum(["tenant", "agent", "tool", "type"]),
    types: z.array(z.enum(eventTypes)).default([]),
    window_seconds: z.number().int().min(1).max(3_600),
    limit: z.number().int().min(1).max(1_000_000_000),
    action: z.enum(["drop", "delay", "coalesce", "sample"]),
    delay_ms: z.number().int().min(1).max(delayMaxMs).optional(),
    one_in: z.number().int().min(2).max(1_000_000).optional(),
  })
  .refine(({ action, delay_ms }) => (action === "delay") === (delay_ms !== undefined), {
    path: ["delay_ms"],
    message: "goes with the action delay, and only with it",
  })
  .refine(({ action, one_in }) => (action === "sample") === (one_in !== undefined), {
    path: ["one_in"],
    message: "goes with the action sample, and only with it",
  })
  .refine(({ action, types }) => action === "delay" || types.every((type) => omittableTypes.has(type)), {
    path: ["types"],
    message: `may be left out: ${[...omittableTypes].join(", ")}`,
  });
const fileSchema = z.strictObject({ note: z.string().optional(), rules: z.array(ruleSchema) });

/** What came of the file of limits. */
export type ThrottleOutcome =
  | { readonly ok: true; readonly rules: readonly ThrottleRule[] }
  | { readonly ok: false; readonly problems: string };

/** Reads the file of limits, with every problem; ids are used once. */
export function parseThrottle(file: string, text: string): ThrottleOutcome {
  const problems: PolicyProblem[] = [];
  const parsed = parseYamlFile(file, text, fileSchema, problems);
  const rules = parsed?.value.rules ?? [];
  rules.forEach((one, index) => {
    if (rules.findIndex((other) => other.id === one.id) < index) {
      problems.push({
        file,
        line: parsed?.lineOf(["rules", index]) ?? 0,
        text: `the id \`${one.id}\` is there twice`,
      });
    }
  });
  if (problems.length > 0 || parsed === null) {
    return { ok: false, problems: toProblemLines(problems) };
  }
  return {
    ok: true,
    rules: rules.map((one) => ({
      id: one.id,
      scope: one.scope,
      types: one.types,
      windowMs: one.window_seconds * 1_000,
      limit: one.limit,
      action: toAction(one),
    })),
  };
}

function toAction({ action, delay_ms, one_in }: z.output<typeof ruleSchema>): ThrottleAction {
  switch (action) {
    case "drop":
    case "coalesce":
      return { kind: action };
    case "delay":
      return { kind: action, delayMs: delay_ms ?? 1 };
    case "sample":
      return { kind: action, oneIn: one_in ?? 2 };
  }
}
