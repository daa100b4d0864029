import { describe, expect, it } from "vitest";
import { givenBundle, givenFiles } from "./given-bundle.ts";
import type { ParsedPolicy } from "./parse-policy.ts";
import { parsePolicy, toBundleDigest } from "./parse-policy.ts";
import type { Policy } from "./policy.ts";
import { toProblemLines } from "./problem.ts";

function policyOf(parsed: ParsedPolicy): Policy {
  if (!parsed.ok) throw new Error(toProblemLines(parsed.problems));
  return parsed.policy;
}

/** The problems of the small bundle with these files in place of its own. */
function problemsWith(changes: Readonly<Record<string, string | null>>): string[] {
  const parsed = parsePolicy(givenBundle(changes), "small");
  return parsed.ok ? [] : toProblemLines(parsed.problems).split("\n");
}

/** A file of the small bundle with one part replaced. */
function edited(file: string, from: string, to: string): Record<string, string> {
  const text = givenFiles[file] ?? "";
  if (!text.includes(from)) throw new Error(`${file} has no ${from}`);
  return { [file]: text.replace(from, () => to) };
}

describe("a bundle that is right", () => {
  const policy = policyOf(parsePolicy(givenBundle(), "small"));

  it("is read whole: each kind of rule in plain values", () => {
    expect(policy).toMatchObject({
      name: "small",
      localTools: ["todo.write"],
      risk: { levels: { medium: 30, high: 60, critical: 85 }, rules: [{ id: "risk.install", points: 40 }] },
      approvals: [
        {
          id: "ask.deploy",
          ttlMs: 900_000,
          priority: 5,
          by: "approver",
          when: { environments: ["staging"] },
        },
      ],
      facts: [
        { fact: "deploy.freeze", maxAgeMs: 600_000, deadlineMs: 1_800_000, denyWhen: [true], by: null },
      ],
      constraints: [{ constraints: { network: "listed", max_runtime_seconds: 600 } }],
      labels: [{ labels: ["secret_read"] }],
      rewrites: [
        { set: { description: "set by policy", deep: { list: [1, null] } }, remove: ["justification"] },
      ],
      rates: [{ scope: "session", windowMs: 60_000, limit: 60 }],
      budgets: [{ scope: "tenant", windowMs: null, limit: 5, cost: 1 }],
    });
    expect(policy.signals.map(({ id, tools, test }) => [id, tools, test.kind])).toEqual([
      ["file.secret", ["*"], "path"],
      ["text.internal", ["shell.run"], "any_text"],
      ["tracker.delete", ["*"], "command"],
      ["file.named", ["file.*"], "field"],
    ]);
    expect(policy.signals[2]?.test).toMatchObject({
      any: [
        ["tracker", "delete"],
        ["tracker", "remove"],
      ],
    });
  });

  it("is named by its date and its content", () => {
    const digest = toBundleDigest(givenBundle());
    expect(policy.digest).toBe(digest);
    expect(policy.digest).toMatch(/^[0-9a-f]{64}$/);
    expect(policy.revision).toBe(`policy@2026-01-31.1+${digest.slice(0, 12)}`);
  });

  it("has one digest whatever the order of its files, and another for each byte and each path", () => {
    const files = givenBundle();
    expect(toBundleDigest(new Map([...files].reverse()))).toBe(toBundleDigest(files));
    expect(toBundleDigest(new Map([["a", "bc"]]))).not.toBe(toBundleDigest(new Map([["ab", "c"]])));
    const digests = [{}, { "README.md": "" }, { "README.md": "é" }, { "README.md": "e" }].map((one) =>
      toBundleDigest(givenBundle(one)),
    );
    expect(new Set(digests).size).toBe(4);
  });

  it("may leave out what it does not need", () => {
    const needed = [
      "bundle.yaml",
      "tools.yaml",
      "schema.cedarschema",
      "static-deny.cedar",
      "authorization.cedar",
    ];
    const changes = Object.fromEntries(
      Object.keys(givenFiles).flatMap((file) => (needed.includes(file) ? [] : [[file, null] as const])),
    );
    const lonely = {
      ...changes,
      "static-deny.cedar": "",
      "authorization.cedar": '@id("allow.read") permit(principal, action == Action::"read", resource);',
    };
    const least = policyOf(parsePolicy(givenBundle(lonely), "small"));
    expect(least.risk).toEqual({ levels: { medium: 30, high: 60, critical: 85 }, rules: [] });
    expect(least.signals).toEqual([]);
  });
});

