import type { Report } from "./report.ts";
import type { Screen } from "./screen.ts";

/** Settings that every command takes. */
export interface Common {
  readonly screen: Screen;
  /** Aborted by Ctrl-C or SIGTERM; long commands end in good order. */
  readonly signal: AbortSignal;
  /** Name of the local stack below `.fabric/`. */
  readonly stack: string;
  /** Reads a line from the terminal without showing it; throws ROLE_MISSING where there is no terminal. */
  readonly askSecret: (prompt: string) => Promise<string>;
}

/** Which recorded decisions `simulate` and `diff --simulate` take. */
export interface Recordings {
  /** A span such as `7d`, or a time; undefined: all there are. */
  readonly since: string | undefined;
  readonly tenant: string | undefined;
  readonly limit: number | undefined;
  /** JSON lines instead of the database. */
  readonly file: string | undefined;
}

/** A command that asks the gate as a person. */
export interface AsPerson {
  readonly tokenFile: string | undefined;
}

/** What an incident is declared for; `all` wants a person of the tenant `fabric`. */
export interface HoldTarget {
  readonly all: boolean;
  /** True: the caller's own tenant. */
  readonly tenant: string | boolean | undefined;
  readonly correlation: string | undefined;
  readonly session: string | undefined;
  readonly agent: string | undefined;
  readonly user: string | undefined;
  readonly tool: string | undefined;
}

export type LetterKind = "dead" | "quarantine";

/** Which letters a command is about; undefined: it does not matter. */
export interface LetterSelection {
  readonly kind: LetterKind;
  readonly processor: string | undefined;
  readonly topic: string | undefined;
  readonly code: string | undefined;
  readonly tenant: string | undefined;
  readonly olderThanMs: number | undefined;
  readonly newerThanMs: number | undefined;
  readonly ids: readonly string[] | undefined;
}

/** What a person does with an item of the queue. */
export type TakeoverDeed =
  | { readonly kind: "claim" }
  | { readonly kind: "note"; readonly note: string }
  | { readonly kind: "reassign"; readonly to: string }
  | {
      readonly kind: "resolve";
      readonly outcome: string;
      readonly note: string | undefined;
      readonly proposal: string | undefined;
    };

