import { RE2JS } from "re2js";
import { beforeAll, describe, expect, it } from "vitest";
import type { JsonObject } from "../../schemas/gate.ts";
import { readUrl, toUrlsOfCommand } from "./classify-urls.ts";
import type { TouchedPath } from "./classified.ts";
import type { SignalTest } from "./policy/policy.ts";
import { loadBashParser } from "./shell/load-bash-parser.ts";
import { parseCommand } from "./shell/parse-command.ts";
import type { BashParser } from "./shell/syntax-tree.ts";
import { matchedTextMaxChars, testSignals } from "./signals.ts";

let bash: BashParser;
beforeAll(async () => {
  bash = await loadBashParser();
});

const pattern = (text: string): RE2JS => RE2JS.compile(text);
type Case = {
  input?: JsonObject;
  touched?: readonly TouchedPath[];
  command?: string;
  urls?: () => URL[];
  tools?: string[];
};
function tested(test: SignalTest, { input = {}, touched = [], command, urls, tools = [] }: Case) {
  const parsed = command === undefined ? null : parseCommand(bash, command, { cwd: "/project" });
  return testSignals([{ id: "it", tools, test }], {
    tool: "shell.run",
    input,
    texts: Object.values(input).flatMap((value) => (typeof value === "string" ? [value] : [])),
    touched,
    workingDirectory: "/project",
    urls: urls ?? (() => (parsed === null ? [] : toUrlsOfCommand(parsed))),
    command: parsed,
  });
}
const holds = (test: SignalTest, one: Case): boolean => tested(test, one).held.length === 1;

describe("a signal", () => {
  it("is of its tools alone", () => {
    const test: SignalTest = { kind: "field_present", fields: ["a"] };
    expect(holds(test, { input: { a: 1 }, tools: ["shell.*"] })).toBe(true);
    expect(holds(test, { input: { a: 1 }, tools: ["file.*", "shell.runner"] })).toBe(false);
  });

  it("of a field sees texts, lists, numbers and truth values, between two line feeds", () => {
    const test: SignalTest = { kind: "field", fields: ["a", "b"], pattern: pattern("\n(?:x y|true|7)\n") };
    for (const b of ["x y", ["x", "y"], true, 7]) expect(holds(test, { input: { b } })).toBe(true);
    for (const b of ["x yz", null, { x: "x y" }, ""]) expect(holds(test, { input: { b } })).toBe(false);
  });

  it("of a field that is there is false for what is empty", () => {
    const test: SignalTest = { kind: "field_present", fields: ["a"] };
    for (const a of ["x", 0, true, ["x"], { b: 1 }]) expect(holds(test, { input: { a } })).toBe(true);
    for (const a of ["", null, false, [], {}]) expect(holds(test, { input: { a } })).toBe(false);
    expect(holds(test, { input: { b: 1 } })).toBe(false);
  });

  it("of paths sees its mode alone", () => {
    const touched: TouchedPath[] = [
      { path: "/project/.ENV", mode: "read" },
      { path: "/etc/x", mode: "write" },
    ];
    const at = (mode: "read" | "write" | "any", text: string): boolean =>
      holds({ kind: "path", mode, pattern: pattern(text) }, { touched });
    expect([at("read", "(?i)/\\.env\n"), at("write", "(?i)/\\.env\n"), at("any", "(?i)/\\.env\n")]).toEqual([
      true,
      false,
      true,
    ]);
    expect(at("read", "/\\.env\n")).toBe(false);
    const outside = (mode: "read" | "write" | "any"): boolean =>
      holds({ kind: "outside_workspace", mode }, { touched });
    expect([outside("read"), outside("write"), outside("any")]).toEqual([false, true, true]);
  });

  it.each([
    ["git push", true],
    ["cd x && sudo git -C dir push origin", true],
    ["sh -c 'git push'", true],
    ["git $VERB", true],
    ["git pull", false],
    ["echo git push", false],
    ["npm publish", true],
  ])("of commands sees what runs, and what may run: %s", (command, expected) => {
    expect(
      holds(
        {
          kind: "command",
          any: [
            ["git", "push"],
            ["npm", "publish"],
          ],
          option: null,
        },
        { command },
      ),
    ).toBe(expected);
  });

  it("of a command's option sees each word that may be it", () => {
    const test: SignalTest = {
      kind: "command",
      any: [["git", "push"]],
      option: pattern("\n(?:-f|--force)\n"),
    };
    expect(holds(test, { command: "git push -f" })).toBe(true);
    expect(holds(test, { command: "git push $X" })).toBe(true);
    expect(holds(test, { command: "git push" })).toBe(false);
  });

  it.each([
    ["curl -s http://EXAMPLE.test/x", true],
    ["curl example.test", true],
    ["curl example.test:8080/x", true],
    ["wget -q https://user@example.test./x", true],
    ["curl -H 'Host: example.test' https://other.test", false],
    ['curl "https://example.test/$X"', true],
    ['curl "https://$X/"', false],
    ["git clone https://example.test/r.git", true],
    ["pip install --index-url=https://example.test/simple x", true],
    ["curl --url example.test", true],
    ["echo x > example.test", false],
  ])("of hosts sees literal addresses of a command: %s", (command, expected) => {
    expect(holds({ kind: "url_host", pattern: pattern("\nexample\\.test\n") }, { command })).toBe(expected);
  });

  it("of hosts sees an address of numbers in its one form", () => {
    const test: SignalTest = { kind: "url_host", pattern: pattern("\n169\\.254\\.169\\.254\n") };
    for (const host of ["169.254.169.254", "0xa9fea9fe", "2852039166", "169.254.43518"])
      expect(holds(test, { command: `curl http://${host}/latest` })).toBe(true);
  });

  it("reads no address whose host programs read in two ways", () => {
    for (const text of [
      "http://a.test\\@b.test/",
      "http:\\\\a.test/",
      "http://a@b@c.test/",
      "http://a.te\tst/",
      "a.test",
    ])
      expect(() => readUrl("url", text), text).toThrow(/^the input field `url` holds/);
    expect(readUrl("url", "https://u:p@a.test/x@y?z=\\@b").hostname).toBe("a.test");
  });

  it("of schemes sees each that is not listed", () => {
    const test: SignalTest = { kind: "url_scheme_other_than", schemes: ["https"] };
    expect(holds(test, { command: "curl http://a.test" })).toBe(true);
    expect(holds(test, { command: "curl https://a.test" })).toBe(false);
  });

  it("that cannot be tested is a finding that names it", () => {
    const long = "x".repeat(matchedTextMaxChars + 1);
    const { held, findings } = tested({ kind: "any_text", pattern: pattern("y") }, { input: { a: long } });
    expect(held).toEqual([]);
    expect(findings).toMatchObject([{ rule: "it", reason: "RULE_FAILED" }]);
    const broken = (): URL[] => {
      throw new RangeError("no address");
    };
    expect(tested({ kind: "url_host", pattern: pattern("x") }, { urls: broken }).findings).toMatchObject([
      { rule: "it", reason: "RULE_FAILED" },
    ]);
  });
});
