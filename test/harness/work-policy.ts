import { givenBundle } from "../../services/gate/policy/given-bundle.ts";
import { parsePolicy } from "../../services/gate/policy/parse-policy.ts";
import type { Policy } from "../../services/gate/policy/policy.ts";

const files: Readonly<Record<string, string>> = {
  "signals.yaml": `signals:
  - { id: work.ask, command: { any: [ask] } }
  - { id: work.ask-briefly, command: { any: [ask-briefly] } }
  - { id: work.secret, command: { any: [read-secret] } }
  - { id: work.send, command: { any: [send-out] } }
  - { id: work.count, command: { any: [count-one] } }
  - { id: work.wait, command: { any: [wait-for-word] } }
  - { id: work.rewrite, command: { any: [rewrite-me] } }
`,
  "static-deny.cedar": `@id("deny.never")
@message("never, whoever asks")
forbid(principal, action == Action::"run", resource)
when { context.signals.contains("git.push.force") };
`,
  "authorization.cedar": `@id("allow.all")
permit(principal, action, resource);

@id("deny.after-secret")
@message("a secret was read in this session; nothing leaves from here")
forbid(principal, action == Action::"run", resource)
when { context.labels.contains("secret_read") && context.signals.contains("work.send") };
`,
  "approvals.yaml": `rules:
  - { id: ask.person, when: { signals_any: [work.ask] }, message: somebody has to agree, ttl: 15m }
  - { id: ask.briefly, when: { signals_any: [work.ask-briefly] }, message: somebody has to agree soon, ttl: 700ms }
`,
  "facts.yaml": `rules:
  - id: fact.word
    when: { signals_any: [work.wait] }
    fact: release.word
    max_age: 10m
    deadline: 30m
    deny_when: [no]
    message: waits for the word on the release
`,
  "risk.yaml": `levels: { medium: 30, high: 60, critical: 85 }
rules:
  - { id: risk.ask, points: 45, when: { signals_any: [work.ask] } }
`,
  "labels.yaml": `rules:
  - { id: label.secret, when: { signals_any: [work.secret] }, labels: [secret_read] }
`,
  "limits.yaml": `budgets:
  - id: budget.one
    when: { signals_any: [work.count] }
    scope: session
    limit: 1
    message: the one call is used up
`,
  "rewrites.yaml": `rules:
  - id: rewrite.quiet
    when: { signals_any: [work.rewrite] }
    set: { command: "echo password=hunter2-rewritten-hunter2" }
    message: runs the quiet form
`,
  "cases/all.yaml": `cases:
  - name: a push by force is denied
    request: { tool: shell.run, input: { command: git push --force } }
    expect: { decision: deny }
`,
};

/** A policy with one command for each thing that a decision can lead to. */
export const workPolicy = (changes: Readonly<Record<string, string | null>> = {}): Policy => {
  const parsed = parsePolicy(givenBundle({ "constraints.yaml": null, ...files, ...changes }), "work");
  if (!parsed.ok) throw new Error(parsed.problems.map((one) => JSON.stringify(one)).join("\n"));
  return parsed.policy;
};
