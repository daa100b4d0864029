import type { TopicPartition } from "../platform/kafka-consumer.ts";
import type { Position } from "./host-store.ts";
import type { FailureCount } from "./slice-runner.ts";
import { noFailures } from "./slice-runner.ts";

export type PartitionStatus = "running" | "retrying" | "stopped";

/** What the host knows of one assigned partition. */
export interface Partition extends TopicPartition {
  readonly assignment: number;
  position: Position;
  status: PartitionStatus;
  /** Fault that a retrying partition waits for, or cause that a stopped one was stopped for. */
  reason: string | null;
  /** Tries in a row, for the wait before the next. */
  attempts: number;
  readonly failures: FailureCount;
  timer: NodeJS.Timeout | null;
  /** End of the log as last seen. */
  logEnd: bigint;
  /** Timestamp of the last record that was committed, or null. */
  lastRecordMs: number | null;
  lastProgressMs: number;
  /** When the first record with a schema id that nobody knows was met. */
  schemaWaitSinceMs: number | null;
  /** Jump of the client that was asked about again. */
  jump: string | null;
  /** Gap that the last look at the log's ends showed; believed when the next one shows it too. */
  suspicion: string | null;
}

export function newPartition(
  position: Position,
  assignment: number,
  logEnd: bigint,
  nowMs: number,
): Partition {
  return {
    topic: position.topic,
    partition: position.partition,
    assignment,
    position,
    status: "running",
    reason: null,
    attempts: 0,
    failures: noFailures(position.nextOffset),
    timer: null,
    logEnd,
    lastRecordMs: null,
    lastProgressMs: nowMs,
    schemaWaitSinceMs: null,
    jump: null,
    suspicion: null,
  };
}

/** How far behind a partition is, in records and in seconds. */
export interface Lag {
  readonly records: number;
  readonly seconds: number;
}

/**
 * Lag in seconds is the age of the last record that was committed, or the time since the assignment before there is
 * one; zero when nothing is left to read.
 */
export function lagOf(partition: Partition, nowMs: number): Lag {
  const records = Math.max(0, Number(partition.logEnd - partition.position.nextOffset));
  if (records === 0) return { records, seconds: 0 };
  const sinceMs = partition.lastRecordMs ?? partition.lastProgressMs;
  return { records, seconds: Math.max(0, (nowMs - sinceMs) / 1_000) };
}
