import type { Clock } from "../platform/clock.ts";
import type { OffsetsPort } from "../platform/kafka-offsets.ts";
import type { Log } from "../platform/log.ts";
import type { HostMetrics } from "./host-metrics.ts";

/**
 * How long the broker's word on which topic is which is believed while records come in. One question a second costs
 * nothing, and a topic that is made anew takes longer than that to be there.
 */
const idsMaxAgeMs = 1_000;

/** The topics of one processor as the broker last told of them: which exist, under which id, and which are missing. */
export interface KnownTopics {
  /** Asks the broker; those that exist, in the order in which they are wanted. */
  existing(): Promise<readonly string[]>;
  /** Kafka's id of a topic as last heard; null: not known. Asks first when the last word is old. */
  freshIdOf(topic: string): Promise<string | null>;
  idOf(topic: string): string | null;
  isMissing(topic: string): boolean;
  missing(): readonly string[];
  /** Counts a look at each missing topic; those that an earlier look had missed too. */
  missedAgain(): readonly string[];
}

export function createKnownTopics(options: {
  readonly wanted: readonly string[];
  readonly offsets: Pick<OffsetsPort, "existing">;
  readonly metrics: Pick<HostMetrics, "topicMissing">;
  readonly clock: Clock;
  readonly log: Log;
}): KnownTopics {
  const { wanted, offsets, metrics, clock, log } = options;
  /** Each with the number of looks in a row that missed it. */
  const missing = new Map<string, number>();
  let ids: ReadonlyMap<string, string | null> = new Map();
  let askedMs = 0;
  const idOf = (topic: string): string | null => ids.get(topic) ?? null;
  return {
    async existing() {
      const existing = await offsets.existing(wanted);
      ids = existing;
      askedMs = clock.nowMs();
      for (const topic of wanted) {
        const isMissing = !existing.has(topic);
        metrics.topicMissing(topic, isMissing);
        if (isMissing && !missing.has(topic)) {
          // One topic that is gone would stall the fetches of all others.
          log.error(
            { topic },
            "the topic does not exist and is left out; create it with `fabric topics apply`",
          );
          missing.set(topic, 0);
        } else if (!isMissing) missing.delete(topic);
      }
      return wanted.filter((topic) => existing.has(topic));
    },
    async freshIdOf(topic) {
      const nowMs = clock.nowMs();
      if (nowMs - askedMs >= idsMaxAgeMs) {
        askedMs = nowMs;
        try {
          ids = await offsets.existing(wanted);
        } catch (error) {
          // The look that comes soon asks again.
          log.debug({ err: error }, "topics were not asked for");
        }
      }
      return idOf(topic);
    },
    idOf,
    isMissing: (topic) => missing.has(topic),
    missing: () => [...missing.keys()],
    missedAgain() {
      const before = [...missing].filter(([, looks]) => looks > 0).map(([topic]) => topic);
      for (const [topic, looks] of missing) missing.set(topic, looks + 1);
      return before;
    },
  };
}
