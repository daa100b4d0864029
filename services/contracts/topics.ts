import type { EventType, TopicEntry } from "../../schemas/catalog.ts";
import { catalog, eventTypes } from "../../schemas/catalog.ts";
import type { KafkaAdminPort, NewTopic, TopicState } from "../platform/kafka-admin.ts";
import { toTopicName } from "../platform/kafka-admin.ts";

/** What the cluster adds to the catalogue. */
export interface TopicOptions {
  readonly topicPrefix: string;
  /** Copies of each partition of a new topic. */
  readonly replication: number;
  /** Only these types; all by default. */
  readonly types?: readonly EventType[];
}

/** One change that `apply` would make. */
export type TopicChange =
  | ({ readonly kind: "create" } & NewTopic)
  | { readonly kind: "raise_partitions"; readonly topic: string; readonly from: number; readonly to: number }
  | {
      readonly kind: "alter_configs";
      readonly topic: string;
      readonly configs: Readonly<Record<string, { readonly from: string | null; readonly to: string }>>;
    };

/** A difference that `apply` never mends, since that would lose or move records. */
export interface TopicDrift {
  readonly topic: string;
  readonly kind: "not_in_catalogue" | "more_partitions" | "other_replication";
  readonly text: string;
}

export interface TopicPlan {
  readonly topics: number;
  readonly changes: readonly TopicChange[];
  readonly drift: readonly TopicDrift[];
}

/** The broker settings that the catalogue decides; all others are left to the cluster. */
export function topicConfigs(entry: TopicEntry): {
  readonly "retention.ms": string;
  readonly "cleanup.policy": string;
} {
  return { "retention.ms": String(entry.retentionMs), "cleanup.policy": entry.cleanup };
}

const ours = /^(agent|integration|fabric)\./;

/** Compares the catalogue with the broker; reads only. */
export async function planTopics(admin: KafkaAdminPort, options: TopicOptions): Promise<TopicPlan> {
  const { topicPrefix } = options;
  const states = await admin.topics(
    (topic) => topic.startsWith(topicPrefix) && ours.test(topic.slice(topicPrefix.length)),
  );
  return toPlan(states, options);
}

/** The plan for a broker in this state. Pure. */
export function toPlan(states: readonly TopicState[], options: TopicOptions): TopicPlan {
  const byName = new Map(states.map((state) => [state.topic, state]));
  const types = options.types ?? eventTypes;
  const changes: TopicChange[] = [];
  const drift: TopicDrift[] = [];
  for (const type of types) {
    const entry: TopicEntry = catalog[type];
    const topic = toTopicName(options.topicPrefix, type);
    const configs = topicConfigs(entry);
    const state = byName.get(topic);
    if (state === undefined) {
      changes.push({
        kind: "create",
        topic,
        partitions: entry.partitions,
        replication: options.replication,
        configs,
      });
      continue;
    }
    if (state.partitions < entry.partitions)
      changes.push({ kind: "raise_partitions", topic, from: state.partitions, to: entry.partitions });
    if (state.partitions > entry.partitions)
      drift.push({
        topic,
        kind: "more_partitions",
        text: `${state.partitions} partitions, the catalogue says ${entry.partitions}: raise the catalogue, they cannot be lowered`,
      });
    if (state.replication !== options.replication)
      drift.push({
        topic,
        kind: "other_replication",
        text: `${state.replication} copies, the configuration says ${options.replication}: reassign the partitions`,
      });
    const differing = Object.entries(configs).filter(([name, value]) => state.configs[name] !== value);
    if (differing.length > 0)
      changes.push({
        kind: "alter_configs",
        topic,
        configs: Object.fromEntries(
          differing.map(([name, to]) => [name, { from: state.configs[name] ?? null, to }]),
        ),
      });
  }
  const known = new Set(eventTypes.map((type) => toTopicName(options.topicPrefix, type)));
  for (const { topic } of states)
    if (!known.has(topic))
      drift.push({
        topic,
        kind: "not_in_catalogue",
        text: "it is not in the catalogue: add it, or delete it by hand",
      });
  return { topics: types.length, changes, drift };
}

/** Carries a plan out, in its order: creates, raises partitions, alters settings. Nothing is ever deleted. */
export async function applyTopics(admin: KafkaAdminPort, plan: TopicPlan): Promise<TopicPlan> {
  await admin.createTopics(plan.changes.filter((change) => change.kind === "create"));
  for (const change of plan.changes) {
    switch (change.kind) {
      case "create":
        break;
      case "raise_partitions":
        await admin.raisePartitions(change.topic, change.to);
        break;
      case "alter_configs":
        await admin.alterConfigs(
          change.topic,
          Object.fromEntries(Object.entries(change.configs).map(([name, { to }]) => [name, to])),
        );
        break;
    }
  }
  return plan;
}

/** For a person; `applied` puts the changes into the past. */
export function renderTopics(plan: TopicPlan, applied = false): string {
  const lines = [
    ...plan.changes.map((change) => `${applied ? "done: " : ""}${changeText(change)}`),
    ...plan.drift.map(({ topic, text }) => `drift: ${topic}: ${text}`),
  ];
  if (lines.length === 0) return `${plan.topics} topics are as the catalogue says\n`;
  return `${lines.join("\n")}\n`;
}

function changeText(change: TopicChange): string {
  switch (change.kind) {
    case "create":
      return `create ${change.topic} (${change.partitions} partitions, ${configText(change.configs)})`;
    case "raise_partitions":
      return `raise ${change.topic} from ${change.from} to ${change.to} partitions: keys move, drain its consumers first`;
    case "alter_configs":
      return `set ${change.topic} ${Object.entries(change.configs)
        .map(([name, { from, to }]) => `${name} ${from ?? "unset"} → ${to}`)
        .join(", ")}`;
  }
}

function configText(configs: Readonly<Record<string, string>>): string {
  return Object.entries(configs)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ");
}
