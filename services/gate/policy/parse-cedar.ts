import * as cedar from "@cedar-policy/cedar-wasm/nodejs";
import { reasonCodes } from "../../../schemas/gate.ts";
import type { ReasonCode } from "../../../schemas/gate.ts";
import { toGuard } from "./cedar-guard.ts";
import { toCedarLiterals } from "./cedar-literals.ts";
import type { CedarRule } from "./cedar-rule.ts";
import { toCedarProblems } from "./cedar-schema.ts";
import type { CedarPiece } from "./cedar-text.ts";
import { lineAt, lineAtByte, toCedarPieces, withEffect } from "./cedar-text.ts";
import { toUses } from "./cedar-uses.ts";
import type { PolicyProblem } from "./problem.ts";
import type { RuleIds } from "./rule-ids.ts";
import { messageMaxChars, priorityMax, ruleIdPattern } from "./rule-shapes.ts";

/** What the words in Cedar policies may name. */
export interface CedarNames {
  readonly hasSignal: (name: string) => boolean;
  readonly hasLabel: (name: string) => boolean;
  readonly hasTool: (name: string) => boolean;
}

interface Draft {
  /** The policy's id, or its place while it has none. */
  readonly key: string;
  readonly piece: CedarPiece;
  readonly line: number;
  readonly rule: CedarRule | null;
}

/**
 * The policies of one Cedar file. `schema`: the schema's text, to validate against; null when it has errors of its own.
 */
