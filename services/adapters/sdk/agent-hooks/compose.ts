import { HandlerTimeout, withinTime } from "../registry/run-handler.ts";
import { pointOf } from "./context.ts";
import type { Consultation } from "./consult.ts";
import type { AgentContext, Composition, Interceptor, Verdict } from "./interception.ts";
import { HostFault, toHostDeny } from "./interception.ts";
import { applyTransform } from "./transform.ts";
import { isLiftable, readVerdict, withUnions } from "./verdict.ts";

export interface ComposeOptions {
  readonly composition: Composition;
  /** False: verdicts are recorded, nothing is changed and nobody is asked. */
  readonly enforces: boolean;
  readonly timeoutMs: number;
  /** Null: there is nobody to ask. */
  readonly consult: ((verdict: Verdict, context: AgentContext) => Promise<Consultation>) | null;
}

/** What all interceptors of one emission came to. */
export interface Composed {
  readonly combined: Verdict;
  /** As transformed. */
  readonly context: AgentContext;
  readonly decidedBy: number | null;
  readonly verdicts: readonly Verdict[];
  readonly isTruncated: boolean;
  readonly resolvedBy: "approval" | "rejection" | null;
}

/** Lets interceptors speak in the order of registration, each on what the ones before it made of the target. */
export async function compose(
  interceptors: readonly Interceptor[],
  given: AgentContext,
  options: ComposeOptions,
): Promise<Composed> {
  const { composition, enforces } = options;
  const runsAll = composition.profile === "sequential/run_all";
  const mayConsult = enforces && pointOf(given) !== "agent_shutdown" ? options.consult : null;
  let context = given;
  const verdicts: Verdict[] = [];
  /** Verdicts whose warnings and labels count: those returned, and a person's. */
  const pool: Verdict[] = [];
  let resolvedBy: Composed["resolvedBy"] = null;
  let permit: { readonly verdict: Verdict; readonly index: number } | null = null;

  const end = (combined: Verdict, decidedBy: number | null): Composed => ({
    ...{ combined: withUnions(combined, pool), context, decidedBy, verdicts, resolvedBy },
    isTruncated: verdicts.length < interceptors.length,
  });
  /** Null: it is in force. */
  const take = (verdict: Verdict): Verdict | null => {
    if (verdict.transform === undefined) return null;
    try {
      const changed = applyTransform(context, verdict.transform);
      if (enforces) context = changed;
      return null;
    } catch (error) {
      if (!(error instanceof HostFault)) throw error;
      return toHostDeny(error.reason, error.message);
    }
  };

  for (const [index, interceptor] of interceptors.entries()) {
    const verdict = await ask(interceptor, context, options.timeoutMs);
    verdicts.push(verdict);
    pool.push(verdict);
    if (verdict.decision !== "deny") {
      const failed = take(verdict);
      if (failed !== null) return end(failed, null);
      if (verdict.decision === "transform") permit = { verdict, index };
      continue;
    }
    if (runsAll) continue;
    if (!isLiftable(verdict) || mayConsult === null) return end(verdict, index);
    const consultation = await mayConsult(verdict, context);
    if ("stands" in consultation) {
      resolvedBy = "rejection";
      return end(consultation.stands, index);
    }
    resolvedBy = "approval";
    pool.push(consultation.lifted);
    const failed = take(consultation.lifted);
    if (failed !== null) return end(failed, null);
    if (composition.on_approval === "stop") return end(consultation.lifted, index);
    if (permit === null || consultation.lifted.decision === "transform") {
      permit = { verdict: consultation.lifted, index };
    }
  }

  const denies = verdicts
    .map((verdict, index) => ({ verdict, index }))
    .filter((one) => one.verdict.decision === "deny");
  // A plain no is graver than one that may be lifted; of equal ones the first counts.
  const gravest = runsAll ? (denies.find((one) => !isLiftable(one.verdict)) ?? denies[0]) : undefined;
  if (gravest === undefined) {
    return permit === null
      ? end({ decision: "allow", ...reasonOf(verdicts) }, null)
      : end(permit.verdict, permit.index);
  }
  if (!isLiftable(gravest.verdict) || mayConsult === null) return end(gravest.verdict, gravest.index);
  const consultation = await mayConsult(gravest.verdict, context);
  if ("stands" in consultation) {
    resolvedBy = "rejection";
    return end(consultation.stands, gravest.index);
  }
  resolvedBy = "approval";
  pool.push(consultation.lifted);
  const failed = take(consultation.lifted);
  return failed === null ? end(consultation.lifted, gravest.index) : end(failed, null);
}

/** A lone allow keeps what it says. */
function reasonOf(verdicts: readonly Verdict[]): Pick<Verdict, "reason" | "message"> {
  const [only, ...others] = verdicts;
  if (only === undefined || others.length > 0) return {};
  const { reason, message } = only;
  return { ...(reason == null ? {} : { reason }), ...(message == null ? {} : { message }) };
}

/** An interceptor that fails has denied, in its own place. */
async function ask(interceptor: Interceptor, context: AgentContext, timeoutMs: number): Promise<Verdict> {
  // A copy of its own: whatever it does to it, nobody else sees it.
  const copy = structuredClone(context);
  let returned: unknown;
  try {
    returned = await withinTime(timeoutMs, () => interceptor.intercept(copy));
  } catch (error) {
    return error instanceof HandlerTimeout
      ? toHostDeny("host_error:interceptor_timeout", "an interceptor did not answer in time")
      : toHostDeny("host_error:interceptor_failed", "an interceptor failed");
  }
  try {
    return readVerdict(returned);
  } catch (error) {
    if (!(error instanceof HostFault)) throw error;
    return toHostDeny(error.reason, error.message);
  }
}
