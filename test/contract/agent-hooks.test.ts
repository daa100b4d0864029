import { readFileSync, readdirSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { describe, expect, it } from "vitest";
import { toCanonicalJson } from "../../services/platform/canonical-json.ts";
import { checkContext, identify } from "../../services/adapters/sdk/agent-hooks/context.ts";
import { HostFault, interceptionPoints } from "../../services/adapters/sdk/agent-hooks/interception.ts";
import type { JsonObject } from "../../services/adapters/sdk/sdk.ts";
import { runVector } from "../harness/agent-hooks-run.ts";
import type { Vector } from "../harness/agent-hooks-vectors.ts";
import { agentHooksCorpus, findDifferences, readVectors } from "../harness/agent-hooks-vectors.ts";

/** What the SDK's host declares of AGENT-HOOKS-0.1; services/adapters/sdk/README.md says the same. */
const declared = {
  capabilities: ["model_calls", "tool_calls"],
  profiles: ["sequential/first_deny", "sequential/run_all"],
};
/** Every vector that is left out, by name, with what the host would have to declare. */
const leftOut: Readonly<Record<string, string>> = {
  "AH-CTK-084": "parallel/strictest",
  "AH-CTK-085": "parallel/strictest",
  "AH-CTK-086": "parallel/strictest",
  "AH-CTK-087": "parallel/unanimous",
  "AH-CTK-088": "parallel/unanimous",
  "AH-CTK-090": "int64_json",
  "AH-CTK-091": "bigint_json",
  "AH-CTK-095": "int64_json",
  "AH-CTK-110": "incremental_output",
  "AH-CTK-111": "incremental_output",
  "AH-CTK-112": "incremental_output",
  "AH-CTK-113": "incremental_output",
};

const vectors = readVectors();
const missing = ({ capabilities = [], composition }: Vector): readonly string[] => [
  ...capabilities.filter((one) => !declared.capabilities.includes(one)),
  ...(composition === undefined || declared.profiles.includes(composition.profile)
    ? []
    : [composition.profile]),
];
const applicable = vectors.filter((one) => missing(one).length === 0);
const schemaOf = (name: string): object =>
  JSON.parse(readFileSync(`${agentHooksCorpus}/schema/${name}`, "utf8")) as object;
const ajv = new Ajv2020({ strict: false });
addFormats.default(ajv);
for (const name of ["interception-point.schema.json", "verdict.schema.json"]) ajv.addSchema(schemaOf(name));
const isRecord = ajv.compile(schemaOf("interception-record.schema.json"));
const isContext = new Map(
  interceptionPoints.map((point) => [
    point as string,
    ajv.compile(schemaOf(`agent-context/${point}.schema.json`)),
  ]),
);

describe("the public vectors of AGENT-HOOKS-0.1", () => {
  it("are all there, and each is run or left out by name for want of exactly what is declared", () => {
    expect(vectors).toHaveLength(51);
    expect(new Set(vectors.map(({ id }) => id)).size).toBe(51);
    const named = Object.fromEntries(
      vectors.filter((one) => missing(one).length > 0).map((one) => [one.id, missing(one).join(", ")]),
    );
    expect(named).toEqual(leftOut);
    expect(applicable.length + Object.keys(leftOut).length).toBe(vectors.length);
    expect(
      readdirSync(`${agentHooksCorpus}/vectors`).every((name) => /^AH-CTK-\d{3}-.*\.json$/.test(name)),
    ).toBe(true);
  });

  it.each(applicable.map((one) => [one.id, one.title, one] as const))(
    "%s: %s",
    async (_id, _title, vector) => {
      const run = await runVector(vector);
      expect(findDifferences(vector, run)).toEqual([]);
      for (const record of run.records)
        expect(isRecord(record), JSON.stringify([record, isRecord.errors])).toBe(true);
      for (const context of run.shown) {
        const check = isContext.get(context["interception_point"] as string);
        expect(check?.(context), JSON.stringify(check?.errors)).toBe(true);
      }
    },
  );

  it("would be seen to fail: a run that ends otherwise differs from each vector", async () => {
    for (const vector of applicable) {
      const run = await runVector(vector);
      const outcome = run.outcome === "completed" ? "blocked" : "completed";
      expect(findDifferences(vector, { ...run, outcome }), vector.id).not.toEqual([]);
    }
  });
});

describe("the golden identities of AGENT-HOOKS-0.1", () => {
  const { fixtures } = JSON.parse(readFileSync(`${agentHooksCorpus}/golden/identity.json`, "utf8")) as {
    fixtures: readonly {
      readonly id: string;
      readonly ctx: JsonObject;
      readonly expect: {
        readonly canonical_json?: string;
        readonly context_identity?: string;
        readonly error?: string;
      };
    }[];
  };
  /**
   * Its published identity is that of 9.999999999999996e+22: its generator reads the literal 9.999999999999997e+22 one step
   * too low. ECMAScript, and so RFC 8785, keeps what is written.
   */
  const misread = "G-15-rfc8785-numbers";
  const identities = fixtures.filter(({ expect: wanted }) => wanted.context_identity !== undefined);
  const refusals = fixtures.filter(({ expect: wanted }) => wanted.error !== undefined);

  it("are identities or refusals, and there is no third kind", () => {
    expect(identities.length + refusals.length).toBe(fixtures.length);
    expect(refusals.length).toBeGreaterThan(0);
  });

  it.each(identities.filter(({ id }) => id !== misread).map((one) => [one.id, one] as const))(
    "%s",
    (_id, { ctx, expect: wanted }) => {
      checkContext(ctx);
      expect(toCanonicalJson(ctx)).toBe(wanted.canonical_json);
      expect(identify("jcs-sha256", ctx)).toBe(wanted.context_identity);
    },
  );

  it(`${misread} differs in the one number that its generator misread`, () => {
    const one = identities.find(({ id }) => id === misread);
    const right = one?.expect.canonical_json?.replaceAll("9.999999999999996e+22", "9.999999999999997e+22");
    expect(right).not.toBe(one?.expect.canonical_json);
    expect(toCanonicalJson(one?.ctx ?? {})).toBe(right);
    const asMisread = JSON.parse(one?.expect.canonical_json ?? "{}") as JsonObject;
    expect(identify("jcs-sha256", asMisread)).toBe(one?.expect.context_identity);
  });

  it.each(refusals.map((one) => [one.id, one] as const))("%s is refused", (_id, { ctx, expect: wanted }) => {
    const read = (): void => {
      checkContext(ctx);
      identify("jcs-sha256", ctx);
    };
    expect(read).toThrow(HostFault);
    expect(read).toThrow(expect.objectContaining({ reason: wanted.error }) as Error);
  });
});
