import type { Admin, ITopicConfig } from "kafkajs";
import { eventually } from "./eventually.ts";

/**
 * Creates topics and waits until the broker names a leader for each partition. kafkajs' own wait gives up at once when the
 * broker has not heard yet of a topic that its controller made a moment ago.
 */
export async function createTopics(admin: Admin, topics: readonly ITopicConfig[]): Promise<void> {
  await admin.createTopics({ waitForLeaders: false, topics: [...topics] });
  const names = topics.map(({ topic }) => topic);
  await eventually(
    () => admin.fetchTopicMetadata({ topics: names }),
    (found) => found.topics.every(({ partitions }) => partitions.every(({ leader }) => leader >= 0)),
    { what: "leaders of new topics", deadlineMs: 30_000 },
  );
  // Only a leader answers this: one that is named may not have begun yet.
  for (const name of names)
    await eventually(() => admin.fetchTopicOffsets(name), Boolean, {
      what: `the leaders of ${name}`,
      deadlineMs: 30_000,
    });
}
