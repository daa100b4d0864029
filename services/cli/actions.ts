import type { Report } from "./report.ts";
import type { Screen } from "./screen.ts";

/** Settings that every command takes. */
export interface Common {
  readonly screen: Screen;
  /** Aborted by Ctrl-C or SIGTERM; long commands end in good order. */
  readonly signal: AbortSignal;
  /** Name of the local stack below `.fabric/`. */
  readonly stack: string;
}

/** What the commands do; the composition root hands these in, so that the command line knows no other room. */
export interface Actions {
  up(common: Common, options: { detach: boolean }): Promise<Report>;
  down(common: Common, options: { wipe: boolean }): Promise<Report>;
  status(common: Common): Promise<Report>;
  demo(common: Common, options: { once: boolean }): Promise<Report>;
  serve(common: Common, options: { roles: readonly string[] }): Promise<Report>;
  configCheck(common: Common): Promise<Report>;
  schemaList(common: Common): Promise<Report>;
  schemaShow(common: Common, options: { type: string }): Promise<Report>;
  schemaCheck(common: Common): Promise<Report>;
  schemaGenerate(common: Common, options: { check: boolean; accept: boolean }): Promise<Report>;
  schemaRegister(common: Common): Promise<Report>;
  topicsPlan(common: Common): Promise<Report>;
  topicsApply(common: Common): Promise<Report>;
  topicsDrift(common: Common): Promise<Report>;
  decide(common: Common, options: { bundle: string | undefined; request: string }): Promise<Report>;
  tail(
    common: Common,
    options: { types: readonly string[]; fromBeginning: boolean; limit: number | undefined },
  ): Promise<Report>;
  trace(common: Common, options: { id: string }): Promise<Report>;
  auditVerify(common: Common, options: { tenant: string | undefined }): Promise<Report>;
  auditWho(common: Common, options: { toolCallId: string; tenant: string | undefined }): Promise<Report>;
  tokensIssue(
    common: Common,
    options: { role: string; tenant: string; subject: string; ttl: number },
  ): Promise<Report>;
}
