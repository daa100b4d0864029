import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { DecisionName, GateRequest, JsonObject } from "../../../schemas/gate.ts";
import { decisions, gateRequestSchema } from "../../../schemas/gate.ts";

const caseSchema = z.strictObject({
  name: z.string(),
  request: z.record(z.string(), z.unknown()),
  facts: z
    .strictObject({ tenant: z.strictObject({ state: z.enum(["active", "frozen"]), version: z.number() }) })
    .optional(),
  expect: z.strictObject({
    decision: z.enum(decisions),
    reason_code: z.string(),
    /** Have to be among those that match. */
    rules: z.array(z.string()),
  }),
});

/** A request with the answer that the default bundle owes. */
export type PolicyCorpusCase = {
  readonly name: string;
  readonly request: GateRequest;
  readonly tenantState: "active" | "frozen";
  readonly expect: {
    readonly decision: DecisionName;
    readonly reason_code: string;
    readonly rules: readonly string[];
  };
};

/** All cases, in the order of their files. */
export function readPolicyCorpus(): readonly PolicyCorpusCase[] {
  return readdirSync(import.meta.dirname)
    .filter((name) => name.endsWith(".json"))
    .sort()
    .flatMap((file) =>
      z
        .array(caseSchema)
        .parse(JSON.parse(readFileSync(join(import.meta.dirname, file), "utf8")))
        .map(({ name, request, facts, expect }) => ({
          name: `${file.replace(/\.json$/, "")}: ${name}`,
          request: {
            ...gateRequestSchema.parse({ runtime: "own", session_id: "corpus", ...request }),
            // As it is in the file: the parser drops a key named `__proto__`.
            input: request["input"] as JsonObject,
          },
          tenantState: facts?.tenant.state ?? "active",
          expect,
        })),
    );
}
