import * as cedar from "@cedar-policy/cedar-wasm/nodejs";
import { createHash } from "node:crypto";
import { toFeatures } from "./cedar-guard.ts";
import type { CedarRule } from "./cedar-rule.ts";
import type { AskedParts } from "./cedar-parts.ts";
import { createReducer, toContextNames } from "./cedar-parts.ts";
import type { CedarAnswer, CedarMatch, CedarPolicies } from "./policy.ts";
import { compareTexts } from "./problem.ts";

/** Answers kept per bundle: a session asks the same few questions again and again. */
const keptAnswers = 4096;
/**
 * Sets of policies that a bundle may add for combinations of features, as they come up. Cedar never frees a set; past
 * this number the whole slice of the action is asked, which gives the same answer and takes longer.
 */
const lazySetsMax = 256;

/**
 * Ids of the sets that Cedar holds, for the whole process, since Cedar keeps them so. An id is the digest of what is in
 * the set: the same content loaded again adds nothing, and two bundles cannot change each other's sets.
 */
const heldSets = new Set<string>();

/** How many sets of policies Cedar holds; it frees none. */
export function countHeldSets(): number {
  return heldSets.size;
}

/** An error of the engine itself has this rule's name. */
export const engineRuleId = "cedar";

interface Slice {
  readonly rules: readonly CedarRule[];
  /** Features that guards of this slice name. */
  readonly guards: ReadonlySet<string>;
  readonly wholeSetId: string;
  /** Guards that hold, as JSON → set; null: the set would be empty. */
  readonly sets: Map<string, string | null>;
}

/**
 * Pre-parses policies for each action. Each policy is held as a `permit` whatever its effect is, so that one
 * evaluation names all that hold, forbids and permits alike, and the effect is weighed here.
 * INVARIANT: answers are those of Cedar asked for the forbids alone and the permits alone (cedar-engine.test.ts).
 */
export function createCedarPolicies(rules: readonly CedarRule[], actions: readonly string[]): CedarPolicies {
  const byId = new Map(rules.map((rule) => [rule.id, rule]));
  const slices = new Map(actions.map((action) => [action, toSlice(rules, action)]));
  // An action outside of the schema is that of an unknown tool: what forbids everything speaks, and nothing permits.
  const unknown = toSlice(
    rules.filter((rule) => rule.actions === null && rule.effect === "forbid"),
    "",
  );
  const uses = new Set(rules.flatMap((rule) => rule.uses));
  const toParts = createReducer(uses);
  const toCall = createCallMaker(uses);
  const answers = new Map<string, CedarAnswer>();
  let lazySets = 0;

  function setFor(slice: Slice, question: AskedParts): string | null {
    const features = toFeatures(question).filter((feature) => slice.guards.has(feature));
    const present = [...new Set(features)].sort(compareTexts);
    const key = JSON.stringify(present);
    const known = slice.sets.get(key);
    if (known !== undefined) return known;
    if (lazySets >= lazySetsMax) return slice.wholeSetId;
    lazySets += 1;
    const setId = holdCandidates(slice.rules, present);
    slice.sets.set(key, setId);
    return setId;
  }

  function evaluate(question: AskedParts): CedarAnswer {
    const slice = slices.get(question.action) ?? unknown;
    const setId = setFor(slice, question);
    if (setId === null) return { denied: [], forbidden: [], permitted: [] };
    const outcome = cedar.statefulIsAuthorized({ preparsedPolicySetId: setId, ...toCall(question) });
    if (outcome.type === "failure") {
      return toFailure(outcome.errors[0]?.message ?? "the policies could not be evaluated");
    }
    return toAnswer(outcome.response.diagnostics, byId);
  }

  return {
    ask(question) {
      try {
        const parts = toParts(question);
        const key = toKey(parts);
        const kept = answers.get(key);
        if (kept !== undefined) {
          answers.delete(key);
          answers.set(key, kept);
          return kept;
        }
        const answer = evaluate(parts);
        if (answers.size >= keptAnswers) {
          const [oldest] = answers.keys();
          if (oldest !== undefined) answers.delete(oldest);
        }
        answers.set(key, answer);
        return answer;
      } catch (error) {
        return toFailure(error instanceof Error ? error.message : String(error));
      }
    },
  };
}

function toSlice(all: readonly CedarRule[], action: string): Slice {
  const rules = all.filter((rule) => rule.actions === null || rule.actions.includes(action));
  const guards = new Set(rules.flatMap((rule) => rule.guard ?? []));
  const sets = new Map<string, string | null>();
  sets.set("[]", holdCandidates(rules, []));
  for (const guard of guards) sets.set(JSON.stringify([guard]), holdCandidates(rules, [guard]));
  return { rules, guards, wholeSetId: holdSet(rules), sets };
}

