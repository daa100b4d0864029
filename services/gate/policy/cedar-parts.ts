import type { CedarQuestion } from "./policy.ts";

/** A question without what no policy reads: equal parts, equal answers, whoever asks. */
export interface AskedParts {
  readonly tenant: string;
  readonly user: string;
  readonly agent: string;
  readonly runtime: string;
  readonly tool: string;
  readonly action: string;
  readonly effect: string;
  readonly dataClass: string;
  readonly environment: string;
  readonly signals: readonly string[];
  readonly labels: readonly string[];
}

/** Reduces questions to what policies with these uses read. */
export function createReducer(uses: ReadonlySet<string>): (question: CedarQuestion) => AskedParts {
  const reads = (variable: string, attribute: string): boolean =>
    uses.has(variable) || uses.has(`${variable}.${attribute}`);
  const readsAny = (attribute: string): boolean =>
    ["context", "principal", "resource"].some((variable) => reads(variable, attribute));
  const isRead = {
    tenant: readsAny("tenant"),
    user: readsAny("user"),
    agent: uses.has("principal"),
    runtime: readsAny("runtime"),
    tool: readsAny("tool"),
    effect: readsAny("effect"),
    dataClass: readsAny("data_class"),
    environment: readsAny("environment"),
  };
  const members = (set: "signals" | "labels", names: readonly string[]): readonly string[] =>
    reads("context", set) ? names : names.filter((name) => uses.has(`${set}=${name}`));
  return (one) => ({
    tenant: isRead.tenant ? one.tenant : "",
    user: isRead.user ? one.user : "",
    agent: isRead.agent ? one.agent : "",
    runtime: isRead.runtime ? one.runtime : "",
    tool: isRead.tool ? one.tool : "",
    action: one.action,
    effect: isRead.effect ? one.effect : "",
    dataClass: isRead.dataClass ? one.dataClass : "",
    environment: isRead.environment ? one.environment : "",
    signals: members("signals", one.signals),
    labels: members("labels", one.labels),
  });
}

/** The attributes of the context that policies with these uses read. */
export function toContextNames(uses: ReadonlySet<string>): ReadonlySet<string> {
  const all = ["signals", "labels", "tool", "effect", "runtime", "environment", "tenant", "user"];
  const isNamed = (name: string): boolean =>
    uses.has("context") || uses.has(`context.${name}`) || [...uses].some((one) => one.startsWith(`${name}=`));
  return new Set(all.filter(isNamed));
}