export function parseCedarFile(
  file: string,
  text: string,
  options: {
    readonly isStatic: boolean;
    readonly schema: string | null;
    readonly ids: RuleIds;
    readonly names: CedarNames;
  },
  problems: PolicyProblem[],
): readonly CedarRule[] {
  const cut = cedar.policySetTextToParts(text);
  if (cut.type === "failure") {
    problems.push(...cut.errors.flatMap((error) => toCedarProblems(file, text, error)));
    return [];
  }
  const pieces = toCedarPieces(text);
  const parts = new Set([...cut.policies, ...cut.policy_templates]);
  if (pieces?.every((piece) => parts.has(piece.text)) !== true) {
    problems.push({ file, line: 0, text: "the policies cannot be told apart; write one after the other" });
    return [];
  }
  const templates = new Set(cut.policy_templates);
  const drafts = pieces.map((piece, index): Draft => {
    const line = lineAt(text, piece.start);
    if (!templates.has(piece.text)) return toDraft(piece, line, `policy ${String(index + 1)}`);
    problems.push({
      file,
      line,
      text: "a template (`?principal`, `?resource`) is no policy; name what it is about",
    });
    return { key: `template ${String(index + 1)}`, piece, line, rule: null };
  });
  if (options.schema !== null)
    validate(
      drafts.filter(({ piece }) => !templates.has(piece.text)),
      options.schema,
    );
  return drafts.flatMap(({ rule }) => rule ?? []);

  function toDraft(piece: CedarPiece, line: number, place: string): Draft {
    const parsed = cedar.policyToJson(piece.text);
    const report = (problem: string): void => {
      problems.push({ file, line, text: problem });
    };
    if (parsed.type === "failure") {
      for (const error of parsed.errors) report(error.message);
      return { key: place, piece, line, rule: null };
    }
    const { effect, action, annotations = {}, conditions, principal, resource } = parsed.json;
    const before = problems.length;
    const id = annotations["id"] ?? "";
    if (id === "") report('the policy has no name; give it `@id("…")`');
    else if (!ruleIdPattern.test(id)) report(`\`${id}\`: an id has the form \`deny.secret-file\``);
    const isNew = options.ids.claim(id, file, line, problems);
    if (options.isStatic && effect === "permit") report(`\`${id}\`: this file holds forbids only`);
    for (const name of Object.keys(annotations)) {
      if (!["id", "message", "reason", "priority"].includes(name)) {
        report(`\`${id}\`: the annotation \`@${name}\` is not known (id, message, reason, priority)`);
      }
    }
    const message = annotations["message"] ?? "";
    if (message.length > messageMaxChars) report(`\`${id}\`: the message is too long`);
    if (effect === "forbid" && message === "") {
      report(`\`${id}\`: say what to do instead with \`@message("…")\``);
    }
    const silent: ReasonCode =
      effect === "permit" ? "ALLOWED" : options.isStatic ? "STATIC_DENY" : "NOT_AUTHORIZED";
    const reason = annotations["reason"] ?? silent;
    if (!isReasonCode(reason)) report(`\`${id}\`: the reason \`${reason}\` is not in the table`);
    else if ((effect === "permit") !== (reason === "ALLOWED")) {
      report(`\`${id}\`: the reason ALLOWED belongs to permits, and to them alone`);
    }
    const priority = annotations["priority"] ?? "0";
    if (!/^-?\d{1,4}$/.test(priority) || Math.abs(Number(priority)) > priorityMax) {
      report(
        `\`${id}\`: a priority is a whole number from -${String(priorityMax)} to ${String(priorityMax)}`,
      );
    }
    const { signals, labels, tools } = toCedarLiterals(conditions, resource);
    for (const one of signals)
      if (!options.names.hasSignal(one)) report(`\`${id}\`: no signal is named \`${one}\``);
    for (const one of labels)
      if (!options.names.hasLabel(one)) report(`\`${id}\`: no rule sets the label \`${one}\``);
    for (const one of tools)
      if (!options.names.hasTool(one)) report(`\`${id}\`: no tool is named \`${one}\``);
    const key = isNew && id !== "" ? id : place;
    if (problems.length > before || !isReasonCode(reason)) return { key, piece, line, rule: null };
    const rule: CedarRule = {
      id,
      effect,
      isStatic: options.isStatic,
      permitText: withEffect(piece, "permit"),
      actions: toActions(action),
      guard: toGuard(conditions, resource),
      uses: toUses(principal, resource, conditions),
      reason,
      message: message === "" ? "a rule of the catalogue allows this tool" : message,
      priority: Number(priority),
    };
    return { key, piece, line, rule };
  }

  function validate(those: readonly Draft[], schema: string): void {
    const byKey = new Map(those.map((one) => [one.key, one]));
    const policies = Object.fromEntries(those.map(({ key, piece }) => [key, piece.text]));
    const outcome = cedar.validate({ schema, policies: { staticPolicies: policies } });
    if (outcome.type === "failure") {
      for (const error of outcome.errors) problems.push({ file, line: 0, text: error.message });
      return;
    }
    const seen = new Set<string>();
    // What the validator only warns of, such as a policy that can never match, is never meant in a policy for a gate.
    for (const { policyId, error } of [...outcome.validationErrors, ...outcome.validationWarnings]) {
      const draft = byKey.get(policyId);
      const [location] = error.sourceLocations ?? [];
      // The same place is reported once for each action.
      const place = `${policyId} ${String(location?.start)} ${error.severity ?? ""}`;
      if (draft === undefined || seen.has(place)) continue;
      seen.add(place);
      const inside = location === undefined ? 1 : lineAtByte(draft.piece.text, location.start);
      const help = error.help === null ? "" : `; ${error.help}`;
      problems.push({ file, line: draft.line + inside - 1, text: `${error.message}${help}` });
    }
  }
}

function isReasonCode(text: string): text is ReasonCode {
  return Object.hasOwn(reasonCodes, text);
}

/** Names of the actions in the scope; null: all. */
function toActions(scope: cedar.ActionConstraint): readonly string[] | null {
  if (scope.op === "All") return null;
  const uids = "entities" in scope ? scope.entities : "entity" in scope ? [scope.entity] : [];
  return uids.map((uid) => ("__entity" in uid ? uid.__entity.id : uid.id));
}
