import { resolve } from "node:path";
import { Fault } from "../../schemas/faults.ts";
import type { ReplayStart } from "../cli/actions.ts";
import { systemClock } from "../platform/clock.ts";
import { toTopicName } from "../platform/kafka-admin.ts";
import { resolveRanges, toLogPoint } from "../replay/log-ranges.ts";
import type { Actor } from "../replay/shadow-rows.ts";
import { insertShadow, loadShadow, loadShadows, recordAct, setState } from "../replay/shadow-rows.ts";
import type { Shadow } from "../replay/shadow.ts";
import { assertShadowName, spanOf } from "../replay/shadow.ts";
import { costFilesOf } from "./load-processors.ts";
import { digestOfVersion } from "./load-version.ts";
import type { Place } from "./place.ts";
import type { ReplaySession } from "./replay-session.ts";
import type { RunPlace, VersionFacts } from "./shadow-job.ts";
import { factsOf, loadProcessorOfRun } from "./shadow-process.ts";

/** Where versions are loaded and run. */
export interface ShadowPlaces {
  readonly place: Place;
  readonly runPlace: RunPlace;
}

/** Makes a shadow, or goes on with it, until all of its part of the log is read. */
export async function beginShadow(
  one: ReplaySession,
  places: ShadowPlaces,
  actor: Actor,
  options: ReplayStart,
): Promise<Shadow> {
  const shadow = await prepare(one, places, actor, options);
  await one.makeSchemas(shadow);
  const runs = one.openRuns(shadow);
  try {
    await runs.reach(shadow.ranges);
  } finally {
    await runs.close();
    await one.forgetGroups(shadow);
  }
  await setState(one.database, shadow.name, "ready");
  return loadShadow(one.database, shadow.name);
}

/** The shadow of this name as it was begun, or a new one; one that was begun otherwise is refused. */
async function prepare(
  one: ReplaySession,
  places: ShadowPlaces,
  actor: Actor,
  options: ReplayStart,
): Promise<Shadow> {
  assertShadowName(options.shadow);
  const versionFile = options.version === undefined ? null : resolve(options.version);
  const digest = versionFile === null ? null : await digestOfVersion(versionFile);
  const [known] = await loadShadows(one.database, options.shadow);
  if (known !== undefined) {
    if (known.state === "promoted")
      throw new Fault("USAGE", `\`${known.name}\` is promoted; choose another name`);
    if (known.processor !== options.processor || known.versionDigest !== digest)
      throw new Fault(
        "USAGE",
        `\`${known.name}\` was begun with another processor or file; \`fabric replay drop ${known.name}\`, or choose another name`,
      );
    await recordAct(one.database, actor, { shadow: known.name, act: "resumed", detail: {} });
    return known;
  }
  const facts = await factsFor(one, places, options.processor, versionFile);
  const nowMs = systemClock.nowMs();
  const { topicPrefix } = one.config.kafka;
  const ranges = await resolveRanges(
    one.log,
    facts.topics.map((type) => ({ type, topic: toTopicName(topicPrefix, type) })),
    toLogPoint(options.from ?? "earliest", nowMs),
    toLogPoint(options.to ?? "latest", nowMs),
  );
  const isWhole = options.to === undefined && ranges.every(({ from }) => from === 0n);
  const shadow = {
    name: options.shadow,
    processor: options.processor,
    processorVersion: facts.version,
    versionFile,
    versionDigest: digest,
    migrationsDir: options.migrations === undefined ? null : resolve(options.migrations),
    comparedWith: options.against ?? (isWhole ? ("live" as const) : ("baseline" as const)),
    ranges,
    startedBy: actor.person,
  };
  await one.database.transaction(async (tx) => {
    await insertShadow(tx, shadow);
    await recordAct(tx, actor, {
      shadow: shadow.name,
      act: "started",
      detail: {
        processor: shadow.processor,
        version: facts.version,
        versionFile,
        versionDigest: digest,
        records: String(spanOf(ranges)),
        from: options.from ?? "earliest",
        to: options.to ?? "latest",
      },
    });
  });
  return loadShadow(one.database, shadow.name);
}

async function factsFor(
  { config }: ReplaySession,
  { place, runPlace }: ShadowPlaces,
  processor: string,
  versionFile: string | null,
): Promise<VersionFacts> {
  const question = { processor, versionFile, ...costFilesOf(config, place) };
  const shipped = await loadProcessorOfRun({ ...question, versionFile: null });
  // A file's code is loaded where it may run, and nowhere else.
  return versionFile === null ? factsOf(shipped) : runPlace.facts(question);
}
