import type { Constraints, GateRequest, Json, JsonObject } from "../../schemas/gate.ts";
import { canonicalDigest } from "../platform/canonical-json.ts";
import type { Operand, RealPath } from "./classified.ts";
import type { ParsedCommand } from "./shell/parsed-command.ts";

/** The frozen action: what was judged and nothing else may be done with the right that comes of it. */
export interface Plan {
  readonly tool: string;
  readonly action: string;
  readonly arguments: JsonObject;
  readonly working_directory: string | null;
  readonly environment: string;
  readonly resource: string | null;
  /** The shell that the command is for, when it is no kin of bash: the same text does something else in it. */
  readonly shell?: string;
  /** Files whose content would run, by path: another content is another plan. */
  readonly operands: readonly Operand[];
  /** Where symbolic links lead, where the gate can look: a link that leads elsewhere is another plan. */
  readonly links?: readonly RealPath[];
  readonly constraints: Constraints;
}

/** What a plan takes from a classified request. */
interface PlanSource {
  readonly entry: { readonly volatile: readonly string[] } | null;
  readonly action: string;
  readonly resource: string | null;
  readonly command?: ParsedCommand | null;
  readonly links?: readonly RealPath[];
}

/** What a plan takes from elsewhere. */
export interface PlanParts {
  readonly environment: string;
  readonly operands: readonly Operand[];
  readonly constraints: Constraints;
}

/**
 * The plan of a request. Volatile fields are no part of it: those that the catalogue lists for the tool, and no others.
 * INVARIANT: a working folder, a sandbox flag and an unlisted description change the digest (services/gate/plan.test.ts).
 */
export function toPlan(request: GateRequest, source: PlanSource, parts: PlanParts): Plan {
  const volatile = new Set(source.entry?.volatile ?? []);
  const kept = Object.entries(request.input).filter(([field]) => !volatile.has(field));
  const foreign = source.command?.opaque.find(
    (one) => one.kind === "foreign_shell" && one.program !== undefined,
  );
  const links = source.links ?? [];
  return {
    tool: request.tool,
    action: source.action,
    arguments: Object.fromEntries(kept),
    working_directory: request.working_directory ?? null,
    environment: parts.environment,
    resource: source.resource,
    ...(foreign?.program === undefined ? {} : { shell: foreign.program }),
    operands: [...parts.operands].sort((left, right) => (left.path < right.path ? -1 : 1)),
    ...(links.length === 0 ? {} : { links }),
    constraints: parts.constraints,
  };
}

/** `sha256:` and hex over the plan's RFC 8785 form; null when the input has no such form. */
export function planDigest(plan: Plan): string | null {
  return digestOf(plan as unknown as Json);
}

/**
 * The digest of what is wanted, whatever the files, the links and the limits are at the moment: approvals, revocations and the
 * identity of a call are found by it. Null when the input has no canonical form.
 */
export function intentDigest(plan: Plan): string | null {
  const { operands: _operands, links: _links, constraints: _constraints, ...intent } = plan;
  return digestOf(intent);
}

function digestOf(value: Json): string | null {
  try {
    return canonicalDigest(value);
  } catch (error) {
    // Half a surrogate pair, or nested too deep: the request is denied as unreadable, and has no plan.
    if (error instanceof TypeError) return null;
    throw error;
  }
}
