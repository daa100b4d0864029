import type { Clause, Expr, PrincipalConstraint, ResourceConstraint } from "@cedar-policy/cedar-wasm/nodejs";
import { isAttribute } from "./cedar-guard.ts";

/**
 * What a policy reads of a question: `context.tool`; `principal` for all of one variable; `signals=deploy` for a set
 * that is only asked for names that the policy itself gives.
 */
export function toUses(
  principal: PrincipalConstraint,
  resource: ResourceConstraint,
  conditions: readonly Clause[],
): readonly string[] {
  const uses = new Set<string>();
  if (principal.op === "==" || principal.op === "in") uses.add("principal");
  if (resource.op === "==" || resource.op === "in") uses.add("resource");
  for (const { body } of conditions) walk(body, uses);
  return [...uses];
}

function walk(node: unknown, uses: Set<string>): void {
  if (typeof node !== "object" || node === null) return;
  const { Var: variable, ".": access } = node as { readonly Var?: unknown; readonly "."?: unknown };
  if (typeof variable === "string") uses.add(variable);
  if (typeof access === "object" && access !== null && "left" in access && "attr" in access) {
    const { Var: of } = access.left as { readonly Var?: unknown };
    if (typeof of === "string") uses.add(`${of}.${String(access.attr)}`);
    else walk(access.left, uses);
    return;
  }
  for (const [key, child] of Object.entries(node)) {
    const names =
      key === "contains" || key === "containsAny" || key === "containsAll" ? askedNames(child) : null;
    if (names === null) walk(child, uses);
    else for (const name of names) uses.add(name);
  }
}

/** `context.signals.contains("deploy")` as `signals=deploy`; null: it is something else. */
function askedNames(child: unknown): readonly string[] | null {
  if (typeof child !== "object" || child === null || !("left" in child) || !("right" in child)) return null;
  const [left, right] = [child.left as Expr, child.right as Expr];
  const set = (["signals", "labels"] as const).find((one) => isAttribute(left, "context", one));
  if (set === undefined) return null;
  const texts = ("Set" in right ? (right.Set as readonly Expr[]) : [right]).map((one) =>
    "Value" in one ? one.Value : null,
  );
  return texts.every((one) => typeof one === "string") ? texts.map((text) => `${set}=${text}`) : null;
}
