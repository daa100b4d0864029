import type { GateRequest, ReasonCode } from "../../schemas/gate.ts";
import type { DataClass, EffectClass } from "../../schemas/generated/types.ts";
import type { Policy, ToolEntry } from "./policy/policy.ts";
import type { Climb, ParsedCommand } from "./shell/parsed-command.ts";

/** Something that keeps the request from being understood. A finding is no error: it denies, and is recorded. */
export interface Finding {
  readonly rule: string;
  readonly reason: ReasonCode;
  readonly message: string;
}

/** A file that the call reads or writes, resolved. */
export interface TouchedPath {
  readonly path: string;
  readonly mode: "read" | "write";
}

/** A touched path that leads to another file. */
export interface RealPath {
  readonly path: string;
  readonly real: string;
}

/** A request with everything that rules may know of it. */
export interface Classified {
  readonly entry: ToolEntry | null;
  readonly effect: EffectClass;
  readonly dataClass: DataClass;
  readonly action: string;
  /** What the call acts on, as the plan names it: a command, a resolved path, an address. */
  readonly resource: string | null;
  readonly findings: readonly Finding[];
  /** Of file tools, patches and commands alike. */
  readonly touched: readonly TouchedPath[];
  /** Symbolic links among the touched paths: by path, each once. Absent: none, or nobody could look. */
  readonly links?: readonly RealPath[];
  /** Touched paths whose spelling climbs out of a name: a gate that sees the disk follows the spelling. */
  readonly climbs?: readonly Climb[];
  /** What a shell command runs; null for other tools. */
  readonly command: ParsedCommand | null;
  /** Files whose content is code that would run: resolved, sorted. */
  readonly operandPaths: readonly string[];
  /** Named facts, built in and of `signals.yaml`: sorted, each once. */
  readonly signals: readonly string[];
}

/** All of a request that classifying may look at: what is remembered by it cannot differ in anything else. */
export type AskedCall = Pick<GateRequest, "tool" | "tool_alias" | "input" | "working_directory">;

/**
 * Classifies. Deterministic and without side effect; never throws. `realPaths` are files behind symbolic links, by the
 * name that leads to them: read before, where the gate runs on the agent's own machine.
 */
export type Classify = (
  request: AskedCall,
  policy: Policy,
  realPaths?: ReadonlyMap<string, string>,
) => Classified;

/** The content of a file that a command would run, at the time of asking. */
export interface Operand {
  readonly path: string;
  /** `sha256:` and hex; null: it could not be read. */
  readonly digest: string | null;
}

/** The same classification with where links led when it was asked; none: as it is. */
export function withRealPaths(classify: Classify, realPaths?: ReadonlyMap<string, string>): Classify {
  if (realPaths === undefined || realPaths.size === 0) return classify;
  return (request, policy) => classify(request, policy, realPaths);
}
