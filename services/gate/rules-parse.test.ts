import { describe, expect, it } from "vitest";
import { parseBundle } from "./rules-parse.ts";

const good = {
  "bundle.yaml": "revision: policy@2026-03-01.1\n",
  "tools.yaml": `tools:
  - tool: shell.run
    effect: execute
    action: run
    data_class: internal
    resource: { kind: command, fields: [command] }
`,
  "deny.yaml": `rules:
  - id: deny.shell.one
    tools: [shell.run]
    when: { field: command, matches: 'a+' }
    message: no
`,
};
const parse = (files: Partial<typeof good>): ReturnType<typeof parseBundle> =>
  parseBundle(new Map(Object.entries({ ...good, ...files })));
const problems = (files: Partial<typeof good>): string[] => {
  const parsed = parse(files);
  return parsed.ok ? [] : parsed.problems.map(({ file, line, text }) => `${file}:${String(line)}: ${text}`);
};

describe("a bundle", () => {
  it("gets its digest into its revision", () => {
    const one = parse({});
    const two = parse({ "deny.yaml": good["deny.yaml"].replace("a+", "b+") });
    if (!one.ok || !two.ok) expect.fail();
    expect(one.bundle.revision).toMatch(/^policy@2026-03-01\.1\+[0-9a-f]{12}$/);
    expect(two.bundle.digest).not.toBe(one.bundle.digest);
  });

  it("is refused with all problems at once, each with file and line", () => {
    const found = problems({
      "bundle.yaml": "revision: v7\n",
      "tools.yaml":
        good["tools.yaml"].replace("execute", "destroy") +
        "  - tool: mcp.git.*\n    effect: write\n    action: x\n    data_class: internal\n",
      "deny.yaml":
        good["deny.yaml"].replace("'a+'", "'(?=a)'") +
        "  - id: deny.shell.two\n    tools: []\n    when: { field: command }\n    message: no\n",
    });
    expect(found).toEqual([
      expect.stringMatching(/^bundle\.yaml:1: revision: .*policy@/),
      expect.stringMatching(/^tools\.yaml:3: tools\.0\.effect/),
      expect.stringMatching(/^tools\.yaml:8: tools\.1\.effect: a wildcard may cover only tools that read/),
      expect.stringMatching(/^deny\.yaml:7: rules\.1\.tools/),
      expect.stringMatching(/^deny\.yaml:8: rules\.1\.when/),
    ]);
  });

  it("takes patterns that run in linear time, and no others", () => {
    expect(problems({ "deny.yaml": good["deny.yaml"].replace("'a+'", "'(a)\\1'") })).toEqual([
      expect.stringMatching(/^deny\.yaml:4: the pattern is not RE2/),
    ]);
  });

  it("refuses a rule or a tool that is there twice, an unknown key, a missing file and broken YAML", () => {
    const twice = good["deny.yaml"] + good["deny.yaml"].replace("rules:\n", "");
    expect(problems({ "deny.yaml": twice })).toEqual(["deny.yaml:6: `deny.shell.one` is there twice"]);
    expect(problems({ "deny.yaml": good["deny.yaml"].replace("message", "mesage") })[0]).toContain(
      "deny.yaml:2",
    );
    expect(problems({ "deny.yaml": "rules: [\n" })[0]).toMatch(/^deny\.yaml:\d/);
    const files = new Map(Object.entries(good));
    files.delete("tools.yaml");
    expect(parseBundle(files)).toMatchObject({ ok: false, problems: [{ file: "tools.yaml", line: 0 }] });
  });

  it("never lets a field that names the resource be volatile", () => {
    const found = problems({ "tools.yaml": `${good["tools.yaml"]}    volatile: [command]\n` });
    expect(found).toEqual([expect.stringContaining("never volatile")]);
  });

  it("refuses a rule on one of the fields that name a tool's resource, unless it covers the others", () => {
    const tools = good["tools.yaml"].replace("[command]", "[command, cmd]");
    expect(problems({ "tools.yaml": tools })).toEqual([
      "deny.yaml:4: `shell.run` can name its resource by `cmd` too; list each under `fields`",
    ]);
    const wide = good["deny.yaml"].replace("field: command", "fields: [command, cmd]");
    expect(problems({ "tools.yaml": tools, "deny.yaml": wide })).toEqual([]);
    const byPattern = good["deny.yaml"].replace("[shell.run]", "['shell.*']");
    expect(problems({ "tools.yaml": tools, "deny.yaml": byPattern })).toHaveLength(1);
  });

  it("takes rules on addresses only for tools that name an address", () => {
    const onHost = good["deny.yaml"].replace("field: command, matches: 'a+'", "url_host_matches: 'a+'");
    expect(problems({ "deny.yaml": onHost })).toEqual([
      "deny.yaml:4: `shell.run` names its resource by no address; match its fields instead",
    ]);
    const tools = good["tools.yaml"].replace("command, fields: [command]", "url, fields: [url]");
    expect(problems({ "tools.yaml": tools, "deny.yaml": onHost })).toEqual([]);
  });
});
