import { z } from "zod";
import type { RunningRun } from "../replay/open-runs.ts";
import type { PlainTranslation } from "../replay/compare-translations.ts";
import type { LogRange } from "../replay/shadow.ts";

/** A run that was killed holds nothing that anybody waits for: its group is its own. */
export const shadowSessionTimeoutMs = 10_000;

const rangesSchema = z.array(
  z.object({
    topic: z.string(),
    partition: z.number().int(),
    from: z.string().transform(BigInt),
    to: z.string().transform(BigInt),
  }),
);

/** What the process of one run is told: all that it knows, and all that it may do. */
export const shadowJobSchema = z.object({
  processor: z.string(),
  versionFile: z.string().nullable(),
  pricesDir: z.string(),
  budgetsFile: z.string(),
  /** As the run's own role, which may write the run's schemas and nothing else. */
  databaseUrl: z.string(),
  names: z.object({ projection: z.string(), host: z.string(), role: z.string() }),
  kafka: z.object({
    brokers: z.array(z.string()),
    tls: z.boolean(),
    sasl: z
      .object({
        mechanism: z.enum(["plain", "scram-sha-256", "scram-sha-512"]),
        username: z.string(),
        password: z.string(),
      })
      .nullable(),
  }),
  registry: z.object({ url: z.string(), username: z.string().nullable(), password: z.string().nullable() }),
  topicPrefix: z.string(),
  groupId: z.string(),
  environment: z.string(),
  ranges: rangesSchema,
});
export type ShadowJob = z.output<typeof shadowJobSchema>;

/** What is said to such a process while it runs. */
export const shadowOrderSchema = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("facts"),
    question: shadowJobSchema.pick({
      processor: true,
      versionFile: true,
      pricesDir: true,
      budgetsFile: true,
    }),
  }),
  z.object({
    kind: z.literal("translate"),
    runtime: z.string(),
    versionFile: z.string(),
    bodies: z.array(z.string()),
  }),
  z.object({ kind: z.literal("job"), job: shadowJobSchema }),
  z.object({ kind: z.literal("extend"), ranges: rangesSchema }),
  z.object({ kind: z.literal("stop") }),
]);

/** Ranges as a message carries them. */
export const toRangeMessage = (ranges: readonly LogRange[]) =>
  ranges.map((one) => ({ ...one, from: String(one.from), to: String(one.to) }));

/** What a version's file says of itself. */
export const versionFactsSchema = z.object({ version: z.string(), topics: z.array(z.string()) });
export type VersionFacts = z.output<typeof versionFactsSchema>;
export type VersionQuestion = Pick<ShadowJob, "processor" | "versionFile" | "pricesDir" | "budgetsFile">;

/** Where the code of a version runs, and nowhere else. */
export interface RunPlace {
  facts(question: VersionQuestion): Promise<VersionFacts>;
  /** Raw payloads through the adapter of a file, in order. */
  translate(
    runtime: string,
    versionFile: string,
    bodies: readonly string[],
  ): Promise<readonly PlainTranslation[]>;
  start(job: ShadowJob): Promise<RunningRun>;
}
