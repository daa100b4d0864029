import type { Clause, Expr } from "@cedar-policy/cedar-wasm/nodejs";

/**
 * Signals of which at least one has to be there for the conditions to hold, or to fail in evaluation; null: nothing is
 * known. Cedar evaluates conditions from left to right and stops at the first that is false, so a policy whose guard is
 * absent need not be asked.
 * INVARIANT: skipping policies by their guards changes no answer (cedar-engine.test.ts).
 */
export function toSignalGuard(conditions: readonly Clause[]): readonly string[] | null {
  for (const { kind, body } of conditions) {
    const guard = kind === "when" ? guardOf(body) : null;
    if (guard !== null) return guard;
    // What stands behind an expression that can fail proves nothing: the failure is an answer too.
    if (!isTotal(body)) return null;
  }
  return null;
}

function guardOf(expr: Expr): readonly string[] | null {
  if ("contains" in expr) {
    const { left, right } = binary(expr.contains);
    return isSignals(left) ? textsOf([right]) : null;
  }
  if ("containsAny" in expr) {
    const { left, right } = binary(expr.containsAny);
    return isSignals(left) && "Set" in right ? textsOf(right.Set) : null;
  }
  if ("containsAll" in expr) {
    const { left, right } = binary(expr.containsAll);
    const all = isSignals(left) && "Set" in right ? textsOf(right.Set) : null;
    return all === null || all.length === 0 ? null : all.slice(0, 1);
  }
  if ("||" in expr) {
    const { left, right } = binary(expr["||"]);
    const [one, other] = [guardOf(left), guardOf(right)];
    return one === null || other === null ? null : [...one, ...other];
  }
  if ("&&" in expr) {
    const { left, right } = binary(expr["&&"]);
    return guardOf(left) ?? (isTotal(left) ? guardOf(right) : null);
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

function isSignals(expr: Expr): boolean {
  return isAttribute(expr, "context", "signals");
}

/** Whether the expression is `variable.attribute`. */
export function isAttribute(expr: Expr, variable: string, attribute: string): boolean {
  if (!("." in expr)) return false;
  const { left, attr } = expr["."] as { left: Expr; attr: string };
  return attr === attribute && "Var" in left && left.Var === variable;
}

/** The texts of literals; null when one of them is no literal text. */
function textsOf(exprs: readonly Expr[]): readonly string[] | null {
  const texts = exprs.map((one) => ("Value" in one ? one.Value : null));
  return texts.every((one) => typeof one === "string") ? texts : null;
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
