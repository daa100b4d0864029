import { isJsonObject, toFrozenJson, toFrozenObject } from "../json.ts";
import { withinTime } from "../registry/run-handler.ts";
import { identify, pointOf } from "./context.ts";
import type { AgentContext, ApprovalResolver, IdentityProvider, Verdict } from "./interception.ts";
import { HostFault, toHostDeny } from "./interception.ts";
import { readVerdict } from "./verdict.ts";

/** What a resolver's word amounts to: a permit that takes the deny's place, or the deny that stands. */
export type Consultation = { readonly lifted: Verdict } | { readonly stands: Verdict };

export interface ConsultOptions {
  readonly resolver: ApprovalResolver;
  readonly provider: IdentityProvider;
  /** Takes out of a context what the resolver is not to see. */
  readonly redact?: (context: AgentContext) => AgentContext;
  readonly timeoutMs: number;
}

/**
 * Asks the resolver about a liftable deny, bound to exactly what it is shown. Checks come in the order of the contract, so
 * that every host gives the same reason for the same broken resolution.
 */
export async function consult(
  verdict: Verdict,
  context: AgentContext,
  options: ConsultOptions,
): Promise<Consultation> {
  const { resolver, provider, redact, timeoutMs } = options;
  let identity: string | null;
  let resolution: unknown;
  try {
    const shown = redact === undefined ? context : toFrozenObject(redact(context));
    identity = identify(provider, shown);
    const request = {
      context_identity: identity,
      interception_point: pointOf(context),
      verdict,
      context: shown,
    };
    resolution = toFrozenJson(await withinTime(timeoutMs, () => resolver.resolve(request)));
  } catch {
    return { stands: toHostDeny("host_error:approval_resolver_failed", "the approval resolver failed") };
  }
  const given = isJsonObject(resolution) ? resolution : {};
  if ((given["context_identity"] ?? null) !== identity) {
    return {
      stands: toHostDeny("host_error:approval_identity_mismatch", "the resolution is for another content"),
    };
  }
  const { outcome, verdict: said } = given;
  const isKnown = outcome === "approve" || outcome === "reject" || outcome === "unresolved";
  if (!isKnown || (said === undefined) !== (outcome === "unresolved")) {
    return { stands: toHostDeny("host_error:approval_resolver_failed", "the resolution is none") };
  }
  if (outcome === "unresolved") return { stands: toHostDeny("host_error:approval_unresolved") };
  let read: Verdict;
  try {
    read = readVerdict(said);
  } catch (error) {
    return { stands: toHostDeny(error instanceof HostFault ? error.reason : "host_error:verdict_invalid") };
  }
  if ((outcome === "approve") !== (read.decision !== "deny"))
    return { stands: toHostDeny("host_error:verdict_invalid") };
  return outcome === "approve" ? { lifted: read } : { stands: read };
}
