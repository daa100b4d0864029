import type { Processor } from "../kit/processor.ts";
import { defineProcessor } from "../kit/processor.ts";
import { toTraceChange } from "./parts.ts";
import { tracedTypes } from "./traced-events.ts";
import { saveChanges } from "./store.ts";

/** Spans that are kept of one correlation: a tree that a person can still read, and memory that has an end. */
const maxSpansPerTrace = 10_000;

/** The processor with a cap of its own; tests use a small one. */
export function createTrace(options: { readonly maxSpans: number }): Processor {
  return defineProcessor({
    name: "trace",
    topics: tracedTypes,
    project: (event, source) => [toTraceChange(event, source)],
    apply: (tx, changes) => saveChanges(tx, changes, options.maxSpans),
  });
}

/** One causal tree per correlation, whatever order its events come in. */
export const trace = createTrace({ maxSpans: maxSpansPerTrace });
