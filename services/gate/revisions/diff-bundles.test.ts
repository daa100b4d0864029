import { describe, expect, it } from "vitest";
import { diffBundles } from "./diff-bundles.ts";

const files = (more: Record<string, string> = {}): ReadonlyMap<string, string> =>
  new Map(
    Object.entries({
      "bundle.yaml": "revision: policy@2026-01-01.1\n",
      "risk.yaml":
        "levels: {medium: 30, high: 60, critical: 85}\nrules:\n  - id: risk.a\n    points: 10\n    when: {tools: [shell.run]}\n",
      "static-deny.cedar":
        '@id("deny.a")\n@message("no")\nforbid (principal, action, resource) when { context.signals.contains("git.push.force") };\n',
      ...more,
    }),
  );

describe("a difference of two bundles", () => {
  it("is none when only order, comments and spaces differ", () => {
    const other = files({
      "risk.yaml":
        "# a note\nrules:\n  - {points: 10, id: risk.a, when: {tools: [shell.run]}}\nlevels: {critical: 85, high: 60, medium: 30}\n",
      "static-deny.cedar":
        '@message("no")\n@id("deny.a")\nforbid (principal,   action, resource)\n  when { context.signals.contains("git.push.force") };\n',
    });
    expect(diffBundles(files(), other)).toEqual([]);
  });

  it("names each rule that came, went or changed, and what of it", () => {
    const other = files({
      "risk.yaml":
        "levels: {medium: 20, high: 60, critical: 85}\nrules:\n  - id: risk.a\n    points: 25\n    when: {tools: [shell.run]}\n  - {id: risk.b, points: 5, when: {}}\n",
      "static-deny.cedar": '@id("deny.b")\n@message("no")\nforbid (principal, action, resource);\n',
    });
    expect(
      diffBundles(files(), other).map(({ where, what, change, parts }) => [
        where,
        what,
        change,
        parts.map(({ part, before, after }) => `${part}: ${String(before)} > ${String(after)}`).join("; "),
      ]),
    ).toEqual([
      ["policies of static-deny.cedar", "deny.a", "removed", ""],
      ["policies of static-deny.cedar", "deny.b", "added", ""],
      [
        "risk.yaml",
        "levels",
        "changed",
        'value: {"medium":30,"high":60,"critical":85} > {"medium":20,"high":60,"critical":85}',
      ],
      ["rules of risk.yaml", "risk.a", "changed", "points: 10 > 25"],
      ["rules of risk.yaml", "risk.b", "added", ""],
    ]);
  });

  it("shows a changed message of a policy as a changed message alone", () => {
    const other = files({
      "static-deny.cedar":
        '@id("deny.a")\n@message("never")\nforbid (principal, action, resource) when { context.signals.contains("git.push.force") };\n',
    });
    expect(diffBundles(files(), other)).toEqual([
      {
        where: "policies of static-deny.cedar",
        what: "deny.a",
        change: "changed",
        parts: [{ part: "message", before: "no", after: "never" }],
      },
    ]);
  });
});
