import { findCycle, findRepeatedNames } from "../../processors/kit/graph.ts";
import type { Processor } from "../../processors/kit/processor.ts";
import { Fault } from "../../schemas/faults.ts";
import type { Clock } from "../platform/clock.ts";
import { newUuidV7 } from "../platform/ids.ts";
import type { KafkaEndpoint } from "../platform/kafka.ts";
import type { ConsumerPort } from "../platform/kafka-consumer.ts";
import { createKafkaConsumer } from "../platform/kafka-consumer.ts";
import type { OffsetsPort } from "../platform/kafka-offsets.ts";
import { createKafkaOffsets } from "../platform/kafka-offsets.ts";
import type { Log } from "../platform/log.ts";
import type { Metrics } from "../platform/metrics.ts";
import type { EventEncoder } from "../platform/outbox.ts";
import { notifyOutbox } from "../platform/outbox.ts";
import type { Database } from "../platform/postgres.ts";
import type { TenantKeys } from "../platform/vault-seal.ts";
import type { Step } from "./batch-steps.ts";
import { liveSteps } from "./batch-steps.ts";
import type { FanOutLimit } from "./fan-out-guard.ts";
import { FanOutGuard, defaultFanOutLimit } from "./fan-out-guard.ts";
import { createHostMetrics } from "./host-metrics.ts";
import type { SchemaOf } from "./host-schema.ts";
import { checkInboxRetention, defaultInboxRetentionMs, pruneInbox } from "./inbox-retention.ts";
import type { LetterSealer } from "./letter-sealer.ts";
import { createPostgresHostStore } from "./postgres-host-store.ts";
import type { HostHealth, HostTimings } from "./processor-host.ts";
import { ProcessorHost } from "./processor-host.ts";
import { createRedriveStore } from "./redrive-store.ts";
import { Redriver } from "./redriver.ts";
import type { EventDecoder } from "./records.ts";

/** How often old inbox rows are looked for. */
const pruneEveryMs = 10 * 60_000;

export interface HostOptions {
  /** By value: the host knows no processor. */
  readonly processors: readonly Processor[];
  readonly endpoint: KafkaEndpoint;
  readonly database: Database;
  /** Where host and processors have their tables; default: each owner in the schema of its name. */
  readonly schemaOf?: SchemaOf;
  /** False in a shadow: nothing is published and nobody is woken; default true. */
  readonly publishes?: boolean;
  readonly codec: EventEncoder & EventDecoder;
  readonly sealer: LetterSealer;
  /** Opens the bytes of letters that a person sends through again; without it nothing is redriven here. */
  readonly letterKeys?: TenantKeys;
  readonly redrivePollMs?: number;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly clock: Clock;
  readonly environment: string;
  readonly topicPrefix: string;
  /** Group = prefix + processor's name, so that no two processors share one. */
  readonly groupPrefix?: string;
  readonly steps?: readonly Step[];
  readonly timings?: Partial<HostTimings>;
  readonly fanOutLimit?: FanOutLimit;
  readonly inboxRetentionMs?: number;
  readonly random?: () => number;
  readonly sessionTimeoutMs?: number;
  readonly rebalanceTimeoutMs?: number;
  readonly heartbeatIntervalMs?: number;
  /** Another client, or a test's. */
  readonly openConsumer?: (groupId: string, log: Log) => ConsumerPort;
  readonly offsets?: OffsetsPort;
}

/** The running processors of one process. */
export interface Host {
  health(): ReadonlyMap<string, HostHealth>;
  /** Ends the batches in hand, commits them, leaves the groups. */
  stop(): Promise<void>;
}

/** Throws CONFIG_INVALID for processors that share a name or feed each other in a circle. */
export function checkProcessors(processors: readonly Processor[]): void {
  const repeated = findRepeatedNames(processors);
  if (repeated.length > 0)
    throw new Fault("CONFIG_INVALID", `two processors are named \`${repeated.join("`, `")}\``);
  const cycle = findCycle(processors);
  if (cycle !== null) throw new Fault("CONFIG_INVALID", `events would go in a circle: ${cycle.join(" → ")}`);
}

/** Starts every processor in its own group. */
export function startHost(options: HostOptions): Host {
  checkProcessors(options.processors);
  const retentionMs = options.inboxRetentionMs ?? defaultInboxRetentionMs;
  checkInboxRetention(retentionMs);
  const { database, clock, endpoint } = options;
  const offsets = options.offsets ?? createKafkaOffsets({ endpoint, log: options.log });
  const owner = newUuidV7(clock.nowMs());
  const openConsumer =
    options.openConsumer ??
    ((groupId: string, log: Log) =>
      createKafkaConsumer({
        endpoint,
        groupId,
        log,
        ...(options.sessionTimeoutMs === undefined ? {} : { sessionTimeoutMs: options.sessionTimeoutMs }),
        ...(options.rebalanceTimeoutMs === undefined
          ? {}
          : { rebalanceTimeoutMs: options.rebalanceTimeoutMs }),
        ...(options.heartbeatIntervalMs === undefined
          ? {}
          : { heartbeatIntervalMs: options.heartbeatIntervalMs }),
      }));

  const redrivers: Redriver[] = [];
  const hosts = new Map(
    options.processors.map((processor) => {
      const log = options.log.child({ processor: processor.name });
      const storeOptions = {
        database,
        processor,
        encoder: options.codec,
        sealer: options.sealer,
        ...(options.schemaOf === undefined ? {} : { schemaOf: options.schemaOf }),
        ...(options.publishes === undefined ? {} : { publishes: options.publishes }),
      };
      const shared = {
        processor,
        decoder: options.codec,
        metrics: createHostMetrics(options.metrics, processor.name),
        guard: new FanOutGuard(options.fanOutLimit ?? defaultFanOutLimit),
        clock,
        log,
        random: options.random ?? Math.random,
        owner,
        environment: options.environment,
        topicPrefix: options.topicPrefix,
        ...(options.publishes === false ? {} : { wakeRelay: () => notifyOutbox(database) }),
      };
      const host = new ProcessorHost({
        ...shared,
        consumer: openConsumer((options.groupPrefix ?? "") + processor.name, log),
        offsets,
        store: createPostgresHostStore(storeOptions),
        steps: options.steps ?? liveSteps,
        ...(options.timings === undefined ? {} : { timings: options.timings }),
      });
      host.start();
      if (options.letterKeys !== undefined) {
        const redriver = new Redriver({
          ...shared,
          store: createRedriveStore({ ...storeOptions, keys: options.letterKeys }),
          ...(options.redrivePollMs === undefined ? {} : { pollMs: options.redrivePollMs }),
        });
        redriver.start();
        redrivers.push(redriver);
      }
      return [processor.name, host] as const;
    }),
  );
  const pruning = setInterval(() => {
    pruneInbox(database, retentionMs, options.schemaOf).catch((error: unknown) =>
      options.log.warn({ err: error }, "the inbox was not pruned"),
    );
  }, pruneEveryMs);
  pruning.unref();

  return {
    health: () => new Map([...hosts].map(([name, host]) => [name, host.health()])),
    async stop() {
      clearInterval(pruning);
      await Promise.all([...hosts.values(), ...redrivers].map((one) => one.stop()));
      if (options.offsets === undefined) await offsets.close();
    },
  };
}
