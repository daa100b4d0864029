import { posix } from "node:path";
import type { Constraints, ReasonCode } from "../../../schemas/gate.ts";
import type { Verdict } from "../policy/policy.ts";

/** One decision out of many verdicts. */
export interface Merged {
  readonly decision: Verdict["decision"];
  readonly reason: ReasonCode;
  readonly message: string;
  /** The rule whose reason leads; null: nobody spoke. */
  readonly leadRule: string | null;
}

/** Strictest first. */
export const decisionOrder = ["deny", "defer", "require_approval", "allow"] as const;

/**
 * One decision out of all verdicts: deny > defer > require_approval > allow; nobody speaks: deny. Among equal verdicts
 * an absolute deny leads, then priority, then the rule's id.
 * INVARIANT: the order of verdicts does not matter and no added verdict overturns a deny
 * (test/property/gate-decide.test.ts).
 */
export function mergeVerdicts(verdicts: readonly Verdict[]): Merged {
  let lead: Verdict | null = null;
  for (const one of verdicts) if (lead === null || compareLead(one, lead) < 0) lead = one;
  return lead === null
    ? { decision: "deny", reason: "NO_RULE_SPOKE", message: "no rule allows this", leadRule: null }
    : { decision: lead.decision, reason: lead.reason, message: lead.message, leadRule: lead.rule };
}

/** Less than zero: `left` leads. What comes after the rule's id only makes equal keys equal verdicts. */
function compareLead(left: Verdict, right: Verdict): number {
  return (
    decisionOrder.indexOf(left.decision) - decisionOrder.indexOf(right.decision) ||
    Number(right.isAbsolute === true) - Number(left.isAbsolute === true) ||
    right.priority - left.priority ||
    compareText(left.rule, right.rule) ||
    compareText(left.reason, right.reason) ||
    compareText(left.message, right.message)
  );
}

/** By code units: the same on every machine. */
export function compareText(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

const networkOrder = ["none", "listed", "any"] as const;

/**
 * The most restrictive of each limit. Paths are beginnings of paths: what is left is what every list that names some
 * allows, so that `/a/b` and `/a` leave `/a/b`.
 */
export function mergeConstraints(all: readonly Constraints[]): Constraints {
  const network = networkOrder.find((name) => all.some((one) => one.network === name));
  const seconds = least(all.map((one) => one.max_runtime_seconds));
  const calls = least(all.map((one) => one.max_calls));
  const [first, ...others] = all.flatMap((one) => (one.paths === undefined ? [] : [toRoots(one.paths)]));
  return {
    ...(network === undefined ? {} : { network }),
    ...(seconds === undefined ? {} : { max_runtime_seconds: seconds }),
    ...(first === undefined ? {} : { paths: others.reduce(intersectRoots, first) }),
    ...(calls === undefined ? {} : { max_calls: calls }),
  };
}

function least(values: readonly (number | undefined)[]): number | undefined {
  const given = values.filter((one) => one !== undefined);
  return given.length === 0 ? undefined : Math.min(...given);
}

/** A list without those that lie in others of it, sorted; `..` is resolved, so that it leads out of no list. */
function toRoots(paths: readonly string[]): string[] {
  const plain = paths.filter((path) => path !== "").map(toPlainPath);
  const roots = [...new Set(plain)].filter(
    (path) => !plain.some((other) => other !== path && liesIn(path, other)),
  );
  return roots.sort();
}

function toPlainPath(path: string): string {
  const plain = posix.normalize(path);
  return plain.length > 1 && plain.endsWith("/") ? plain.slice(0, -1) : plain;
}

function intersectRoots(left: readonly string[], right: readonly string[]): string[] {
  return toRoots([
    ...left.filter((path) => right.some((other) => liesIn(path, other))),
    ...right.filter((path) => left.some((other) => liesIn(path, other))),
  ]);
}

/** Whether a path is a folder or lies in it; both are plain. */
function liesIn(path: string, folder: string): boolean {
  if (path === folder) return true;
  if (folder === ".") return !path.startsWith("/") && !leadsOut(path);
  const inside = folder === "/" ? "/" : `${folder}/`;
  return path.startsWith(inside) && !leadsOut(path.slice(inside.length));
}

function leadsOut(path: string): boolean {
  return path === ".." || path.startsWith("../");
}