describe("a bundle that is wrong is refused with file and line", () => {
  const head = (lines: number): string => "// a comment\n".repeat(lines);
  const forbid = (id: string, rest: string): string =>
    `@id("${id}") @message("no")\nforbid(principal, action, resource)\n${rest};\n`;
  const rule = (when: string): string => `rules:\n  - id: risk.one\n    points: 1\n    when: { ${when} }\n`;
  const risk = (when: string): Record<string, string> => ({
    "risk.yaml": `levels: { medium: 30, high: 60, critical: 85 }\n${rule(when)}`,
  });
  const signal = (test: string): Record<string, string> => ({
    "signals.yaml": `signals:\n  - id: file.secret\n    field_present: [a]\n  - id: text.internal\n    ${test}\n`,
  });
  const tool = (key: string, value: string): Record<string, string> =>
    edited(
      "tools.yaml",
      "  - tool: mcp.tracker.*\n",
      `  - tool: extra.tool\n    effect: read\n    action: read\n    data_class: internal\n    ${key}: ${value}\n  - tool: mcp.tracker.*\n`,
    );

  const wrong: readonly (readonly [string, Record<string, string | null>, RegExp])[] = [
    ["a missing file", { "tools.yaml": null }, /^tools\.yaml: the file is missing$/],
    ["a file of no known name", { "deny.yaml": "" }, /^deny\.yaml: no file of a bundle has this name/],
    [
      "a path that leads out",
      { "cases/../../x.yaml": "" },
      /^cases\/\.\.\/\.\.\/x\.yaml: no file of a bundle/,
    ],
    [
      "a file that is too large",
      { "README.md": "é".repeat(524_289) },
      /^README\.md: the file is larger than 1 MiB$/,
    ],
    [
      "a wrong revision",
      edited("bundle.yaml", ".1\n", "\n"),
      /^bundle\.yaml:1: revision: a revision has the form/,
    ],
    [
      "an unknown local tool",
      edited("bundle.yaml", "todo.write", "todo.rite"),
      /^bundle\.yaml:3: todo\.rite: no tool/,
    ],
    [
      "a local tool with effects",
      edited("bundle.yaml", "todo.write", "file.read"),
      /^bundle\.yaml:3: file\.read: .*effect none/,
    ],

    ["a YAML error", edited("limits.yaml", "    window: 1m", "    window: [1m"), /^limits\.yaml:[5-9]: /],
    [
      "an unknown key",
      edited("approvals.yaml", "    ttl:", "    tll: 1\n    ttl:"),
      /^approvals\.yaml:5: rules\[0\]\.tll: the key is not known$/,
    ],
    [
      "a missing key",
      edited("approvals.yaml", "    ttl: 15m\n", ""),
      /^approvals\.yaml:2: rules\[0\]\.ttl: is missing$/,
    ],
    [
      "a doubled key",
      edited("approvals.yaml", "    ttl:", "    message: x\n    ttl:"),
      /^approvals\.yaml:5: the key `message` is there twice$/,
    ],
    [
      "an anchor",
      edited("approvals.yaml", "ttl: 15m", "ttl: &a 15m"),
      /^approvals\.yaml:5: anchors are not taken/,
    ],
    [
      "an alias",
      edited("approvals.yaml", "rules:", "x: &a [1]\ny: *a\nrules:"),
      /^approvals\.yaml:2: aliases are not taken/,
    ],
    [
      "a tag that runs code elsewhere",
      edited("approvals.yaml", "ttl: 15m", "ttl: !!js/function 15m"),
      /^approvals\.yaml:5: unresolved tag/,
    ],
    ["a bottomless nesting", { "limits.yaml": `rates: ${"[".repeat(200_000)}` }, /^limits\.yaml(:1)?: /],
    [
      "a key of the prototype",
      edited("approvals.yaml", "    ttl:", "    __proto__: { a: 1 }\n    ttl:"),
      /^approvals\.yaml:5: rules\[0\]\.__proto__: the key is not known$/,
    ],

    [
      "an id in two files",
      edited("risk.yaml", "risk.install", "ask.deploy"),
      /the id `ask\.deploy` is taken: /,
    ],
    [
      "an id of a Cedar policy in a YAML file",
      edited("risk.yaml", "risk.install", "allow.read"),
      /^authorization\.cedar:1: the id `allow\.read` is taken: risk\.yaml:3$/,
    ],
    [
      "an id of the gate's own",
      edited("risk.yaml", "risk.install", "git.push"),
      /^risk\.yaml:3: the id `git\.push` is taken/,
    ],
    [
      "an id in capitals",
      edited("risk.yaml", "risk.install", "Risk"),
      /^risk\.yaml:3: rules\[0\]\.id: an id has the form/,
    ],
    [
      "a tool that is there twice",
      edited("tools.yaml", "mcp.tracker.*", "file.read"),
      /^tools\.yaml:\d+: file\.read: the tool is there twice$/,
    ],
    [
      "a case that is there twice",
      edited("cases/all.yaml", "a listing is allowed", "a push by force is denied"),
      /^cases\/all\.yaml:5: the case .* is there twice: cases\/all\.yaml:2$/,
    ],

    [
      "an unknown signal",
      risk("signals_all: [deploy, deplyo]"),
      /^risk\.yaml:5: risk\.one: no signal is named `deplyo`$/,
    ],
    [
      "an unknown signal that must be absent",
      risk("signals_none: [deplyo]"),
      /^risk\.yaml:5: .* no signal is named `deplyo`$/,
    ],
    ["an unknown tool", risk('tools: ["shel.*"]'), /^risk\.yaml:5: risk\.one: no tool is named `shel\.\*`$/],
    [
      "a label that nothing sets",
      risk("labels_any: [secret_raed]"),
      /^risk\.yaml:5: risk\.one: no rule sets the label `secret_raed`$/,
    ],
    [
      "an effect of no known name",
      risk("effects: [delete]"),
      /^risk\.yaml:5: rules\[0\]\.when\.effects\[0\]: /,
    ],
    ["points that hang on the score", risk("risk_at_least: 5"), /^risk\.yaml:5: .*points cannot depend/],
    ["levels that fall", edited("risk.yaml", "high: 60", "high: 20"), /^risk\.yaml:1: levels: levels rise/],
    [
      "a wrong duration",
      edited("approvals.yaml", "15m", "15 minutes"),
      /^approvals\.yaml:5: rules\[0\]\.ttl: a duration has the form/,
    ],
    [
      "a duration of nothing",
      edited("limits.yaml", "1m", "0s"),
      /^limits\.yaml:5: rates\[0\]\.window: a duration has the form/,
    ],
    [
      "a rewrite that does nothing",
      edited(
        "rewrites.yaml",
        "    set: { description: set by policy, deep: { list: [1, null] } }\n    remove: [justification]\n",
        "",
      ),
      /^rewrites\.yaml:2: rules\[0\]: name what is set or removed$/,
    ],
    [
      "a constraint of no known name",
      edited("constraints.yaml", "network: listed", "netwrok: listed"),
      /^constraints\.yaml:4: .*netwrok: the key is not known$/,
    ],

    [
      "a pattern that is not RE2",
      signal("any_text_matches: '(?=x)'"),
      /^signals\.yaml:5: .*the pattern is not RE2/,
    ],
    [
      "a signal with two tests",
      signal("field_present: [a]\n    outside_workspace: any"),
      /^signals\.yaml:4: signals\[1\]: a signal has exactly one test; there are field_present, outside_workspace$/,
    ],
    [
      "a signal without a test",
      signal("tools: [shell.run]"),
      /^signals\.yaml:4: signals\[1\]: a signal has exactly one test; there is none$/,
    ],
    [
      "a signal with half a test",
      signal("matches: x"),
      /^signals\.yaml:4: signals\[1\]: `field` or `fields` and `matches` belong together$/,
    ],
    [
      "a signal about an unknown tool",
      signal("tools: [nope.nope]\n    field_present: [a]"),
      /^signals\.yaml:5: text\.internal: no tool is named `nope\.nope`$/,
    ],
    [
      "a test that can be walked around",
      signal("field: path\n    matches: x"),
      /^signals\.yaml:4: text\.internal: `file\.read` can name its resource by `file_path` too/,
    ],

    [
      "a schema that does not compile",
      tool("schema", "{ type: objekt }"),
      /^tools\.yaml:\d+: extra\.tool: the schema is refused/,
    ],
    [
      "a schema with an unknown keyword",
      tool("schema", "{ type: object, propertys: {} }"),
      /the schema is refused: .*unknown keyword/,
    ],
    [
      "a schema with an unknown format",
      tool("schema", "{ type: object, properties: { a: { type: string, format: urll } } }"),
      /the schema is refused: unknown format/,
    ],
    [
      "a schema that reaches out",
      tool("schema", '{ $ref: "https://example.com/schema.json" }'),
      /the schema is refused: `\$ref: https:/,
    ],
    [
      "a schema that holds itself",
      tool("schema", '{ $ref: "#/$defs/a", $defs: { a: { items: { $ref: "#/$defs/a" } } } }'),
      /refers to itself/,
    ],
    [
      "a schema whose pattern is not RE2",
      tool("schema", '{ type: object, properties: { a: { type: string, pattern: "(?=x)" } } }'),
      /the schema is refused/,
    ],
    [
      "a schema that takes quadratic time",
      tool("schema", "{ type: object, properties: { a: { type: array, uniqueItems: true } } }"),
      /`uniqueItems` needs `maxItems`/,
    ],
    [
      "a volatile resource",
      tool("resource", "{ kind: url, fields: [url] }\n    volatile: [url]"),
      /^tools\.yaml:\d+: .*never volatile$/,
    ],
    ...["workdir", "cwd", "working_directory", "shell", "env"].map(
      (field): [string, Record<string, string>, RegExp] => [
        `a volatile ${field} of a command`,
        tool("resource", `{ kind: command, fields: [command] }\n    volatile: [${field}]`),
        /^tools\.yaml:\d+: .*where or how a command runs is never volatile$/,
      ],
    ),
    [
      "a resource without fields",
      tool("resource", "{ kind: url }"),
      /^tools\.yaml:\d+: .*name the input fields/,
    ],

    [
      "an action that only the catalogue has",
      edited("tools.yaml", "action: write", "action: edit"),
      /^tools\.yaml:\d+: file\.write: the schema has no action `edit`$/,
    ],
    [
      "an action that only the schema has",
      edited("schema.cedarschema", "run, read", "run, deploy, read"),
      /^schema\.cedarschema: no tool has the action `deploy`/,
    ],
    [
      "a syntax error in the schema",
      edited("schema.cedarschema", "signals: Set<String>,", "signals: Set<String>;"),
      /^schema\.cedarschema:4: .*unexpected token `;`/,
    ],
    [
      "an unknown type in the schema",
      edited("schema.cedarschema", "tool: String", "tool: Strin"),
      /^schema\.cedarschema(:\d+)?: .*Strin/,
    ],
    [
      "an attribute that is never given",
      edited("schema.cedarschema", "tool: String,", "tool: String, hour: Long,"),
      /^schema\.cedarschema:\d+: context of run: the attribute `hour` is never given$/,
    ],
    [
      "an attribute that is missing",
      edited("schema.cedarschema", "user: String, ", ""),
      /^schema\.cedarschema:1: Agent: the attribute `user: String` is missing$/,
    ],
    [
      "an optional attribute",
      edited("schema.cedarschema", "tool: String,", "tool?: String,"),
      /context of run: the attribute `tool` has to be `tool: String`$/,
    ],
    [
      "a namespace",
      { "schema.cedarschema": `namespace Fabric {\n${givenFiles["schema.cedarschema"] ?? ""}\n}` },
      /^schema\.cedarschema:1: `Fabric`: put everything outside of namespaces$/,
    ],

    [
      "a syntax error in line 40",
      { "static-deny.cedar": `${head(37)}${forbid("deny.x", 'when { context.tool = "é" }')}` },
      /^static-deny\.cedar:40: '=' is not a valid operator/,
    ],
    [
      "a syntax error after letters of two bytes",
      { "static-deny.cedar": `${"// é\n".repeat(39)}forbid(principal action, resource);\n` },
      /^static-deny\.cedar:40: unexpected token `action`/,
    ],
    [
      "a validation error in line 40",
      { "static-deny.cedar": `${"// é\n".repeat(37)}${forbid("deny.x", "when { context.nope }")}` },
      /^static-deny\.cedar:40: for policy `deny\.x`, attribute `nope` in context .* not found/,
    ],
    [
      "an unknown action",
      {
        "static-deny.cedar":
          '@id("deny.x") @message("no")\nforbid(principal,\n  action == Action::"rnu", resource);',
      },
      /^static-deny\.cedar:3: for policy `deny\.x`, unrecognized action/,
    ],
    [
      "a policy that can never match",
      { "static-deny.cedar": forbid("deny.x", "when { false }") },
      /policy is impossible/,
    ],
    [
      "a policy without a name",
      { "static-deny.cedar": '\n@message("no")\nforbid(principal, action, resource);' },
      /^static-deny\.cedar:2: the policy has no name/,
    ],
    [
      "a forbid without a message",
      { "static-deny.cedar": '@id("deny.x")\nforbid(principal, action, resource);' },
      /^static-deny\.cedar:1: `deny\.x`: say what to do/,
    ],
    [
      "a permit in the file of denies",
      { "static-deny.cedar": '@id("allow.x")\npermit(principal, action, resource);' },
      /^static-deny\.cedar:1: `allow\.x`: this file holds forbids only$/,
    ],
    [
      "two policies of one name",
      { "static-deny.cedar": forbid("deny.x", "") + forbid("deny.x", "") },
      /^static-deny\.cedar:4: the id `deny\.x` is taken: static-deny\.cedar:1$/,
    ],
    [
      "an unknown annotation",
      { "static-deny.cedar": `@why("x")\n${forbid("deny.x", "")}` },
      /`deny\.x`: the annotation `@why` is not known/,
    ],
    [
      "an unknown reason",
      { "static-deny.cedar": `@reason("BECAUSE")\n${forbid("deny.x", "")}` },
      /the reason `BECAUSE` is not in the table/,
    ],
    [
      "a forbid that calls itself allowed",
      { "static-deny.cedar": `@reason("ALLOWED")\n${forbid("deny.x", "")}` },
      /ALLOWED belongs to permits/,
    ],
    [
      "a wrong priority",
      { "static-deny.cedar": `@priority("high")\n${forbid("deny.x", "")}` },
      /a priority is a whole number/,
    ],
    [
      "a template",
      {
        "static-deny.cedar":
          '@id("deny.x") @message("no") forbid(principal == ?principal, action, resource);',
      },
      /^static-deny\.cedar:1: a template/,
    ],
    [
      "a signal that no one sets, in Cedar",
      { "static-deny.cedar": forbid("deny.x", 'when { context.signals.containsAny(["deploy", "deplyo"]) }') },
      /^static-deny\.cedar:1: `deny\.x`: no signal is named `deplyo`$/,
    ],
    [
      "a label that no one sets, in Cedar",
      { "static-deny.cedar": forbid("deny.x", 'when { context.labels.contains("secret_raed") }') },
      /`deny\.x`: no rule sets the label `secret_raed`$/,
    ],
    [
      "a tool that is not there, in Cedar",
      { "static-deny.cedar": forbid("deny.x", 'when { context.tool == "shell.rnu" }') },
      /`deny\.x`: no tool is named `shell\.rnu`$/,
    ],

    [
      "a case with a wrong request",
      edited("cases/all.yaml", "tool: shell.run, input: { command: ls }", "tool: shell, input: {}"),
      /^cases\/all\.yaml:6: .*request\.tool/,
    ],
    [
      "a case with an unknown reason",
      edited("cases/all.yaml", "STATIC_DENY", "STATIC"),
      /^cases\/all\.yaml:4: .*reason_code.*not in the table/,
    ],
    [
      "a case with an unknown key",
      edited("cases/all.yaml", "facts: {", "facts: { now: 1,"),
      /^cases\/all\.yaml:7: .*facts\.now: the key is not known$/,
    ],
    [
      "a case with a label that nothing sets",
      edited("cases/all.yaml", "labels: [secret_read]", "labels: [secret]"),
      /^cases\/all\.yaml:7: .*no rule sets the label `secret`$/,
    ],
  ];
  it.each(wrong)("%s", (_name, changes, expected) => {
    const problems = problemsWith(changes);
    expect(
      problems.filter((line) => expected.test(line)),
      problems.join("\n"),
    ).not.toEqual([]);
  });

  it("all at once, in the order of files and lines", () => {
    const problems = problemsWith({
      ...edited("approvals.yaml", "    ttl: 15m", "    ttl: soon\n    tll: 1"),
      ...edited("bundle.yaml", "todo.write", "todo.rite"),
      ...risk("signals_any: [one.unknown, other.unknown]"),
      "static-deny.cedar": `forbid(principal action, resource);\nforbid(principal, action, resource) when {;`,
    });
    expect(problems.map((line) => /^[^ ]+:(?= )/.exec(line)?.[0])).toEqual([
      "approvals.yaml:5:",
      "approvals.yaml:6:",
      "bundle.yaml:3:",
      "risk.yaml:5:",
      "risk.yaml:5:",
      "static-deny.cedar:1:",
      "static-deny.cedar:2:",
    ]);
  });

  it("with all names that nothing has, whatever else is wrong in the files that declare them", () => {
    const problems = problemsWith({
      ...edited("tools.yaml", "    effect: execute", "    effect: explode"),
      ...edited("signals.yaml", "any_text_matches: 'internal'", "any_text_matches: '('"),
      ...edited("labels.yaml", "[text.internal]", "[text.internal, text.internl]"),
      ...edited("limits.yaml", "    window: 1m\n", "    window: soon\n"),
      ...risk("signals_any: [text.internal, text.extrenal, file.named], tools: [shell.run, shell.rnu]"),
      "static-deny.cedar": forbid("text.internal", 'when { context.signals.contains("deplyo") }'),
    });
    expect(problems.map((line) => line.replace(/: (.{20}).*$/, ": $1"))).toEqual([
      "labels.yaml:3: label.secret: no sig",
      "limits.yaml:5: rates[0].window: a d",
      "risk.yaml:5: risk.one: no signal ",
      "risk.yaml:5: risk.one: no tool is",
      "signals.yaml:6: signals[1].any_text_",
      "static-deny.cedar:1: `text.internal`: no ",
      "static-deny.cedar:1: the id `text.interna",
      "tools.yaml:3: tools[0].effect: inv",
    ]);
  });

  it("with every name that two have, also beside an entry that is wrong", () => {
    const problems = problemsWith({
      "signals.yaml":
        "signals:\n  - { id: a.one, field_present: [a] }\n  - { id: a.one, field_present: [b] }\n" +
        "  - { id: a.one, any_text_matches: '(' }\n  - { id: a.two }\n",
      "tools.yaml": `${givenFiles["tools.yaml"] ?? ""}  - { tool: file.read, effect: reads }\n`,
    });
    const twice = problems.filter((line) => /is taken|is there twice/.test(line));
    expect(twice.map((line) => line.split(": ", 2).join(": "))).toEqual([
      "signals.yaml:3: the id `a.one` is taken",
      "signals.yaml:4: the id `a.one` is taken",
      "tools.yaml:33: file.read",
    ]);
  });

  it.each([
    ["a list", "  - { id: a.last, field_present: [a, b"],
    ["a map", "  - { id: a.last, field_present: [a]"],
    ["a double quote", '  - { id: "a.last, field_present: [a] }'],
    ["a single quote", "  - { id: 'a.last, field_present: [a] }"],
  ])("at the line where %s begins that never ends, and not where the reader gave up", (_name, line) => {
    const text = `signals:\n${"# a comment\n".repeat(38)}${line}\n  - { id: b.one, field_present: [a] }\n\n`;
    const problems = problemsWith({ "signals.yaml": text }).filter((one) => one.startsWith("signals"));
    expect(problems).not.toEqual([]);
    for (const one of problems) expect(one).toMatch(/^signals\.yaml:40: /);
  });

  it("and a name that is no name", () => {
    expect(parsePolicy(givenBundle(), "../small")).toMatchObject({ ok: false });
  });

  it("within a moment, whatever is in it", { timeout: 60_000 }, () => {
    const started = performance.now();
    const keys = Array.from({ length: 100_000 }, (_, index) => `k${String(index)}: 1`).join("\n");
    expect(problemsWith({ "limits.yaml": keys })).not.toEqual([]);
    const bomb = `a: &a [1,1,1,1,1,1,1,1,1]\n${"bcdefghij".replace(/./g, (key, at: number) => `${key}: &${key} [${`*${"abcdefghij"[at] ?? ""},`.repeat(9)}]\n`)}`;
    expect(problemsWith({ "limits.yaml": bomb })).not.toEqual([]);
    expect(performance.now() - started).toBeLessThan(20_000);
  });
});
