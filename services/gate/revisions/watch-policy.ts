import { Fault } from "../../../schemas/faults.ts";
import type { Log } from "../../platform/log.ts";
import type { Metrics } from "../../platform/metrics.ts";
import type { Listener } from "../../platform/postgres.ts";
import type { Policy } from "../policy/policy.ts";
import type { ActivationContext } from "./activate.ts";
import { bootstrap } from "./activate.ts";
import type { BundleFiles } from "./bundle-judge.ts";
import { missingPolicy } from "./missing-policy.ts";
import { loadActivations, loadRevision } from "./revision-rows.ts";

export interface PolicyWatchOptions extends ActivationContext {
  readonly log: Log;
  readonly metrics: Metrics;
  /** The configured folder: activated once, when nothing ever was. Null: there is none. */
  readonly loadFolder: (() => Promise<BundleFiles>) | null;
  /** Between two looks at what is active; default 500 ms. */
  readonly pollMs?: number;
  /** Told after a swap. */
  readonly onSwap?: (policy: Policy) => void;
}

/** The state for `/readyz`: down without a policy, stale while a newer revision cannot be loaded. */
export interface PolicyState {
  readonly state: "up" | "stale" | "down";
  readonly detail: string;
}

/** The policy that this process decides by. */
export interface PolicyWatch {
  /** One reference, swapped whole: whoever decides takes it once. `missingPolicy` while there is none. */
  current(): Policy;
  state(): PolicyState;
  /** Looks now; after an activation of one's own. Never rejects. */
  refresh(): Promise<void>;
  close(): Promise<void>;
}

/** Half of the second in which every gate has to follow an activation. */
const defaultPollMs = 500;
const channel = "policy";

/**
 * Loads the active revision and follows activations. A revision that does not load leaves the one before in force; without
 * any the gate denies everything.
 * INVARIANT: a gate follows an activation without a restart, and a bad one does not take its policy away
 * (test/integration/policy-revisions.test.ts).
 */
export async function watchPolicy(options: PolicyWatchOptions): Promise<PolicyWatch> {
  const { database, judge, log, metrics } = options;
  const failures = metrics.counter(
    "fabric_gate_policy_failures_total",
    "policy revisions that did not load",
    ["cause"],
  );
  let policy = missingPolicy;
  /** The newest activation that was looked at, and whether it could be loaded. */
  let seen: { readonly activationId: bigint; readonly problem: string | null } | null = null;
  /** Why the configured folder is no policy either. */
  let folderProblem: string | null = options.loadFolder === null ? "no policy was ever activated" : null;
  let closed = false;
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> = Promise.resolve();
  metrics.gauge("fabric_gate_policy_activation", "number of the activation in force; 0: none", [], (set) =>
    set(policy === missingPolicy || seen === null ? 0 : Number(seen.activationId)),
  );
  metrics.gauge("fabric_gate_policy_stale", "1 while the newest revision does not load", [], (set) =>
    set(seen?.problem == null ? 0 : 1),
  );

  async function look(): Promise<void> {
    let head = (await loadActivations(database, 1))[0];
    if (head === undefined && folderProblem === null) {
      await activateFolder();
      head = (await loadActivations(database, 1))[0];
    }
    if (head === undefined || head.activationId === seen?.activationId) return;
    const { activationId, revision } = head;
    const stored = await loadRevision(database, revision);
    try {
      if (stored === null) throw new Fault("POLICY_UNKNOWN", revision);
      const loaded = judge.load(stored);
      if (loaded.revision !== revision || loaded.digest !== stored.digest) {
        throw new Fault("POLICY_REFUSED", `\`${revision}\` is stored with files that are not its own`);
      }
      const isFirst = seen === null;
      policy = loaded;
      seen = { activationId, problem: null };
      log.info(
        { revision, activation: activationId.toString(), by: head.activatedBy },
        "the policy is in force",
      );
      if (isFirst) await compareFolder();
      options.onSwap?.(loaded);
    } catch (error) {
      // Not asked again until the next activation: the same files would fail the same way.
      seen = { activationId, problem: messageOf(error) };
      failures.add({ cause: "revision" });
      log.error(
        { revision, kept: policy.revision, reason: messageOf(error) },
        "an activated revision does not load; the policy before stays in force",
      );
    }
  }

  async function activateFolder(): Promise<void> {
    if (options.loadFolder === null) return;
    try {
      const done = await bootstrap(options, await options.loadFolder());
      if (done !== null) log.info({ revision: done.revision }, "the configured policy is the first revision");
    } catch (error) {
      if (error instanceof Fault && error.kind === "transient") throw error;
      folderProblem = messageOf(error);
      failures.add({ cause: "folder" });
      log.error({ reason: folderProblem }, "the configured policy is refused; everything is denied");
    }
  }

  /** Someone who edits the folder and restarts the gate would wait for nothing. */
  async function compareFolder(): Promise<void> {
    try {
      const folder = options.loadFolder === null ? null : judge.load(await options.loadFolder());
      if (folder !== null && folder.name === policy.name && folder.digest !== policy.digest) {
        log.warn(
          { active: policy.revision, folder: folder.revision },
          "the configured folder is another revision than the active one; `fabric policy activate` makes it count",
        );
      }
    } catch (error) {
      log.warn(
        { reason: messageOf(error) },
        "the configured policy folder does not load; it is not in force",
      );
    }
  }

  /** One look after the other, each begun after it was asked for: it sees what was committed before. */
  function refresh(): Promise<void> {
    looking = looking.then(look).catch((error: unknown) => {
      // The policy stays: without the database nothing can be decided anyway.
      failures.add({ cause: "database" });
      log.warn({ reason: messageOf(error) }, "the active policy cannot be looked up; trying again");
    });
    return looking;
  }
  function later(): void {
    if (closed) return;
    timer = setTimeout(() => void refresh().then(later), options.pollMs ?? defaultPollMs);
    timer.unref();
  }

  await refresh();
  later();
  // Deaf is no harm: the poll is what counts.
  const listener: Listener = await database.listen(channel, () => void refresh());
  return {
    current: () => policy,
    state() {
      if (policy === missingPolicy) {
        const why = seen?.problem ?? folderProblem;
        return {
          state: "down",
          detail: why === null ? "no policy" : `no policy: ${why.split("\n")[0] ?? ""}`,
        };
      }
      if (seen?.problem != null)
        return { state: "stale", detail: `${policy.revision}; a newer revision does not load` };
      return { state: "up", detail: policy.revision };
    },
    refresh,
    async close() {
      closed = true;
      clearTimeout(timer);
      await listener.close();
      await looking;
    },
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
