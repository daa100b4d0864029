import { createHash } from "node:crypto";
import { builtInSignals } from "../built-in-signals.ts";
import { createCedarPolicies, engineRuleId } from "./cedar-engine.ts";
import type { CedarRule } from "./cedar-rule.ts";
import { parseCedarSchema } from "./cedar-schema.ts";
import type { PolicyCase } from "./parse-cases.ts";
import { parseCases } from "./parse-cases.ts";
import type { CedarNames } from "./parse-cedar.ts";
import { parseCedarFile } from "./parse-cedar.ts";
import { parsePrograms } from "./parse-programs.ts";
import type { PlacedRule } from "./parse-rules.ts";
import { parseRules } from "./parse-rules.ts";
import { parseSignals } from "./parse-signals.ts";
import type { ToolCatalogue } from "./parse-tools.ts";
import { parseHead, parseTools } from "./parse-tools.ts";
import type { Policy } from "./policy.ts";
import type { PolicyProblem } from "./problem.ts";
import { compareTexts, toSortedProblems } from "./problem.ts";
import { createRuleIds } from "./rule-ids.ts";

export type ParsedPolicy =
  | { readonly ok: true; readonly policy: Policy; readonly cases: readonly PolicyCase[] }
  | { readonly ok: false; readonly problems: readonly PolicyProblem[] };

const neededFiles = [
  "bundle.yaml",
  "tools.yaml",
  "schema.cedarschema",
  "static-deny.cedar",
  "authorization.cedar",
] as const;
const otherFiles = [
  ...["signals.yaml", "risk.yaml", "approvals.yaml", "facts.yaml", "constraints.yaml", "labels.yaml"],
  ...["rewrites.yaml", "limits.yaml", "programs.yaml", "README.md"],
];
const knownFiles: ReadonlySet<string> = new Set([...neededFiles, ...otherFiles]);

/** Largest file of a bundle, in bytes: what people write by hand, and a parser reads in a moment. */
export const fileMaxBytes = 1_048_576;
/** Labels that the gate sets by itself. */
const builtInLabels = ["policy_unavailable", "local_profile"] as const;

/** Reads a bundle from the texts of its files, by their paths. Every problem is reported, with file and line. */
export function parsePolicy(files: ReadonlyMap<string, string>, name: string): ParsedPolicy {
  const problems: PolicyProblem[] = [];
  if (!/^[a-z0-9][a-z0-9-]{0,63}$/.test(name)) {
    problems.push({
      file: "",
      line: 0,
      text: `a bundle has a name such as \`default\`, and not \`${name}\``,
    });
  }
  const usable = toUsableFiles(files, problems);
  const text = (file: string): string => usable.get(file) ?? "";

  const tools = usable.has("tools.yaml") ? parseTools("tools.yaml", text("tools.yaml"), problems) : null;
  const entries = tools?.entries ?? null;
  const head = usable.has("bundle.yaml")
    ? parseHead("bundle.yaml", text("bundle.yaml"), tools, problems)
    : null;
  const ids = createRuleIds([...builtInSignals, engineRuleId]);
  const signals = usable.has("signals.yaml")
    ? parseSignals("signals.yaml", text("signals.yaml"), { tools, ids }, problems)
    : { signals: [], names: [] };
  const programs = usable.has("programs.yaml")
    ? parsePrograms("programs.yaml", text("programs.yaml"), problems)
    : null;
  const { rules, placed, ids: ruleIds, hasAllLabels } = parseRules(usable, problems);
  for (const one of ruleIds) ids.claim(one.name, one.file, one.line, problems);

  // What cannot be read declares nothing: then names are not checked, rather than all called unknown.
  const signalNames = new Set([...builtInSignals, ...(signals?.names ?? [])]);
  const labelNames = new Set<string>([...builtInLabels, ...rules.labels.flatMap(({ labels }) => labels)]);
  const names: CedarNames = {
    hasSignal: (one) => signals === null || signalNames.has(one),
    hasLabel: (one) => !hasAllLabels || labelNames.has(one),
    hasTool: (one) => tools === null || tools.hasTool(one),
  };
  for (const one of placed) reportUnknownNames(one, names, problems);

  const schemaText = text("schema.cedarschema");
  const actions = usable.has("schema.cedarschema")
    ? parseCedarSchema("schema.cedarschema", schemaText, problems)
    : null;
  if (tools !== null && actions !== null) compareActions(tools, actions, problems);
  const cedarRules = ["static-deny.cedar", "authorization.cedar"].flatMap((file): readonly CedarRule[] => {
    const schema = actions === null ? null : schemaText;
    const options = { isStatic: file === "static-deny.cedar", schema, ids, names };
    return usable.has(file) ? parseCedarFile(file, text(file), options, problems) : [];
  });
  const cases = parseCases(usable, names, problems);

  if (problems.length > 0 || head === null || entries === null || actions === null || signals === null) {
    return { ok: false, problems: toSortedProblems(problems) };
  }
  const digest = toBundleDigest(files);
  const policy: Policy = {
    name,
    revision: `${head.revision}+${digest.slice(0, 12)}`,
    digest,
    tools: entries,
    signals: signals.signals,
    ...(programs === null || programs.size === 0 ? {} : { programs }),
    cedar: createCedarPolicies(cedarRules, actions),
    ...rules,
    localTools: head.localTools,
  };
  return { ok: true, policy, cases };
}

