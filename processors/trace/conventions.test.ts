import { readFileSync } from "node:fs";
import * as incubating from "@opentelemetry/semantic-conventions/incubating";
import { expect, it } from "vitest";
import { conventionsVersion, own, providerOf, semantic } from "./conventions.ts";

it("names attributes as the pinned version of the conventions does", () => {
  const manifest = new URL(
    "../../node_modules/@opentelemetry/semantic-conventions/package.json",
    import.meta.url,
  );
  const installed = JSON.parse(readFileSync(manifest, "utf8")) as { version: string };
  expect(installed.version).toBe(conventionsVersion);
  const names = incubating as unknown as Record<string, unknown>;
  expect(Object.fromEntries(Object.keys(semantic).map((name) => [name, names[name]]))).toEqual(semantic);
});

it("keeps own names apart from those of the conventions", () => {
  expect(Object.values(own).filter((name) => !name.startsWith("fabric."))).toEqual([]);
});

it("says who serves a model only where its name tells", () => {
  expect([providerOf("claude-x"), providerOf("gpt-5"), providerOf("llama")]).toEqual([
    "anthropic",
    "openai",
    undefined,
  ]);
});
