import { describe, expect, it } from "vitest";
import { hits, productFiles, textOf } from "./files.ts";

// The runtimes' own words. Business rules, topics and the console speak the product's words instead.
const RUNTIME_WORDS = [
  "PreToolUse",
  "PostToolUse",
  "PostToolUseFailure",
  "PermissionRequest",
  "UserPromptSubmit",
  "SubagentStart",
  "SubagentStop",
  "SessionStart",
  "SessionEnd",
  "PreCompact",
  "PostCompact",
  "pre_tool_call",
  "post_tool_call",
  "pre_llm_call",
  "post_llm_call",
  "before_tool_call",
  "after_tool_call",
  "tool\\.execute\\.before",
  "tool\\.execute\\.after",
  "hookSpecificOutput",
  "hook_event_name",
  "permissionDecision",
  "apply_patch",
];
const runtimeWord = new RegExp(`(?<![A-Za-z_])(${RUNTIME_WORDS.join("|")})(?![A-Za-z_])`);
const maySpeakThem = /^(services\/adapters\/|test\/|README\.md$|DESIGN\.md$)/;

// Joined from parts, so that this file does not hold what it forbids.
const join = (...parts: string[]): string => parts.join("");
const REGISTRY_HOSTS = [
  join("registry\\.", "npmjs"),
  join("registry\\.", "yarnpkg"),
  join("repo1?\\.", "maven"),
  join("pypi\\.", "org"),
  join("files\\.", "pythonhosted"),
  join("(?:static\\.)?", "crates\\.", "io"),
  join("proxy\\.", "golang"),
  join("(?:deb|security)\\.", "debian\\.", "org"),
];
const foreignPlace = new RegExp(
  [
    ...REGISTRY_HOSTS,
    `(?<![\\w.~$}/-])${join("/", "work")}/`,
    join("/tmp/", "brief"),
    join("/tmp/", "bash_jobs"),
    `(?<!/self)${join("/", "root/")}`,
    join("\\.\\./", "shared/"),
  ].join("|"),
);
const leftOver = new RegExp(
  `\\b(?:${join("TO", "DO")}|${join("FIX", "ME")}|${join("XX", "X")})\\b|@ts-${join("ig", "nore")}|@ts-${join("no", "check")}`,
);
const narrowedTest = new RegExp(
  `\\b(?:it|test|describe|suite)(?:\\.\\w+)*\\.(?:${join("on", "ly")}|${join("sk", "ip")})\\b(?!If)`,
);
const BINARY = /\.(png|jpe?g|gif|ico|woff2?|parquet|gz|tgz|zip|jar|bin|avro|p12|pem)$/;

const files = productFiles().filter((file) => !BINARY.test(file));
const code = files.filter((file) => /\.(ts|mjs|cjs|js)$/.test(file));

describe("words", () => {
  it("keeps the runtimes' own words in the adapters", () => {
    const others = files.filter((file) => !maySpeakThem.test(file) && file !== "package-lock.json");
    expect(hits(others, runtimeWord)).toEqual([]);
  });

  it("names no registry host and no folder of the machine it was written on", () => {
    expect(hits(files, foreignPlace)).toEqual([]);
  });

  it("locks packages by name and digest, not by the host they came from", () => {
    expect(hits(["package-lock.json"], /"resolved": *"[a-z+]+:\/\//)).toEqual([]);
  });

  it("leaves no note to finish later and no narrowed test behind", () => {
    expect(
      hits(
        files.filter((file) => file !== "package-lock.json" && file !== "LICENSE"),
        leftOver,
      ),
    ).toEqual([]);
    expect(hits(code, narrowedTest)).toEqual([]);
  });

  it("gives a reason with each suppression", () => {
    const directive =
      /(?:\/\/|\/\*) *(?:eslint-disable|@ts-expect-error|prettier-ignore|v8 ignore|c8 ignore)/;
    const withoutReason = hits(code, directive).filter(
      (line) =>
        !/(?:eslint-disable[\w-]*|prettier-ignore|(?:v8|c8) ignore)[^-]*(?:-[^-]+)* -- .{10,}|@ts-expect-error:? .{10,}/.test(
          line,
        ),
    );
    expect(withoutReason).toEqual([]);
  });

  it("has no folder or file named for nothing in particular", () => {
    const vague = /(^|\/)(utils?|helpers?|common|lib|misc|managers?)(\/|\.[a-z]+$)/;
    expect(files.filter((file) => vague.test(file) && !file.startsWith("test/corpus/"))).toEqual([]);
  });

  it("names code files in kebab case", () => {
    const kebab = /^\.?[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9-]+)*$/;
    expect(code.filter((file) => !kebab.test(file.slice(file.lastIndexOf("/") + 1)))).toEqual([]);
  });
});

describe("documents", () => {
  const targets = [...(textOf("Makefile") ?? "").matchAll(/^([a-z][a-z-]*):/gm)].map(([, name]) => name);

  it.each(["README.md", "DESIGN.md"])("%s speaks only of make targets that exist", (document) => {
    const spoken = [...(textOf(document) ?? "").matchAll(/(?:`|^\$? *)make ([a-z][a-z-]*)/gm)].map(
      ([, name]) => name,
    );
    expect([...new Set(spoken)].filter((name) => !targets.includes(name))).toEqual([]);
  });

  it("the list of phony targets is the list of targets", () => {
    const phony = [...(textOf("Makefile") ?? "").matchAll(/^\.PHONY: (.*)$/gm)].flatMap(
      ([, names]) => names?.split(" ") ?? [],
    );
    expect([...targets].sort()).toEqual(phony.sort());
  });
});
