/** A small bundle with a rule of each kind, for tests: they change one file of it and see what comes of it. */
export const givenFiles: Readonly<Record<string, string>> = {
  "bundle.yaml": `revision: policy@2026-01-31.1
description: a small bundle
local_tools: [todo.write]
`,
  "schema.cedarschema": `entity Agent { tenant: String, user: String, runtime: String };
entity Tool { effect: String, data_class: String, environment: String };
type Circumstances = {
  signals: Set<String>,
  labels: Set<String>,
  tool: String,
  effect: String,
  runtime: String,
  environment: String,
  tenant: String,
  user: String,
};
action run, read, write, note appliesTo { principal: [Agent], resource: [Tool], context: Circumstances };
`,
  "static-deny.cedar": `// Never, whoever asks.
@id("deny.force-push")
@message("push without force")
@priority("10")
forbid(principal, action == Action::"run", resource)
when { context.signals.contains("git.push.force") };

@id("deny.secret-file")
@message("ask for the value that is needed; this file holds secrets")
forbid(principal, action, resource)
when { context.signals.containsAny(["secret.read", "file.secret"]) };
`,
  "authorization.cedar": `@id("allow.read")
permit(principal, action == Action::"read", resource);

@id("allow.run")
permit(principal, action in [Action::"run", Action::"write", Action::"note"], resource)
unless { context.environment == "production" };

@id("deny.after-secret")
@message("a secret was read in this session; nothing leaves from here")
forbid(principal, action == Action::"run", resource)
when { context.labels.contains("secret_read") && context.signals.contains("network.send") };
`,
  "tools.yaml": `tools:
  - tool: shell.run
    effect: execute
    action: run
    data_class: internal
    resource: { kind: command, fields: [command] }
    volatile: [description]
    schema:
      type: object
      required: [command]
      properties:
        command: { type: string, minLength: 1 }
        url: { type: string, format: uri }
        mode: { type: string, pattern: "^(a+)+$" }
  - tool: file.read
    effect: read
    action: read
    data_class: confidential
    resource: { kind: path, fields: [file_path, path] }
  - tool: file.write
    effect: write
    action: write
    data_class: confidential
    resource: { kind: path, fields: [file_path, path] }
  - tool: todo.write
    effect: none
    action: note
    data_class: internal
  - tool: mcp.tracker.*
    effect: read
    action: read
    data_class: internal
`,
  "signals.yaml": `signals:
  - id: file.secret
    path_matches: { any: '/\\.env\\n' }
  - id: text.internal
    tools: [shell.run]
    any_text_matches: 'internal'
  - id: tracker.delete
    command: { any: [tracker delete, tracker remove], option: '--all' }
  - id: file.named
    tools: ["file.*"]
    fields: [file_path, path]
    matches: '\\.pem\\n'
`,
  "risk.yaml": `levels: { medium: 30, high: 60, critical: 85 }
rules:
  - id: risk.install
    points: 40
    when: { signals_any: [package.install] }
`,
  "approvals.yaml": `rules:
  - id: ask.deploy
    when: { signals_any: [deploy], environments: [staging] }
    message: somebody has to agree to a deployment
    ttl: 15m
    priority: 5
`,
  "facts.yaml": `rules:
  - id: fact.freeze
    when: { signals_any: [deploy] }
    fact: deploy.freeze
    max_age: 10m
    deadline: 30m
    deny_when: [true]
    message: a release freeze is on
`,
  "constraints.yaml": `rules:
  - id: limit.network
    when: { effects: [execute] }
    constraints: { network: listed, max_runtime_seconds: 600 }
`,
  "labels.yaml": `rules:
  - id: label.secret
    when: { signals_any: [text.internal] }
    labels: [secret_read]
`,
  "rewrites.yaml": `rules:
  - id: rewrite.description
    when: { tools: [shell.run] }
    set: { description: set by policy, deep: { list: [1, null] } }
    remove: [justification]
    message: the description is set by policy
`,
  "limits.yaml": `rates:
  - id: rate.shell
    when: { tools: [shell.run] }
    scope: session
    window: 1m
    limit: 60
    message: too many commands in a minute
budgets:
  - id: budget.deploy
    when: { signals_any: [deploy] }
    scope: tenant
    limit: 5
    message: the deployments are used up
`,
  "cases/all.yaml": `cases:
  - name: a push by force is denied
    request: { tool: shell.run, input: { command: git push --force } }
    expect: { decision: deny, reason_code: STATIC_DENY, rules: [deny.force-push] }
  - name: a listing is allowed
    request: { tool: shell.run, input: { command: ls } }
    facts: { labels: [secret_read], dated: { deploy.freeze: { value: false, age: 2m } } }
    expect: { decision: allow }
`,
};

/** The small bundle with some files in place of its own; null takes one away. */
export function givenBundle(
  changes: Readonly<Record<string, string | null>> = {},
): ReadonlyMap<string, string> {
  const files = Object.entries({ ...givenFiles, ...changes });
  return new Map(files.flatMap(([path, text]) => (text === null ? [] : [[path, text] as const])));
}
