import { setTimeout as sleep } from "node:timers/promises";
import { Fault } from "../../../schemas/faults.ts";
import type { Clock } from "../../platform/clock.ts";
import type { EventEncoder } from "../../platform/outbox.ts";
import { appendOutbox, notifyOutbox, toOutboxRows } from "../../platform/outbox.ts";
import type { Database, Tx } from "../../platform/postgres.ts";
import { toActivationEvent } from "./activation-event.ts";
import type { BundleFiles, BundleJudge, CheckedBundle } from "./bundle-judge.ts";
import type { RightsEnder } from "./end-denied-rights.ts";
import { previousRevision } from "./previous-revision.ts";
import type { ActivationRow } from "./revision-rows.ts";
import {
  findRevisions,
  insertActivation,
  insertRevision,
  loadActivations,
  loadRevision,
} from "./revision-rows.ts";

export interface ActivationContext {
  /** As role fabric_gate. */
  readonly database: Database;
  readonly codec: EventEncoder;
  readonly clock: Clock;
  readonly environment: string;
  readonly judge: BundleJudge;
  /** Ends rights of plans that a new policy denies. */
  readonly rights?: RightsEnder;
}

/** Who activates, and why. */
export interface ActivationWish {
  readonly by: string;
  readonly note: string | null;
}

/** What came of an activation. */
export interface Activated {
  readonly revision: string;
  readonly name: string;
  readonly digest: string;
  readonly previous_revision: string | null;
  readonly activated_at: string;
  readonly activated_by: string;
  /** False: it was the active one already, and nothing was written. */
  readonly changed: boolean;
  readonly cases: number;
  /** Rights that ended because the new policy denies their plans. */
  readonly revoked_capabilities: number;
}

/** 'poli' in ASCII: activations of a deployment go one after the other. */
const activationLock = 1_886_350_441;
const lockWaitMs = 10_000;
const lockPollMs = 50;
/** Steps that a rollback looks back over. */
const historyMax = 1_000;

/** Checks a bundle, stores it, and makes it the policy of every gate. */
export async function activateBundle(
  context: ActivationContext,
  bundle: BundleFiles,
  wish: ActivationWish,
): Promise<Activated> {
  const checked = await context.judge.check(bundle);
  return written(await runActivation(context, "activate", wish, () => Promise.resolve({ bundle, checked })));
}

/** The same with a revision that is stored already. */
export async function activateStored(
  context: ActivationContext,
  text: string,
  wish: ActivationWish,
): Promise<Activated> {
  const [revision, another] = await findRevisions(context.database, text);
  if (revision === undefined)
    throw new Fault("POLICY_UNKNOWN", `\`${text}\`; \`fabric policy list\` shows them`);
  if (another !== undefined && revision !== text) {
    throw new Fault("POLICY_UNKNOWN", `\`${text}\` is the beginning of several; give more of it`);
  }
  const known = await checkStored(context, revision);
  return written(await runActivation(context, "activate", wish, () => Promise.resolve(known)));
}

/** Activates the revision before the active one. */
export async function rollback(context: ActivationContext, wish: ActivationWish): Promise<Activated> {
  const done = await runActivation(context, "rollback", wish, async (tx) => {
    const revision = previousRevision(await loadActivations(tx, historyMax));
    if (revision === null) {
      throw new Fault("POLICY_UNKNOWN", "there is no revision before the active one to go back to");
    }
    return checkStored(context, revision);
  });
  return written(done);
}

/** Activates a bundle only when nothing was ever activated; null when something was. */
export async function bootstrap(context: ActivationContext, bundle: BundleFiles): Promise<Activated | null> {
  const checked = await context.judge.check(bundle);
  const wish = { by: "bootstrap", note: "the configured folder, since nothing was activated yet" };
  return runActivation(context, "bootstrap", wish, (_tx, head) =>
    Promise.resolve(head === undefined ? { bundle, checked } : null),
  );
}

interface Chosen {
  readonly bundle: BundleFiles;
  readonly checked: CheckedBundle;
}

async function checkStored({ database, judge }: ActivationContext, revision: string): Promise<Chosen> {
  const stored = await loadRevision(database, revision);
  if (stored === null) throw new Fault("POLICY_UNKNOWN", `\`${revision}\``);
  return { bundle: stored, checked: await judge.check(stored) };
}

/**
 * One activation in one transaction: revision, activation, ended rights and event, or nothing of it.
 * INVARIANT: activations at once go one after the other, and each names the one before
 * (test/integration/policy-revisions.test.ts "serialises activations that come at once").
 */
async function runActivation(
  context: ActivationContext,
  kind: ActivationRow["kind"],
  wish: ActivationWish,
  choose: (tx: Tx, head: ActivationRow | undefined) => Promise<Chosen | null>,
): Promise<Activated | null> {
  const { database, clock } = context;
  const done = await database.transaction(async (tx) => {
    await lockActivations(tx);
    const head = (await loadActivations(tx, 1))[0];
    const chosen = await choose(tx, head);
    if (chosen === null) return null;
    const { bundle, checked } = chosen;
    const { revision, digest, name } = checked.policy;
    const nowMs = clock.nowMs();
    const stored = await insertRevision(tx, { revision, digest, name, files: bundle.files }, wish.by, nowMs);
    if (stored.revision !== revision || stored.digest !== digest) {
      throw new Fault(
        "POLICY_CONFLICT",
        `\`${name}\` has \`${stored.revision}\` already, and a stored revision never changes; raise \`revision\` in bundle.yaml`,
      );
    }
    const outcome = { revision, name, digest, cases: checked.cases };
    if (head?.revision === revision) {
      return {
        ...outcome,
        previous_revision: head.previousRevision,
        activated_at: new Date(head.activatedAtMs).toISOString(),
        activated_by: head.activatedBy,
        changed: false,
        revoked_capabilities: 0,
      };
    }
    const row = {
      revision,
      kind,
      previousRevision: head?.revision ?? null,
      activatedAtMs: nowMs,
      activatedBy: wish.by,
      note: wish.note,
    };
    const activationId = await insertActivation(tx, row);
    const ended = (await context.rights?.endWithin(tx, checked.policy)) ?? [];
    const event = toActivationEvent({ ...row, activationId }, checked.policy, context.environment);
    await appendOutbox(tx, toOutboxRows(context.codec, [event, ...ended]));
    return {
      ...outcome,
      previous_revision: row.previousRevision,
      activated_at: new Date(nowMs).toISOString(),
      activated_by: wish.by,
      changed: true,
      revoked_capabilities: ended.length,
    };
  });
  if (done?.changed === true) {
    notifyOutbox(database);
    context.rights?.endLater(done.revision);
  }
  return done;
}

function written(done: Activated | null): Activated {
  if (done === null) throw new Fault("INTERNAL", "an activation chose nothing");
  return done;
}

/** Asks again and again: a statement that waits would be ended by the gate's own statement timeout. */
async function lockActivations(tx: Tx): Promise<void> {
  for (let waitedMs = 0; ; waitedMs += lockPollMs) {
    const { rows } = await tx.query<{ locked: boolean }>("SELECT pg_try_advisory_xact_lock($1) AS locked", [
      activationLock,
    ]);
    if (rows[0]?.locked === true) return;
    if (waitedMs >= lockWaitMs)
      throw new Fault("DATABASE_CONFLICT", "another activation takes long; try again");
    await sleep(lockPollMs);
  }
}
