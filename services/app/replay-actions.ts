import { randomBytes } from "node:crypto";
import { Fault } from "../../schemas/faults.ts";
import type { Actions, Common } from "../cli/actions.ts";
import type { Report } from "../cli/report.ts";
import type { Config } from "../platform/config.ts";
import type { ShadowDifference } from "../replay/compare-shadow.ts";
import { compareShadow, toStored } from "../replay/compare-shadow.ts";
import { unfenceLive } from "../replay/live-fence.ts";
import { toSpanMs } from "../replay/log-ranges.ts";
import { assertPromotable, promote } from "../replay/promote.ts";
import { dropRun } from "../replay/run-schemas.ts";
import type { Actor } from "../replay/shadow-rows.ts";
import {
  deleteShadow,
  loadShadow,
  loadShadows,
  recordAct,
  saveAcceptance,
  saveDifference,
} from "../replay/shadow-rows.ts";
import type { Shadow } from "../replay/shadow.ts";
import { spanOf } from "../replay/shadow.ts";
import { beginShadow } from "./begin-shadow.ts";
import type { Place } from "./place.ts";
import { replayActor } from "./replay-actor.ts";
import { loadShadowLines } from "./replay-list.ts";
import type { ReplaySession } from "./replay-session.ts";
import { withReplay } from "./replay-session.ts";
import { carriedTablesOf, comparedTablesOf } from "./replay-tables.ts";
import { renderDifference, renderShadows } from "./replay-text.ts";
import type { RunPlace } from "./shadow-job.ts";
import { shadowSessionTimeoutMs } from "./shadow-job.ts";
import { shadowProcess } from "./shadow-process.ts";

type ReplayActions = Pick<
  Actions,
  | "replayStart"
  | "replayList"
  | "replayDiff"
  | "replayAccept"
  | "replayPromote"
  | "replayDrop"
  | "replayCanary"
  | "replayRun"
>;

