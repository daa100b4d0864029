import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { GateRequest, JsonObject } from "../../schemas/gate.ts";
import { gateRequestSchema } from "../../schemas/gate.ts";
import { projectDir } from "./stack.ts";

const caseSchema = z.strictObject({
  name: z.string(),
  request: z.record(z.string(), z.unknown()),
  facts: z
    .strictObject({ tenant: z.strictObject({ state: z.enum(["active", "frozen"]), version: z.number() }) })
    .optional(),
  expect: z.strictObject({
    decision: z.string(),
    reason_code: z.string(),
    /** Every rule that matches, sorted. */
    rules: z.array(z.string()),
  }),
});

export interface PolicyCase {
  readonly name: string;
  readonly request: GateRequest;
  readonly facts: { readonly tenant: { readonly state: "active" | "frozen"; readonly version: number } };
  readonly expect: z.output<typeof caseSchema>["expect"];
}

/** All cases of `test/corpus/policy`, against the default bundle. */
export const policyCases = (): PolicyCase[] => {
  const dir = join(projectDir, "test", "corpus", "policy");
  return readdirSync(dir)
    .filter((file) => file.endsWith(".json"))
    .flatMap((file) =>
      z
        .array(caseSchema)
        .parse(JSON.parse(readFileSync(join(dir, file), "utf8")))
        .map(({ name, request, facts, expect }) => ({
          name: `${file.replace(".json", "")}: ${name}`,
          request: {
            ...gateRequestSchema.parse({ runtime: "own", session_id: "corpus", ...request }),
            // As it is in the file: the parser drops a key named `__proto__`.
            input: request["input"] as JsonObject,
          },
          facts: { tenant: facts?.tenant ?? { state: "active" as const, version: 1 } },
          expect,
        })),
    );
};