/** SHA-256, hex, over each path with the length and the bytes of its file, in the order of the paths. */
export function toBundleDigest(files: ReadonlyMap<string, string>): string {
  const hash = createHash("sha256");
  for (const [path, text] of [...files].sort(([a], [b]) => compareTexts(a, b))) {
    hash.update(`${path}\n${String(Buffer.byteLength(text))}\n`).update(text);
  }
  return hash.digest("hex");
}

function toUsableFiles(files: ReadonlyMap<string, string>, problems: PolicyProblem[]): Map<string, string> {
  const usable = new Map<string, string>();
  for (const [file, text] of files) {
    const isKnown = knownFiles.has(file) || /^cases\/[A-Za-z0-9][A-Za-z0-9._-]*\.yaml$/.test(file);
    if (!isKnown) problems.push({ file, line: 0, text: "no file of a bundle has this name; take it out" });
    else if (Buffer.byteLength(text) > fileMaxBytes)
      problems.push({ file, line: 0, text: "the file is larger than 1 MiB" });
    else usable.set(file, text);
  }
  for (const file of neededFiles) {
    if (!files.has(file)) problems.push({ file, line: 0, text: "the file is missing" });
  }
  return usable;
}

function reportUnknownNames(rule: PlacedRule, names: CedarNames, problems: PolicyProblem[]): void {
  const { when } = rule;
  const parts: readonly (readonly [string, readonly string[], (name: string) => boolean, string])[] = [
    ["tools", when.tools, names.hasTool, "no tool is named"],
    ["signals_any", when.signalsAny, names.hasSignal, "no signal is named"],
    ["signals_all", when.signalsAll, names.hasSignal, "no signal is named"],
    ["signals_none", when.signalsNone, names.hasSignal, "no signal is named"],
    ["labels_any", when.labelsAny, names.hasLabel, "no rule sets the label"],
    ["labels_none", when.labelsNone, names.hasLabel, "no rule sets the label"],
  ];
  for (const [key, list, isKnown, text] of parts) {
    list.forEach((name, index) => {
      if (isKnown(name)) return;
      const line = rule.lineOf(["when", key, index]);
      problems.push({ file: rule.file, line, text: `${rule.id}: ${text} \`${name}\`` });
    });
  }
}

/** The validator proves what policies say of the schema's actions; an action of a tool outside of it is proved nothing. */
function compareActions(tools: ToolCatalogue, actions: readonly string[], problems: PolicyProblem[]): void {
  tools.entries.forEach(({ tool, action }, index) => {
    if (actions.includes(action)) return;
    const line = tools.lineOf(index, "action");
    problems.push({ file: "tools.yaml", line, text: `${tool}: the schema has no action \`${action}\`` });
  });
  for (const action of tools.isWhole ? actions : []) {
    if (tools.entries.some((one) => one.action === action)) continue;
    problems.push({
      file: "schema.cedarschema",
      line: 0,
      text: `no tool has the action \`${action}\`; take it out`,
    });
  }
}
