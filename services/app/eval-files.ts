import { readFile } from "node:fs/promises";
import { z } from "zod";
import type { ScoredEpisode } from "../../processors/eval/metrics.ts";
import { toShouldRefuse } from "../../processors/eval/metrics.ts";
import { Fault } from "../../schemas/faults.ts";

const stepSchema = z.object({
  tool: z.string().nullable(),
  resource: z.string().nullable().default(null),
  decision: z.string().nullable().default(null),
  outcome: z.string().nullable().default(null),
  refused: z.boolean().default(false),
});
const fixtureSchema = z.object({
  episodes: z.array(
    z.object({
      name: z.string(),
      labels: z.array(z.string()).default([]),
      expected_tools: z.array(z.string()).nullable().default(null),
      steps: z.array(stepSchema),
    }),
  ),
});
const expectedSchema = z.record(z.string(), z.array(z.string()));

/** Episodes of a file, with what people say of them. Throws USAGE with every fault. */
export async function readScoredEpisodes(file: string): Promise<readonly ScoredEpisode[]> {
  const { episodes } = await readJson(file, fixtureSchema);
  return episodes.map(({ steps, labels, expected_tools }) => ({
    steps,
    expectedTools: expected_tools,
    shouldRefuse: toShouldRefuse(labels),
  }));
}

/** Expected tools by episode id. Throws USAGE with every fault. */
export async function readExpectedTools(file: string): Promise<ReadonlyMap<string, readonly string[]>> {
  return new Map(Object.entries(await readJson(file, expectedSchema)));
}

async function readJson<S extends z.ZodType>(file: string, schema: S): Promise<z.output<S>> {
  let value: unknown;
  try {
    value = JSON.parse(await readFile(file, "utf8"));
  } catch (error) {
    throw new Fault("USAGE", `\`${file}\` cannot be read as JSON`, { cause: error });
  }
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new Fault("USAGE", `\`${file}\`: ${z.prettifyError(parsed.error)}`);
  return parsed.data;
}
