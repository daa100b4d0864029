import type { Constraints, DecisionName, GateRequest, JsonObject, ReasonCode } from "../../schemas/gate.ts";
import type { Classified } from "./classify.ts";
import { classify } from "./classify.ts";
import type { Verdict } from "./merge.ts";
import { mergeConstraints, mergeVerdicts } from "./merge.ts";
import type { Normalizer } from "./normalize.ts";
import { keepInput } from "./normalize.ts";
import { planDigest, toPlan } from "./plan.ts";
import type { Plan } from "./plan.ts";
import type { Bundle } from "./rules.ts";
import { conditionHolds, toolFits } from "./rules.ts";

/** What the gate knew when it decided; stored with the decision, so that it can be made again. */
export interface Facts {
  readonly tenant: { readonly state: "active" | "frozen"; readonly version: number };
  readonly session: { readonly version: number; readonly labels: readonly string[] };
}

/** What every stage sees. */
export interface StageInput {
  readonly request: GateRequest;
  readonly classified: Classified;
  readonly facts: Facts;
  readonly bundle: Bundle;
}
export interface StageResult {
  readonly verdicts: readonly Verdict[];
  readonly constraints?: readonly Constraints[];
  readonly labels?: readonly string[];
}
/** A pure judgement; stages run in the order of their list, each whatever the others said. */
export interface Stage {
  readonly name: string;
  judge(input: StageInput): StageResult;
}

/** The outcome, before it has ids and a time. */
export interface Ruling {
  readonly decision: DecisionName;
  readonly reason: ReasonCode;
  readonly message: string;
  readonly matchedRules: readonly string[];
  readonly constraints: Constraints;
  readonly labels: readonly string[];
  readonly classified: Classified;
  readonly plan: Plan;
  readonly planDigest: string | null;
  /** The input that may run in place of the one asked for; null: the one asked for. */
  readonly modifiedInput: JsonObject | null;
  /** Whether the plan has effects and is allowed: such a plan gets a capability. */
  readonly needsCapability: boolean;
}

/** Stage 1: what could not be understood denies. */
const findingsStage: Stage = {
  name: "classify",
  judge: ({ classified }) => ({
    verdicts: classified.findings.map((one) => ({ ...one, decision: "deny", priority: 0 })),
  }),
};

/** Stage 2: static deny rules and a frozen tenant. Each rule is tried, and each that matches is recorded. */
const staticDenyStage: Stage = {
  name: "static-deny",
  judge({ request, classified, bundle }) {
    const verdicts: Verdict[] = [];
    for (const rule of bundle.deny) {
      if (!rule.tools.some((tool) => toolFits(tool, request.tool))) continue;
      const deny = { rule: rule.id, decision: "deny", priority: rule.priority, isAbsolute: true } as const;
      try {
        if (conditionHolds(rule.condition, classified)) {
          verdicts.push({ ...deny, reason: "STATIC_DENY", message: rule.message });
        }
      } catch (error) {
        const why = error instanceof Error ? error.message : "it failed";
        verdicts.push({
          ...deny,
          reason: "RULE_FAILED",
          message: `the rule \`${rule.id}\` could not judge: ${why}`,
        });
      }
    }
    return { verdicts };
  },
};

/** What is told while a tenant is frozen. */
export const frozenMessage = "the tenant is frozen; an incident has to be lifted by a person first";

const incidentStage: Stage = {
  name: "incident",
  judge: ({ facts }) => ({
    verdicts:
      facts.tenant.state === "frozen"
        ? [
            {
              rule: "incident.tenant-frozen",
              decision: "deny",
              reason: "TENANT_FROZEN",
              message: frozenMessage,
              // Before every rule of a bundle: the freeze is what a person has to know.
              priority: 10_000,
              isAbsolute: true,
            },
          ]
        : [],
  }),
};

/** Stages 3 and 4 until authorization rules and risk are there: what the catalogue lists may be done. */
const catalogStage: Stage = {
  name: "catalog",
  judge: ({ classified: { entry } }) =>
    entry === null
      ? { verdicts: [] }
      : {
          verdicts: [
            {
              rule: `catalog.${entry.tool}`,
              decision: "allow",
              reason: "ALLOWED",
              message: `the catalogue allows \`${entry.tool}\``,
              priority: 0,
            },
          ],
          constraints: [entry.constraints],
        },
};