/** Which run of which processor a shadow is. */
export interface ReplayStart {
  readonly processor: string;
  readonly from: string | undefined;
  readonly to: string | undefined;
  /** A file of a new version. */
  readonly version: string | undefined;
  /** Migrations of the new version. */
  readonly migrations: string | undefined;
  readonly shadow: string;
  readonly against: "live" | "baseline" | undefined;
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
  decide(
    common: Common,
    options: {
      bundle: string | undefined;
      /** Many requests; undefined: one on stdin. */
      file: string | undefined;
      environment: string | undefined;
      readRequest: () => Promise<string>;
    },
  ): Promise<Report>;
  policyCheck(common: Common, options: { dir: string }): Promise<Report>;
  policyTest(common: Common, options: { dir: string }): Promise<Report>;
  policyActivate(
    common: Common,
    options: { bundle: string; note: string | undefined } & AsPerson,
  ): Promise<Report>;
  policyRollback(common: Common, options: { note: string | undefined } & AsPerson): Promise<Report>;
  policyList(common: Common, options: { limit: number }): Promise<Report>;
  policyShow(common: Common, options: { revision: string; file: string | undefined }): Promise<Report>;
  policySimulate(
    common: Common,
    options: { bundle: string; details: number; recordings: Recordings },
  ): Promise<Report>;
  policyExplain(
    common: Common,
    options: { id: string | undefined; bundle: string | undefined; request: string | undefined },
  ): Promise<Report>;
  policyDiff(
    common: Common,
    options: { before: string; after: string; simulate: boolean; recordings: Recordings },
  ): Promise<Report>;
  approvalsList(
    common: Common,
    options: { state: string | undefined; limit: number } & AsPerson,
  ): Promise<Report>;
  approvalsShow(common: Common, options: { id: string } & AsPerson): Promise<Report>;
  approvalsDecide(
    common: Common,
    options: {
      id: string;
      approve: boolean;
      note: string | undefined;
      digest: string | undefined;
    } & AsPerson,
  ): Promise<Report>;
  capabilitiesList(
    common: Common,
    options: { state: string | undefined; session: string | undefined; limit: number } & AsPerson,
  ): Promise<Report>;
  capabilitiesRevoke(
    common: Common,
    options: {
      id: string | undefined;
      plan: string | undefined;
      session: string | undefined;
      subject: string | undefined;
      reason: string;
    } & AsPerson,
  ): Promise<Report>;
  incidentsList(common: Common, options: { all: boolean; limit: number } & AsPerson): Promise<Report>;
  incidentsDeclare(
    common: Common,
    options: {
      target: HoldTarget;
      kind: string | undefined;
      reason: string;
    } & AsPerson,
  ): Promise<Report>;
  incidentsLift(common: Common, options: { id: string; reason: string } & AsPerson): Promise<Report>;
  breakerStatus(common: Common, options: { all: boolean; limit: number } & AsPerson): Promise<Report>;
  breakerReset(common: Common, options: { id: string; reason: string } & AsPerson): Promise<Report>;
  takeoverList(
    common: Common,
    options: { state: string | undefined; limit: number } & AsPerson,
  ): Promise<Report>;
  takeoverShow(common: Common, options: { id: string } & AsPerson): Promise<Report>;
  takeoverDo(common: Common, options: { id: string; deed: TakeoverDeed } & AsPerson): Promise<Report>;
  episodeLabel(
    common: Common,
    options: {
      id: string;
      label: string;
      score: number | undefined;
      note: string | undefined;
    } & AsPerson,
  ): Promise<Report>;
  episodesErase(common: Common, options: { tenant: string; reason: string } & AsPerson): Promise<Report>;
  lettersList(
    common: Common,
    options: {
      selection: LetterSelection;
      state: string | undefined;
      /** Single letters instead of causes. */
      each: boolean;
      limit: number;
    } & AsPerson,
  ): Promise<Report>;
  lettersShow(common: Common, options: { id: string } & AsPerson): Promise<Report>;
  lettersRedrive(
    common: Common,
    options: {
      selection: LetterSelection;
      dryRun: boolean;
      perSecond: number;
      beyondLimit: boolean;
      detach: boolean;
      reason: string;
    } & AsPerson,
  ): Promise<Report>;
  lettersArchive(
    common: Common,
    options: { selection: LetterSelection; dryRun: boolean; reason: string } & AsPerson,
  ): Promise<Report>;
  redrivesList(
    common: Common,
    options: { ids: readonly string[]; limit: number } & AsPerson,
  ): Promise<Report>;
  redrivesStop(
    common: Common,
    options: {
      /** None: all that are open. */
      ids: readonly string[];
      /** Its letters wait for nothing again. */
      givesUp: boolean;
      reason: string;
    } & AsPerson,
  ): Promise<Report>;
  redrivesResume(
    common: Common,
    options: { ids: readonly string[]; reason: string } & AsPerson,
  ): Promise<Report>;
  gapsList(common: Common, options: AsPerson): Promise<Report>;
  gapsResume(
    common: Common,
    options: {
      consumer: string;
      topic: string;
      partition: number;
      from: "log_start" | "log_end" | number;
      reason: string;
    } & AsPerson,
  ): Promise<Report>;
  emissionsList(common: Common, options: AsPerson): Promise<Report>;
  emissionsEnd(
    common: Common,
    options: { consumer: string; choice: "release" | "drop"; reason: string } & AsPerson,
  ): Promise<Report>;
  parkedList(common: Common, options: { archived: boolean; limit: number } & AsPerson): Promise<Report>;
  parkedEnd(
    common: Common,
    options: { ids: readonly string[]; choice: "retry" | "archive"; reason: string } & AsPerson,
  ): Promise<Report>;
  evalList(
    common: Common,
    options: { tenant: string | undefined; state: string | undefined; limit: number },
  ): Promise<Report>;
  evalExport(
    common: Common,
    options: {
      out: string;
      format: string;
      tenant: string | undefined;
      until: string | undefined;
      state: string | undefined;
      onlyLabelled: boolean;
      split: string | undefined;
      shares: string;
      seed: string;
    },
  ): Promise<Report>;
  evalMetrics(
    common: Common,
    options: {
      tenant: string | undefined;
      until: string | undefined;
      expected: string | undefined;
      file: string | undefined;
    },
  ): Promise<Report>;
  costReport(
    common: Common,
    options: {
      by: string;
      period: string | undefined;
      tenant: string | undefined;
      limit: number;
    },
  ): Promise<Report>;
  costBudgets(common: Common, options: { tenant: string | undefined }): Promise<Report>;
  costCheck(common: Common): Promise<Report>;
  costCorrect(
    common: Common,
    options: {
      event: string | undefined;
      account: string | undefined;
      amount: string;
      cause: string;
      id: string | undefined;
    } & AsPerson,
  ): Promise<Report>;
  costClose(
    common: Common,
    options: {
      period: string;
      note: string | undefined;
      dryRun: boolean;
      tenant: string | undefined;
    } & AsPerson,
  ): Promise<Report>;
  costMonths(common: Common, options: { tenant: string | undefined; limit: number }): Promise<Report>;
  costReprice(
    common: Common,
    options: { tenant: string | undefined; limit: number; dryRun: boolean } & AsPerson,
  ): Promise<Report>;
  sqlQuestions(common: Common): Promise<Report>;
  sqlAsk(
    common: Common,
    options: {
      name: string;
      tenant: string | undefined;
      parameters: Readonly<Record<string, string>>;
      printOnly: boolean;
    },
  ): Promise<Report>;
  sqlCatalog(
    common: Common,
    options: { check: string | undefined; write: string | undefined },
  ): Promise<Report>;
  analystsGrant(common: Common, options: { role: string; tenant: string }): Promise<Report>;
  analystsRevoke(common: Common, options: { role: string; tenant: string | undefined }): Promise<Report>;
  analystsList(common: Common): Promise<Report>;
  replayStart(common: Common, options: ReplayStart & AsPerson): Promise<Report>;
  replayList(common: Common): Promise<Report>;
  replayDiff(common: Common, options: { name: string; samples: number }): Promise<Report>;
  replayAccept(common: Common, options: { name: string; reason: string } & AsPerson): Promise<Report>;
  replayPromote(common: Common, options: { name: string; withoutOlder: boolean } & AsPerson): Promise<Report>;
  replayDrop(common: Common, options: { name: string } & AsPerson): Promise<Report>;
  replayCanary(
    common: Common,
    options: {
      processor: string;
      version: string;
      migrations: string | undefined;
      last: string;
      samples: number;
      keep: boolean;
    } & AsPerson,
  ): Promise<Report>;
  replayAdapter(
    common: Common,
    options: { runtime: string; version: string; from: string | undefined; samples: number } & AsPerson,
  ): Promise<Report>;
  /** The process of one run, for `replayStart`. */
  replayRun(common: Common): Promise<Report>;
  benchSeed(
    common: Common,
    options: {
      months: number;
      sessions: number;
      seed: number;
      prefix: string;
      until: string | undefined;
      direct: boolean;
      only: readonly string[] | undefined;
    },
  ): Promise<Report>;
  newProcessor(common: Common, options: { name: string; topics: readonly string[] }): Promise<Report>;
  tail(
    common: Common,
    options: { types: readonly string[]; fromBeginning: boolean; limit: number | undefined },
  ): Promise<Report>;
  trace(common: Common, options: { id: string }): Promise<Report>;
  auditVerify(common: Common, options: { tenant: string | undefined }): Promise<Report>;
  auditWho(common: Common, options: { toolCallId: string; tenant: string | undefined }): Promise<Report>;
  tokensIssue(
    common: Common,
    options: {
      role: string;
      tenant: string;
      subject: string | undefined;
      ttl: number;
      /** A file that the token goes to; undefined: stdout. */
      out: string | undefined;
    },
  ): Promise<Report>;
  runtimeInstall(
    common: Common,
    options: {
      runtime: string;
      form: string | undefined;
      gateUrl: string | undefined;
      tokenFile: string | undefined;
      trust: boolean;
      /** How long a call waits for its approval; 0: it gets a ticket at once. */
      waitSeconds: number;
      dryRun: boolean;
      program: string | undefined;
      home: string | undefined;
    },
  ): Promise<Report>;
  runtimeUninstall(
    common: Common,
    options: { runtime: string; dryRun: boolean; home: string | undefined },
  ): Promise<Report>;
  runtimeHook(
    common: Common,
    options: { runtime: string; mode: "gate" | "observe"; home: string | undefined },
  ): Promise<Report>;
  runtimeDoctor(
    common: Common,
    options: {
      runtime: string;
      canaries: boolean;
      /** How far back sessions are compared with the gate's, in milliseconds. */
      sinceMs: number;
      program: string | undefined;
      home: string | undefined;
    },
  ): Promise<Report>;
  runtimes(common: Common, options: { runtime: string | undefined }): Promise<Report>;
  /** Stands between a client on standard input and output and Codex's App Server, until one of them ends. */
  appServer(
    common: Common,
    options: {
      /** The server's command line; empty with `connect`. */
      argv: readonly string[];
      sandbox: "keep" | "none";
      /** A WebSocket that clients come to, in place of standard input and output. */
      listen: string | undefined;
      clientTokenFile: string | undefined;
      /** A WebSocket that the server listens on, in place of a command line. */
      connect: string | undefined;
      connectTokenFile: string | undefined;
      gateUrl: string | undefined;
      tokenFile: string | undefined;
    },
  ): Promise<Report>;
}
