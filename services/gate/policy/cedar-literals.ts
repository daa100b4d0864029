import type { Clause, Expr, ResourceConstraint } from "@cedar-policy/cedar-wasm/nodejs";
import { isAttribute } from "./cedar-guard.ts";

/** Names that a policy speaks of in plain texts, so that a wrong one can be found. */
export interface CedarLiterals {
  readonly signals: readonly string[];
  readonly labels: readonly string[];
  readonly tools: readonly string[];
}

export function toCedarLiterals(conditions: readonly Clause[], resource: ResourceConstraint): CedarLiterals {
  const found = { signals: new Set<string>(), labels: new Set<string>(), tools: new Set<string>() };
  if (resource.op === "==" && "entity" in resource) {
    const { entity } = resource;
    found.tools.add("__entity" in entity ? entity.__entity.id : entity.id);
  }
  for (const { body } of conditions) walk(body, found);
  return { signals: [...found.signals], labels: [...found.labels], tools: [...found.tools] };
}

type Found = Readonly<Record<keyof CedarLiterals, Set<string>>>;

function walk(node: unknown, found: Found): void {
  if (typeof node !== "object" || node === null) return;
  for (const [key, child] of Object.entries(node)) {
    if (key === "contains" || key === "containsAny" || key === "containsAll") take(child as Binary, found);
    if (key === "==" || key === "!=") takeTool(child as Binary, found);
    walk(child, found);
  }
}

interface Binary {
  readonly left: Expr;
  readonly right: Expr;
}

function take({ left, right }: Binary, found: Found): void {
  const list = isAttribute(left, "context", "signals")
    ? found.signals
    : isAttribute(left, "context", "labels")
      ? found.labels
      : null;
  if (list === null) return;
  for (const text of textsOf(right)) list.add(text);
}

function takeTool({ left, right }: Binary, found: Found): void {
  for (const [one, other] of [
    [left, right],
    [right, left],
  ] as const) {
    if (isAttribute(one, "context", "tool")) for (const text of textsOf(other)) found.tools.add(text);
  }
}

function textsOf(expr: Expr): string[] {
  const exprs = "Set" in expr ? (expr.Set as Expr[]) : [expr];
  return exprs.flatMap((one) => ("Value" in one && typeof one.Value === "string" ? [one.Value] : []));
}
