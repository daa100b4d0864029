import type { TopicPartition } from "../platform/kafka-consumer.ts";
import type { Metrics } from "../platform/metrics.ts";

/** What the host tells Prometheus about one processor. Alert rules name these. */
export interface HostMetrics {
  processed(partition: TopicPartition, count: number): void;
  duplicates(partition: TopicPartition, count: number, why: "inbox" | "watermark"): void;
  skipped(partition: TopicPartition, count: number, why: "tombstone" | "own_letter"): void;
  letters(kind: "quarantine" | "dead", code: string): void;
  redriven(outcome: "processed" | "duplicate" | "failed" | "skipped", count: number): void;
  batch(records: number, commitMs: number): void;
  retries(code: string): void;
  fenced(): void;
  gap(partition: TopicPartition, cause: string): void;
  emitted(count: number): void;
  held(count: number): void;
  lag(partition: TopicPartition, records: number, seconds: number): void;
  /** 1 while a partition is paused (retry), stopped (gap) or idle (0). */
  paused(partition: TopicPartition, reason: "retry" | "gap" | null): void;
  noProgress(partition: TopicPartition, stuck: boolean): void;
  topicMissing(topic: string, missing: boolean): void;
  restarted(): void;
}

/** Registers the host's metrics; every one carries the processor's name. */
export function createHostMetrics(metrics: Metrics, processor: string): HostMetrics {
  const at = ["processor", "topic", "partition"];
  const label = ({ topic, partition }: TopicPartition) => ({ processor, topic, partition });
  const processed = metrics.counter("fabric_host_events_total", "events that were projected", at);
  const duplicates = metrics.counter("fabric_host_duplicates_total", "records that had been processed", [
    ...at,
    "why",
  ]);
  const skipped = metrics.counter("fabric_host_skipped_total", "records that are not for the processor", [
    ...at,
    "why",
  ]);
  const letters = metrics.counter("fabric_host_letters_total", "records that were set aside", [
    "processor",
    "kind",
    "code",
  ]);
  const redriven = metrics.counter("fabric_host_redriven_total", "letters that were tried again", [
    "processor",
    "outcome",
  ]);
  const batch = metrics.histogram(
    "fabric_host_batch_records",
    "records in one transaction",
    ["processor"],
    [1, 5, 10, 50, 100, 250, 500, 1_000, 2_500],
  );
  const commit = metrics.histogram("fabric_host_transaction_seconds", "from first to last statement", [
    "processor",
  ]);
  const retries = metrics.counter("fabric_host_retries_total", "batches that wait for a dependency", [
    "processor",
    "code",
  ]);
  const fenced = metrics.counter("fabric_host_fenced_total", "transactions undone for a newer owner", [
    "processor",
  ]);
  const gaps = metrics.counter("fabric_host_gaps_total", "partitions stopped since records are gone", [
    ...at,
    "cause",
  ]);
  const emitted = metrics.counter("fabric_host_emitted_total", "events that the processor published", [
    "processor",
  ]);
  const held = metrics.counter("fabric_host_held_total", "events that the fan-out guard held back", [
    "processor",
  ]);
  const lagRecords = metrics.gauge("fabric_host_lag_records", "records behind the end of the log", at);
  const lagSeconds = metrics.gauge("fabric_host_lag_seconds", "age of the last record read while behind", at);
  const paused = metrics.gauge("fabric_host_paused", "1 while the partition does not go on", [
    ...at,
    "reason",
  ]);
  const stuck = metrics.gauge("fabric_host_no_progress", "1 while there is lag and no progress", at);
  const missing = metrics.gauge("fabric_host_topic_missing", "1 while a topic does not exist", [
    "processor",
    "topic",
  ]);
  const restarts = metrics.counter("fabric_host_consumer_restarts_total", "consumers made anew", [
    "processor",
  ]);
  return {
    processed: (partition, count) => processed.add(label(partition), count),
    duplicates: (partition, count, why) => duplicates.add({ ...label(partition), why }, count),
    skipped: (partition, count, why) => skipped.add({ ...label(partition), why }, count),
    letters: (kind, code) => letters.add({ processor, kind, code }),
    redriven: (outcome, count) => redriven.add({ processor, outcome }, count),
    batch(records, commitMs) {
      batch.observe(records, { processor });
      commit.observe(commitMs / 1_000, { processor });
    },
    retries: (code) => retries.add({ processor, code }),
    fenced: () => fenced.add({ processor }),
    gap: (partition, cause) => gaps.add({ ...label(partition), cause }),
    emitted: (count) => emitted.add({ processor }, count),
    held: (count) => held.add({ processor }, count),
    lag(partition, records, seconds) {
      lagRecords.set(records, label(partition));
      lagSeconds.set(seconds, label(partition));
    },
    paused(partition, reason) {
      for (const one of ["retry", "gap"] as const)
        paused.set(one === reason ? 1 : 0, { ...label(partition), reason: one });
    },
    noProgress: (partition, isStuck) => stuck.set(isStuck ? 1 : 0, label(partition)),
    topicMissing: (topic, isMissing) => missing.set(isMissing ? 1 : 0, { processor, topic }),
    restarted: () => restarts.add({ processor }),
  };
}
