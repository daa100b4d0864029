import type { Clause, Expr, ResourceConstraint } from "@cedar-policy/cedar-wasm/nodejs";
import type { AskedParts } from "./cedar-parts.ts";

/** What a guard can ask of a question: the rarer it holds, the more policies it spares, so the rarest come first. */
const kinds = [
  "signals",
  "labels",
  "tenant",
  "user",
  "tool",
  "environment",
  "runtime",
  "data_class",
  "effect",
] as const;
type Kind = (typeof kinds)[number];

/** Variables with the attributes that a question gives them. */
const attributesOf: Readonly<Record<string, readonly Kind[]>> = {
  context: ["tool", "effect", "runtime", "environment", "tenant", "user"],
  principal: ["tenant", "user", "runtime"],
  resource: ["effect", "data_class", "environment"],
};

/** `signals=git.push`: something that holds of a question or not. */
type Feature = `${Kind}=${string}`;
/** At least one of them has to hold; null: nothing is known. */
type Guard = readonly Feature[] | null;

/**
 * Features of which at least one has to hold for the policy to match, or to fail in evaluation; null: nothing is known.
 * Cedar evaluates the scope, then conditions from left to right, and stops at the first that is false, so a policy whose
 * guard is absent need not be asked.
 * INVARIANT: skipping policies by their guards changes no answer (cedar-engine.test.ts).
 */
export function toGuard(
  conditions: readonly Clause[],
  resource: ResourceConstraint,
): readonly string[] | null {
  let best: Guard = null;
  if (resource.op === "==" && "entity" in resource) {
    const { entity } = resource;
    best = [`tool=${"__entity" in entity ? entity.__entity.id : entity.id}`];
  }
  for (const { kind, body } of conditions) {
    if (kind === "when") best = rarer(best, guardOf(body));
    // What stands behind an expression that can fail proves nothing: the failure is an answer too.
    if (!isTotal(body)) break;
  }
  return best;
}

/** The features of a question, as guards name them. */
export function toFeatures(one: AskedParts): readonly string[] {
  return [
    ...one.signals.map((signal): Feature => `signals=${signal}`),
    ...one.labels.map((label): Feature => `labels=${label}`),
    ...[`tenant=${one.tenant}`, `user=${one.user}`, `tool=${one.tool}`, `environment=${one.environment}`],
    ...[`runtime=${one.runtime}`, `data_class=${one.dataClass}`, `effect=${one.effect}`],
  ];
}

function rarer(one: Guard, other: Guard): Guard {
  if (one === null || other === null) return one ?? other;
  return rank(other) < rank(one) ? other : one;
}

/** The place of its most frequent kind. */
function rank(guard: readonly Feature[]): number {
  return Math.max(...guard.map((feature) => kinds.findIndex((kind) => feature.startsWith(`${kind}=`))));
}

function guardOf(expr: Expr): Guard {
  if ("contains" in expr) {
    const { left, right } = binary(expr.contains);
    return toFeaturesOf(left, [right]);
  }
  if ("containsAny" in expr) {
    const { left, right } = binary(expr.containsAny);
    return "Set" in right ? toFeaturesOf(left, right.Set) : null;
  }
  if ("containsAll" in expr) {
    const { left, right } = binary(expr.containsAll);
    const all = "Set" in right ? toFeaturesOf(left, right.Set) : null;
    return all === null || all.length === 0 ? null : all.slice(0, 1);
  }
  if ("==" in expr) {
    const { left, right } = binary(expr["=="]);
    return equalityOf(left, right) ?? equalityOf(right, left);
  }
  if ("||" in expr) {
    const { left, right } = binary(expr["||"]);
    const [one, other] = [guardOf(left), guardOf(right)];
    return one === null || other === null ? null : [...one, ...other];
  }
  if ("&&" in expr) {
    const { left, right } = binary(expr["&&"]);
    return isTotal(left) ? rarer(guardOf(left), guardOf(right)) : guardOf(left);
  }
  return null;
}

function toFeaturesOf(set: Expr, members: readonly Expr[]): Guard {
  const kind = (["signals", "labels"] as const).find((one) => isAttribute(set, "context", one));
  const texts = members.map((one) => ("Value" in one ? one.Value : null));
  if (kind === undefined || !texts.every((one) => typeof one === "string")) return null;
  return texts.map((text): Feature => `${kind}=${text}`);
}

function equalityOf(attribute: Expr, value: Expr): Guard {
  if (!("Value" in value) || typeof value.Value !== "string") return null;
  for (const [variable, names] of Object.entries(attributesOf)) {
    const kind = names.find((name) => isAttribute(attribute, variable, name));
    if (kind !== undefined) return [`${kind}=${value.Value}`];
  }
  return null;
}

interface Binary {
  readonly left: Expr;
  readonly right: Expr;
}
function binary(of: unknown): Binary {
  return of as Binary;
}

/** Whether the expression is `variable.attribute`. */
export function isAttribute(expr: Expr, variable: string, attribute: string): boolean {
  if (!("." in expr)) return false;
  const { left, attr } = expr["."] as { left: Expr; attr: string };
  return attr === attribute && "Var" in left && left.Var === variable;
}

const totalOperators = ["==", "!=", "&&", "||", "contains", "containsAny", "containsAll"] as const;

/** Whether evaluation cannot fail, given that the policy passed the strict validator and all attributes are there. */
function isTotal(expr: Expr): boolean {
  if ("Value" in expr || "Var" in expr) return true;
  if ("." in expr) return isTotal((expr["."] as { left: Expr }).left);
  if ("!" in expr) return isTotal((expr["!"] as { arg: Expr }).arg);
  if ("like" in expr) return isTotal((expr.like as { left: Expr }).left);
  if ("is" in expr) return isTotal((expr.is as { left: Expr }).left);
  if ("isEmpty" in expr) return isTotal((expr.isEmpty as { arg: Expr }).arg);
  if ("Set" in expr) return (expr.Set as Expr[]).every(isTotal);
  const known = expr as Record<string, unknown>;
  return totalOperators.some((name) => {
    if (!(name in known)) return false;
    const { left, right } = binary(known[name]);
    return isTotal(left) && isTotal(right);
  });
}
