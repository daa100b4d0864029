import { z } from "zod";
import type { EffectClass } from "../../../schemas/generated/types.ts";
import type { When } from "./policy.ts";

export const priorityMax = 1000;
export const messageMaxChars = 300;
export const ruleIdPattern = /^(?=.{1,128}$)[a-z][a-z0-9-]*(\.[a-z0-9-]+)*$/;

/** Effects that a catalogue may name: what is not known is not in it. */
export const effectClasses = [
  "none",
  "read",
  "write",
  "execute",
  "network",
  "spawn",
] as const satisfies readonly EffectClass[];

export const ruleId = z.string().regex(ruleIdPattern, "an id has the form `deny.secret-file`");
export const toolPattern = z
  .string()
  .regex(
    /^(?:\*|[a-z][a-z0-9_]*(\.[A-Za-z0-9_-]+)*(\.\*|[A-Za-z0-9_-]\*)?)$/,
    "a tool has the form `shell.run` or `file.*`",
  );
export const message = z.string().min(1).max(messageMaxChars);
export const priority = z.number().int().min(-priorityMax).max(priorityMax).default(0);
export const fieldName = z.string().min(1).max(128);
export const label = z
  .string()
  .regex(/^(?=.{1,64}$)[a-z][a-z0-9_-]*(\.[a-z0-9_-]+)*$/, "a label has the form `secret_read`");
const words = z.array(z.string().min(1).max(128)).min(1);
const named = z.array(ruleId).min(1);

/** The `when` of a rule, as it is written. */
export const whenShape = z
  .strictObject({
    tools: z.array(toolPattern).min(1).optional(),
    effects: z.array(z.enum(effectClasses)).min(1).optional(),
    runtimes: z
      .array(z.string().regex(/^[a-z][a-z0-9-]{0,63}$/, "a runtime has the form `claude-code`"))
      .min(1)
      .optional(),
    environments: words.optional(),
    signals_any: named.optional(),
    signals_all: named.optional(),
    signals_none: named.optional(),
    labels_any: z.array(label).min(1).optional(),
    labels_none: z.array(label).min(1).optional(),
    risk_at_least: z.number().int().min(1).max(100).optional(),
  })
  .transform((one): When => ({
    tools: one.tools ?? [],
    effects: one.effects ?? [],
    runtimes: one.runtimes ?? [],
    environments: one.environments ?? [],
    signalsAny: one.signals_any ?? [],
    signalsAll: one.signals_all ?? [],
    signalsNone: one.signals_none ?? [],
    labelsAny: one.labels_any ?? [],
    labelsNone: one.labels_none ?? [],
    riskAtLeast: one.risk_at_least ?? null,
  }));
