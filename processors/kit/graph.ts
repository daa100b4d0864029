import type { EventType } from "../../schemas/catalog.ts";
import type { Processor } from "./processor.ts";

/** The part of a processor that says what it reads and what it causes. */
export type Edge = Pick<Processor, "name" | "topics" | "emits">;

/**
 * A cycle in the graph of topics and emissions, as `topic → processor → topic → …`, or null when there is none.
 * What the host itself writes about a processor (letters, gaps) is no edge: a letter about X never goes to X.
 */
export function findCycle(processors: readonly Edge[]): readonly string[] | null {
  const done = new Set<EventType>();
  const path: string[] = [];

  function visit(topic: EventType, open: readonly EventType[]): readonly string[] | null {
    if (open.includes(topic)) return [...path.slice(path.indexOf(topic)), topic];
    if (done.has(topic)) return null;
    path.push(topic);
    for (const one of processors.filter(({ topics }) => topics.includes(topic))) {
      path.push(one.name);
      for (const emitted of one.emits) {
        const cycle = visit(emitted, [...open, topic]);
        if (cycle !== null) return cycle;
      }
      path.pop();
    }
    path.pop();
    done.add(topic);
    return null;
  }

  for (const topic of new Set(processors.flatMap(({ topics }) => topics))) {
    const cycle = visit(topic, []);
    if (cycle !== null) return cycle;
  }
  return null;
}

/** Names that more than one processor uses: two of them would share a consumer group and an inbox. */
export function findRepeatedNames(processors: readonly Pick<Processor, "name">[]): readonly string[] {
  const names = processors.map(({ name }) => name);
  return [...new Set(names.filter((name, index) => names.indexOf(name) !== index))];
}
