import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { loadBashParser } from "../../services/gate/shell/load-bash-parser.ts";
import { isAllowed, isDenied } from "../../services/gate/shell/normal-form.ts";
import { parseCommand } from "../../services/gate/shell/parse-command.ts";
import type { ParsedCommand } from "../../services/gate/shell/parsed-command.ts";
import type { BashParser } from "../../services/gate/shell/syntax-tree.ts";
import { readCorpus, wrapCommand } from "../corpus/commands/corpus.ts";

let parser: BashParser;
beforeAll(async () => {
  parser = await loadBashParser();
});
const parse = (text: string): ParsedCommand =>
  parseCommand(parser, text, { cwd: "/project", home: "/home/u" });
const programsOf = (parsed: ParsedCommand): ReadonlySet<string> =>
  new Set(parsed.commands.map(({ program }) => program));

const corpus = readCorpus();
const clear = corpus.filter(({ opaque }) => !opaque);
const layers = fc.array(fc.nat({ max: 1_000 }), { minLength: 1, maxLength: 5 });

describe("a command in any layers", () => {
  it("keeps its programs in the parse, or the parse is opaque", () => {
    fc.assert(
      fc.property(fc.constantFrom(...clear), layers, ({ text, programs }, chosen) => {
        const parsed = parse(wrapCommand(text, chosen).text);
        if (parsed.opaque.length > 0) return;
        expect([...programsOf(parsed)]).toEqual(expect.arrayContaining([...programs]));
      }),
      { numRuns: 1_500 },
    );
  });

  it("stays clear in one layer for most commands, so that opaque is no way out", () => {
    const wrapped = clear.flatMap(({ text }) =>
      [0, 3, 4, 9, 10, 18].map((layer) => parse(wrapCommand(text, [layer]).text)),
    );
    expect(wrapped.filter(({ opaque }) => opaque.length === 0).length / wrapped.length).toBeGreaterThan(0.9);
  });

  it("stays opaque when it is opaque outside of them", () => {
    fc.assert(
      fc.property(
        // An unfinished list goes on in the next line of the layer, and is whole there.
        fc.constantFrom(
          ...corpus.filter(
            ({ text, opaque, runnable }) => opaque && runnable !== false && !/(&&|\|)\s*$/.test(text),
          ),
        ),
        layers,
        ({ text }, chosen) => {
          expect(parse(wrapCommand(text, chosen).text).opaque).not.toEqual([]);
        },
      ),
      { numRuns: 600 },
    );
  });

  it("is denied inside when it is denied outside, unless it is opaque", () => {
    const denied = [["rm"], ["git", "push", "--force"], ["terraform", "destroy"], ["sudo"]] as const;
    fc.assert(
      fc.property(fc.constantFrom(...clear), layers, ({ text }, chosen) => {
        const parsed = parse(wrapCommand(text, chosen).text);
        if (!isDenied(parse(text), denied) || parsed.opaque.length > 0) return;
        expect(isDenied(parsed, denied)).toBe(true);
      }),
      { numRuns: 600 },
    );
  });

  it("is never allowed by a rule that names one part of it only", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...clear),
        fc.constantFrom(...clear),
        fc.constantFrom(";", "&&", "||", "|", "&", "\n"),
        (left, right, join) => {
          const parsed = parse(`${left.text}\n: ${join} ${right.text}`);
          const only = [...left.programs, ":"].map((program) => [program] as const);
          if (right.programs.every((program) => left.programs.includes(program) || program === ":")) return;
          expect(isAllowed(parsed, only)).toBe(false);
        },
      ),
      { numRuns: 600 },
    );
  });
});

describe("any text", () => {
  const pieces = fc.constantFrom(
    ..."rm|x|$(|)|`|'|\"|\\|;|&&||||&|>|<|<<E|\nE\n|\n| |${|}|{|$X|X=rm|eval|sh -c|#|*|~|$'|((|))|[[|]]|if|then|fi|for|in|do|done|case|esac|f()|!|<(|<<<|2>&1|\t".split(
      "|",
    ),
    "|",
  );
  it("is answered by a value, the same one each time, and never by a fault", () => {
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 40 }), (parts) => {
        const text = parts.join("");
        expect(parse(text)).toEqual(parse(text));
      }),
      { numRuns: 1_500 },
    );
  });
  it("of any characters is answered as well", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
        expect(parse(text).opaque).toBeInstanceOf(Array);
      }),
      { numRuns: 500 },
    );
  });
});
