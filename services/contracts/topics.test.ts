import { describe, expect, it } from "vitest";
import { catalog, eventTypes } from "../../schemas/catalog.ts";
import type { TopicState } from "../platform/kafka-admin.ts";
import { renderTopics, topicConfigs, toPlan } from "./topics.ts";

const options = { topicPrefix: "team-a.", replication: 3 };
const asPlanned = (): TopicState[] =>
  eventTypes.map((type) => ({
    topic: `team-a.${type}`,
    partitions: catalog[type].partitions,
    replication: 3,
    configs: topicConfigs(catalog[type]),
    overrides: {},
  }));
const changed = (change: Partial<TopicState>): TopicState[] =>
  asPlanned().map((state, at) => (at === 0 ? { ...state, ...change } : state));
const [first] = eventTypes;

describe("toPlan", () => {
  it("creates every topic on an empty broker, under the prefix", () => {
    const plan = toPlan([], options);
    expect(plan.changes.map((change) => change.topic)).toEqual(eventTypes.map((type) => `team-a.${type}`));
    expect(plan.changes[0]).toMatchObject({ kind: "create", replication: 3, partitions: 6 });
  });

  it("has nothing to do where all is as the catalogue says", () => {
    const plan = toPlan(asPlanned(), options);
    expect(plan).toEqual({ topics: eventTypes.length, changes: [], drift: [] });
    expect(renderTopics(plan)).toContain("as the catalogue says");
  });

  it("raises partitions and says that keys move", () => {
    const plan = toPlan(changed({ partitions: 2 }), options);
    expect(plan.changes).toEqual([
      { kind: "raise_partitions", topic: `team-a.${String(first)}`, from: 2, to: 6 },
    ]);
    expect(renderTopics(plan)).toContain("keys move");
  });

  it("shows old and new value of a setting", () => {
    const plan = toPlan(changed({ configs: { "cleanup.policy": "compact", "retention.ms": "5" } }), options);
    expect(renderTopics(plan)).toMatch(/retention.ms 5 → \d+, cleanup.policy compact → delete/);
    expect(renderTopics(plan, true)).toMatch(/^done: set/);
  });

  it("only reports what it must not mend", () => {
    const more = toPlan(changed({ partitions: 12, replication: 1 }), options);
    expect(more.changes).toEqual([]);
    expect(more.drift.map((one) => one.kind)).toEqual(["more_partitions", "other_replication"]);
    const stranger = {
      topic: "team-a.agent.forgotten.requested",
      partitions: 1,
      replication: 3,
      configs: {},
      overrides: {},
    };
    expect(toPlan([...asPlanned(), stranger], options).drift.map((one) => one.kind)).toEqual([
      "not_in_catalogue",
    ]);
  });
});