/** Holds what can match when exactly these features hold. */
function holdCandidates(rules: readonly CedarRule[], present: readonly string[]): string | null {
  const candidates = rules.filter(
    ({ guard }) => guard === null || guard.some((feature) => present.includes(feature)),
  );
  return candidates.length === 0 ? null : holdSet(candidates);
}

function holdSet(rules: readonly CedarRule[]): string {
  const policies = Object.fromEntries(rules.map((rule) => [rule.id, rule.permitText]));
  const hash = createHash("sha256");
  for (const id of Object.keys(policies).sort(compareTexts)) hash.update(JSON.stringify([id, policies[id]]));
  const setId = hash.digest("hex");
  if (heldSets.has(setId)) return setId;
  const outcome = cedar.preparsePolicySet(setId, { staticPolicies: policies });
  if (outcome.type === "failure") {
    throw new Error(`cedar refuses the policies: ${outcome.errors[0]?.message ?? "no reason given"}`);
  }
  heldSets.add(setId);
  return setId;
}

/**
 * Makes calls of what the policies read and nothing else: to hand over the rest takes longer than to evaluate twenty
 * policies.
 */
function createCallMaker(
  uses: ReadonlySet<string>,
): (one: AskedParts) => Omit<cedar.StatefulAuthorizationCall, "preparsedPolicySetId"> {
  const contextNames = toContextNames(uses);
  const readsEntity = (variable: string): boolean =>
    [...uses].some((one) => one === variable || one.startsWith(`${variable}.`));
  const [readsPrincipal, readsResource] = [readsEntity("principal"), readsEntity("resource")];
  return ({ tenant, user, agent, runtime, tool, action, effect, dataClass, environment, ...sets }) => {
    const principal = { type: "Agent", id: agent };
    const resource = { type: "Tool", id: tool };
    const context = {
      ...{ signals: [...sets.signals], labels: [...sets.labels] },
      ...{ tool, effect, runtime, environment, tenant, user },
    };
    const entities: cedar.EntityJson[] = [];
    if (readsPrincipal) entities.push({ uid: principal, attrs: { tenant, user, runtime }, parents: [] });
    if (readsResource) {
      entities.push({ uid: resource, attrs: { effect, data_class: dataClass, environment }, parents: [] });
    }
    return {
      principal,
      action: { type: "Action", id: action },
      resource,
      context: Object.fromEntries(Object.entries(context).filter(([name]) => contextNames.has(name))),
      entities,
    };
  };
}

/** The parts in a fixed order: two questions with one key have equal parts. */
function toKey(one: AskedParts): string {
  return JSON.stringify([
    ...[one.tenant, one.user, one.agent, one.runtime, one.tool, one.action, one.effect, one.dataClass],
    ...[one.environment, one.signals, one.labels],
  ]);
}

function toAnswer(diagnostics: cedar.Diagnostics, byId: ReadonlyMap<string, CedarRule>): CedarAnswer {
  const denied: CedarMatch[] = [];
  const forbidden: CedarMatch[] = [];
  const permitted: CedarMatch[] = [];
  for (const id of diagnostics.reason) {
    const rule = byId.get(id);
    if (rule === undefined) return toFailure(`an unknown policy \`${id}\` spoke`);
    const list = rule.effect === "permit" ? permitted : rule.isStatic ? denied : forbidden;
    list.push({ id, reason: rule.reason, message: rule.message, priority: rule.priority });
  }
  for (const { policyId, error } of diagnostics.errors) {
    const rule = byId.get(policyId);
    // A permit that fails is listed with the forbids: read as a match of the permits it would allow.
    (rule === undefined || rule.isStatic ? denied : forbidden).push({
      id: policyId,
      reason: "RULE_FAILED",
      message: `the rule could not be evaluated: ${error.message}`,
      priority: rule?.priority ?? 0,
    });
  }
  const byName = (a: CedarMatch, b: CedarMatch): number => compareTexts(a.id, b.id);
  return {
    denied: denied.sort(byName),
    forbidden: forbidden.sort(byName),
    permitted: permitted.sort(byName),
  };
}

function toFailure(message: string): CedarAnswer {
  const failed: CedarMatch = {
    id: engineRuleId,
    reason: "RULE_FAILED",
    message: `the policies could not be evaluated: ${message}`,
    priority: 0,
  };
  return { denied: [failed], forbidden: [], permitted: [] };
}
