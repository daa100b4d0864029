import type { GateRequest, Json, JsonObject } from "../../../schemas/gate.ts";
import { toCanonicalJson } from "../../platform/canonical-json.ts";
import type { Classified } from "../classified.ts";
import type { RewriteRule, Verdict } from "../policy/policy.ts";
import { compareText } from "./merge.ts";

/** A rule with the fields that it changed. */
export interface AppliedRewrite {
  readonly rule: RewriteRule;
  readonly fields: readonly string[];
}

/** An input after its rewrites. */
export interface Rewritten {
  readonly input: JsonObject;
  /** Rules that changed something, the one that leads first. */
  readonly applied: readonly AppliedRewrite[];
}

/** Sets and removes fields. Of two rules on one field the higher priority holds, then the lower id. */
export function rewriteInput(rules: readonly RewriteRule[], input: JsonObject): Rewritten {
  const fields = new Map<string, Json>(Object.entries(input));
  const taken = new Set<string>();
  const applied: AppliedRewrite[] = [];
  for (const rule of [...rules].sort(compareRank)) {
    const free = [...Object.keys(rule.set), ...rule.remove].filter((field) => !taken.has(field));
    const changed = [...new Set(free)].filter((field) => change(fields, field, rule.set));
    for (const field of free) taken.add(field);
    if (changed.length > 0) applied.push({ rule, fields: changed.sort() });
  }
  return { input: Object.fromEntries(fields), applied };
}

function compareRank(left: RewriteRule, right: RewriteRule): number {
  return right.priority - left.priority || compareText(left.id, right.id);
}

/** Whether the field is another one now. */
function change(fields: Map<string, Json>, field: string, set: JsonObject): boolean {
  if (!Object.hasOwn(set, field)) return fields.delete(field);
  const value = set[field] as Json;
  const before = fields.get(field);
  if (before !== undefined && toCanonicalJson(before) === toCanonicalJson(value)) return false;
  fields.set(field, value);
  return true;
}

/** One form of the input as it was judged. */
export interface JudgedForm {
  readonly request: GateRequest;
  readonly classified: Classified;
}

/**
 * What a rewrite did that it may not do, in words; null: nothing. Limits need no look: those of both forms hold.
 * INVARIANT: a modify changes no tool, action, resource or environment (test/property/gate-decide.test.ts).
 */
export function findRewriteFault(asked: JudgedForm, rewritten: JudgedForm): string | null {
  const [before, after] = [asked.classified, rewritten.classified];
  if (after.entry !== before.entry || rewritten.request.tool !== asked.request.tool)
    return "changed the tool";
  if (after.action !== before.action) return "changed the action";
  if (rewritten.request.working_directory !== asked.request.working_directory) return "changed the place";
  if (before.entry?.resource.kind === "command") {
    // The text is the resource: it may become another one, and run in another way, that does no more than was asked for.
    const added = after.signals.filter((one) => !before.signals.includes(one));
    if (added.length > 0) return `made a command that does more: ${added.join(", ")}`;
  } else if (after.resource !== before.resource || !isSameTouch(before, after)) {
    return "changed the resource";
  }
  const problems = after.entry?.inputProblems(rewritten.request.input) ?? [];
  return problems.length > 0 ? `made an input that the tool does not take: ${problems.join("; ")}` : null;
}

/** A resource is named by its first file; a call can name more. */
function isSameTouch(before: Classified, after: Classified): boolean {
  const names = (one: Classified): string =>
    JSON.stringify(one.touched.map(({ mode, path }) => [mode, path]).sort());
  return names(before) === names(after);
}

/** The denies of rewrites that did what they may not do. */
export function toRewriteFailures(applied: readonly AppliedRewrite[], fault: string): Verdict[] {
  return applied.map(({ rule }) => ({
    rule: rule.id,
    stage: "normalize",
    decision: "deny",
    reason: "RULE_FAILED",
    message: `the rewrite \`${rule.id}\` ${fault}`,
    priority: rule.priority,
  }));
}