/** `fabric replay …`, but for adapters. */
export function replayActions(
  place: Place,
  configOf: (common: Common) => Promise<Config>,
  runPlace: RunPlace,
): ReplayActions {
  async function session<T>(common: Common, work: (one: ReplaySession) => Promise<T>): Promise<T> {
    return withReplay({ config: await configOf(common), place, common, runPlace }, work);
  }
  const actorOf = async (common: Common, tokenFile: string | undefined): Promise<Actor> =>
    replayActor(await configOf(common), common, tokenFile);

  async function compare(
    one: ReplaySession,
    shadow: Shadow,
    runs: ReturnType<ReplaySession["openRuns"]>,
    samples: number,
    signal: AbortSignal,
  ): Promise<ShadowDifference> {
    return compareShadow({
      database: one.database,
      runs,
      shadow,
      signal,
      candidate: one.namesOf(shadow.name, "candidate"),
      baseline: one.namesOf(shadow.name, "baseline"),
      tables: comparedTablesOf(shadow.processor),
      samples,
    });
  }

  async function diff(
    one: ReplaySession,
    common: Common,
    name: string,
    samples: number,
  ): Promise<{ readonly shadow: Shadow; readonly difference: ShadowDifference }> {
    const shadow = await loadShadow(one.database, name);
    if (shadow.state === "running")
      throw new Fault("USAGE", `\`${name}\` is not done; the command that started it goes on with it`);
    const runs = one.openRuns(shadow);
    try {
      const difference = await compare(one, shadow, runs, samples, common.signal);
      await saveDifference(one.database, name, toStored(difference));
      return { shadow, difference };
    } finally {
      await runs.close();
      await one.forgetGroups(shadow);
    }
  }

  /** Gives the consumer groups that the broker kept all the same. */
  async function drop(one: ReplaySession, actor: Actor, name: string): Promise<readonly string[]> {
    const shadow = await loadShadow(one.database, name);
    const groups = await one.forgetGroups(shadow, { waitMs: shadowSessionTimeoutMs + 5_000 });
    await one.database.transaction(async (tx) => {
      // A promotion that was killed half way left the live processor stopped.
      await unfenceLive(tx, shadow.processor, name);
      for (const side of ["candidate", "baseline"] as const) await dropRun(tx, one.namesOf(name, side));
      await deleteShadow(tx, name);
      await recordAct(tx, actor, {
        shadow: name,
        act: "dropped",
        detail: { processor: shadow.processor, state: shadow.state, groups },
      });
    });
    return groups;
  }

  return {
    async replayStart(common, { tokenFile, ...options }) {
      const actor = await actorOf(common, tokenFile);
      return session(common, async (one) => {
        const startedMs = performance.now();
        const shadow = await beginShadow(one, { place, runPlace }, actor, options);
        const seconds = (performance.now() - startedMs) / 1_000;
        const records = spanOf(shadow.ranges);
        return {
          json: {
            shadow: shadow.name,
            processor: shadow.processor,
            records,
            seconds,
            against: shadow.comparedWith,
          },
          text: `${shadow.name}: ${records.toLocaleString("en-US")} records of ${shadow.processor} in ${seconds.toFixed(1)} s; next: fabric replay diff ${shadow.name}`,
        };
      });
    },
    replayList: (common) =>
      session(common, async ({ database, namesOf }) => {
        const lines = await loadShadowLines(database, namesOf);
        return {
          json: lines,
          text: lines.length === 0 ? "there is no shadow" : renderShadows(common.screen, lines),
        };
      }),
    replayDiff: (common, { name, samples }) =>
      session(common, async (one) => {
        const { shadow, difference } = await diff(one, common, name, samples);
        return toDiffReport(common, shadow, difference);
      }),
    async replayAccept(common, { name, reason, tokenFile }) {
      const actor = await actorOf(common, tokenFile);
      if (reason.trim() === "")
        throw new Fault("USAGE", "--reason says why the difference is as it should be");
      return session(common, ({ database }) =>
        database.transaction(async (tx) => {
          const shadow = await loadShadow(tx, name);
          if (shadow.difference === null)
            throw new Fault("USAGE", `compare it first: \`fabric replay diff ${name}\``);
          await saveAcceptance(tx, name, actor.person, reason);
          await recordAct(tx, actor, {
            shadow: name,
            act: "accepted",
            reason,
            detail: { difference: shadow.difference },
          });
          return {
            json: { shadow: name, acceptedBy: actor.person, difference: shadow.difference },
            text: `accepted; next: fabric replay promote ${name}`,
          };
        }),
      );
    },
    async replayPromote(common, { name, withoutOlder, tokenFile }) {
      const actor = await actorOf(common, tokenFile);
      return session(common, async (one) => {
        const { database } = one;
        const shadow = await loadShadow(database, name);
        const { rows } = await database.query<{ version: string }>(
          "SELECT consumer_version AS version FROM contracts.readers WHERE consumer = $1 LIMIT 1",
          [shadow.processor],
        );
        const liveVersion = rows[0]?.version ?? null;
        assertPromotable(shadow, liveVersion, withoutOlder);
        const runs = one.openRuns(shadow);
        const { stoppedMs } = await promote({
          database,
          shadow,
          names: one.namesOf(name, "candidate"),
          runs,
          actor,
          carried: await carriedTablesOf(database, shadow.processor),
          liveVersion,
          withoutOlder,
          compare: async () => toStored(await compare(one, shadow, runs, 0, common.signal)),
          signal: common.signal,
        });
        await one.forgetGroups(shadow);
        const waits =
          liveVersion === null || liveVersion === shadow.processorVersion
            ? "hosts go on within seconds"
            : `partitions wait for hosts of version ${shadow.processorVersion}`;
        return {
          json: { shadow: name, processor: shadow.processor, stoppedMs: Math.round(stoppedMs) },
          text: `${shadow.processor} is what ${name} was; it stood still for ${(stoppedMs / 1_000).toFixed(1)} s, ${waits}. \`fabric replay drop ${name}\` removes the tables of before`,
        };
      });
    },
    async replayDrop(common, { name, tokenFile }) {
      const actor = await actorOf(common, tokenFile);
      return session(common, async (one) => {
        const groups = await drop(one, actor, name);
        const left =
          groups.length === 0
            ? ""
            : `; the broker still holds ${groups.join(", ")}: stop the run that reads it, then delete it with the broker's own tool`;
        return { json: { shadow: name, dropped: true, groups }, text: `${name} is gone${left}` };
      });
    },
    async replayCanary(common, { processor, version, migrations, last, samples, keep, tokenFile }) {
      if (toSpanMs(last) === null) throw new Fault("USAGE", `\`${last}\` is no span such as 6h`);
      const actor = await actorOf(common, tokenFile);
      return session(common, async (one) => {
        const name = `canary-${processor.slice(0, 14)}-${randomBytes(3).toString("hex")}`;
        const options = { processor, version, migrations, from: last, to: undefined, shadow: name };
        try {
          await beginShadow(one, { place, runPlace }, actor, { ...options, against: "baseline" });
          const { shadow, difference } = await diff(one, common, name, samples);
          return toDiffReport(common, shadow, difference);
        } finally {
          const [left] = await loadShadows(one.database, name);
          if (!keep && left !== undefined) await drop(one, actor, name);
        }
      });
    },
    replayRun: (common) => shadowProcess(common.signal),
  };
}

function toDiffReport(common: Common, shadow: Shadow, difference: ShadowDifference): Report {
  const { ranges, ...shown } = difference;
  return {
    json: { shadow: shadow.name, processor: shadow.processor, records: spanOf(ranges), ...shown },
    text: renderDifference(common.screen, shadow, difference),
    exit: difference.isEmpty ? 0 : 1,
  };
}
