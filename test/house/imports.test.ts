import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { cruise } from "dependency-cruiser";
import type { ICruiseOptions, ICruiseResult, IFlattenedRuleSet } from "dependency-cruiser";
import extractTSConfig from "dependency-cruiser/config-utl/extract-ts-config";
import { beforeAll, describe, expect, it } from "vitest";
import { productFiles, ROOT } from "./files.ts";

type Config = { forbidden: { name: string }[]; options: ICruiseOptions };

const config = createRequire(import.meta.url)("../../.dependency-cruiser.cjs") as Config;
const FIXTURE = join(ROOT, "test/fixtures/house");

/** Runs the product's import rules over `folders` of `baseDir`. */
async function cruiseWithRules(baseDir: string, folders: string[]): Promise<ICruiseResult> {
  const { tsConfig, ...options } = config.options;
  const ruleSet = { forbidden: config.forbidden } as IFlattenedRuleSet;
  const { output } = await cruise(
    folders,
    { ...options, baseDir, validate: true, ruleSet },
    { bustTheCache: true },
    { tsConfig: extractTSConfig(join(ROOT, tsConfig?.fileName ?? "tsconfig.json")) },
  );
  if (typeof output === "string") throw new Error(`expected a cruise result, got text: ${output}`);
  return output;
}

/** One line a violation, as a person reads it: rule, from, to. */
function toLines(result: ICruiseResult): string[] {
  return result.summary.violations.map(({ rule, from, to, cycle }) =>
    [rule.name, from, ...(cycle?.map(({ name }) => name) ?? [to])].join(" → "),
  );
}

describe("imports of the product", () => {
  let result: ICruiseResult;
  const folders = ["schemas", "services", "processors", "test"];
  beforeAll(async () => {
    const present = new Set(productFiles(".ts").map((file) => file.split("/")[0]));
    result = await cruiseWithRules(
      ROOT,
      folders.filter((folder) => present.has(folder)),
    );
  });

  it("obey the rules", () => {
    expect(toLines(result)).toEqual([]);
  });

  it("were read from every source file, so that a parser that finds nothing is no pass", () => {
    const cruised = new Set(result.modules.map((module) => module.source));
    const sources = productFiles(".ts").filter((file) => folders.includes(file.split("/")[0] ?? ""));
    expect(sources.filter((file) => !cruised.has(file))).toEqual([]);
    const withImports = sources.filter((file) =>
      /^(import|export) .*from ["']/m.test(readFileSync(join(ROOT, file), "utf8")),
    );
    const edges = result.modules.filter((module) => module.dependencies.length > 0);
    expect(withImports.length).toBeGreaterThan(sources.length / 2);
    expect(edges.length).toBeGreaterThanOrEqual(withImports.length);
  });
});

describe("the import rules", () => {
  let found: string[];
  beforeAll(async () => {
    found = toLines(await cruiseWithRules(FIXTURE, ["schemas", "services", "processors"]));
  });

  it("find the planted cycle of type imports", () => {
    expect(found.filter((line) => line.startsWith("no-cycles"))).toEqual([
      expect.stringMatching(/processors\/cost\/(words|price)\.ts.*processors\/cost\/(words|price)\.ts/),
    ]);
  });

  it.each(config.forbidden.map(({ name }) => name))("find the fault planted for %s", (name) => {
    expect(found.some((line) => line.startsWith(`${name} → `))).toBe(true);
  });

  it("let the console read queries", () => {
    expect(found.filter((line) => line.includes("console/page.ts → processors/audit/queries.ts"))).toEqual(
      [],
    );
  });
});