/** The stages of this version, in their fixed order. */
export const defaultStages: readonly Stage[] = [findingsStage, staticDenyStage, incidentStage, catalogStage];

/** Effect classes whose plans need no capability. */
const withoutEffect: ReadonlySet<string> = new Set(["none", "read"]);

/** The digest of the plan as proposed, before any rule spoke: part of a call's identity. */
export function proposedDigest(request: GateRequest, bundle: Bundle): string | null {
  return planDigest(
    toPlan(request, classify(request, bundle), { environment: "unknown", operands: [], constraints: {} }),
  );
}

/** What a decision is made with; the defaults are this version's own. */
export interface DecideWith {
  readonly stages?: readonly Stage[];
  readonly normalize?: Normalizer;
}

/**
 * Decides. Deterministic: the same request, facts and bundle give the same ruling. A rewritten input passes all stages
 * once more, and is not rewritten again; the frozen plan is the rewritten one.
 */
export function decide(
  request: GateRequest,
  facts: Facts,
  bundle: Bundle,
  { stages = defaultStages, normalize = keepInput }: DecideWith = {},
): Ruling {
  const proposed = judge(request, facts, bundle, stages);
  if (proposed.decision === "deny" || proposed.decision === "defer") return proposed;
  const rewrite = normalize(request);
  if (rewrite === null) return proposed;
  const ruling = judge(rewrite.request, facts, bundle, stages);
  const matchedRules = [...new Set([...proposed.matchedRules, ...ruling.matchedRules, rewrite.rule])].sort();
  const isSame =
    ruling.plan.tool === proposed.plan.tool &&
    ruling.plan.action === proposed.plan.action &&
    (isNamedByText(proposed) || ruling.plan.resource === proposed.plan.resource) &&
    ruling.plan.working_directory === proposed.plan.working_directory;
  if (!isSame) {
    return {
      ...ruling,
      matchedRules,
      decision: "deny",
      reason: "RULE_FAILED",
      message: `the rule \`${rewrite.rule}\` changed more than the input`,
      needsCapability: false,
    };
  }
  if (ruling.decision !== "allow") return { ...ruling, matchedRules };
  return { ...ruling, matchedRules, decision: "modify", modifiedInput: rewrite.request.input };
}

/** For a command, and for a free text, the input is the resource: a rewrite of it is judged, not compared. */
function isNamedByText({ classified: { entry } }: Ruling): boolean {
  return entry?.resource.kind === "command" || entry?.resource.kind === "text";
}

/** Stages 1-4 and 6 on one form of the input. */
function judge(request: GateRequest, facts: Facts, bundle: Bundle, stages: readonly Stage[]): Ruling {
  const classified = classify(request, bundle);
  const verdicts: Verdict[] = [];
  const constraints: Constraints[] = [];
  const labels = new Set<string>();
  for (const stage of stages) {
    const result = judgeSafely(stage, { request, classified, facts, bundle });
    verdicts.push(...result.verdicts);
    constraints.push(...(result.constraints ?? []));
    for (const label of result.labels ?? []) labels.add(label);
  }
  const limits = mergeConstraints(constraints);
  const plan = toPlan(request, classified, {
    environment: "unknown",
    operands: [],
    constraints: limits,
  });
  const digest = planDigest(plan);
  if (digest === null) {
    verdicts.push({
      rule: "classify.input-unreadable",
      decision: "deny",
      reason: "INPUT_UNREADABLE",
      message: "the input has no canonical form",
      priority: 0,
    });
  }
  const merged = mergeVerdicts(verdicts);
  return {
    ...merged,
    constraints: limits,
    labels: [...labels].sort(),
    classified,
    plan,
    planDigest: digest,
    modifiedInput: null,
    needsCapability: merged.decision === "allow" && !withoutEffect.has(classified.effect),
  };
}

function judgeSafely(stage: Stage, input: StageInput): StageResult {
  try {
    return stage.judge(input);
  } catch (error) {
    const why = error instanceof Error ? error.message : "it failed";
    const verdict: Verdict = {
      rule: `stage.${stage.name}`,
      decision: "deny",
      reason: "RULE_FAILED",
      message: `the stage \`${stage.name}\` could not judge: ${why}`,
      priority: 0,
      isAbsolute: true,
    };
    return { verdicts: [verdict] };
  }
}
