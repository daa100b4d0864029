import { describe, expect, it } from "vitest";
import { catalog } from "../../schemas/catalog.ts";
import { productFiles } from "./files.ts";

const types = Object.keys(catalog).sort();
const sources = productFiles(".avsc")
  .filter((file) => file.startsWith("schemas/events/"))
  .map((file) => file.slice("schemas/events/".length, -".avsc".length))
  .sort();

describe("topic names", () => {
  it("say room, noun and what happened", () => {
    expect(types.filter((type) => !/^(agent|integration|fabric)\.[a-z]+\.[a-z]+$/.test(type))).toEqual([]);
  });

  it("say what happened in a word that means something", () => {
    const vague = /\.(updated|done|changed|processed|handled|event|info|misc)$/;
    expect(types.filter((type) => vague.test(type))).toEqual([]);
  });

  it("have a schema source each, and each source a name in the catalogue", () => {
    expect(types.length).toBeGreaterThan(0);
    expect(sources).toEqual(types);
  });
});
