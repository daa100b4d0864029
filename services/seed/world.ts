import type { DataClass, EffectClass, Risk } from "../../schemas/generated/types.ts";
import type { Random } from "./random.ts";

/** A kind of tool call, how often it comes, and what the gate makes of it. */
export interface CallKind {
  readonly weight: number;
  readonly tool: string;
  readonly action: string;
  readonly effect: EffectClass;
  readonly risk: Risk;
  readonly dataClass: DataClass;
  readonly verdict: "allow" | "deny" | "require_approval" | "defer";
  readonly reason: string;
  readonly rule: string;
  readonly preview: string;
  readonly resource: string;
  /** Median of the time that the tool takes. */
  readonly durationMs: number;
}

const kind = (
  weight: number,
  [tool, action, effect]: readonly [string, string, EffectClass],
  [verdict, reason, rule, risk]: readonly [CallKind["verdict"], string, string, Risk],
  [preview, resource, durationMs]: readonly [string, string, number],
): CallKind => ({
  weight,
  tool,
  action,
  effect,
  risk,
  dataClass: "internal",
  verdict,
  reason,
  rule,
  preview,
  resource,
  durationMs,
});

/** What agents do all day; `#` in a preview or resource becomes a number. */
export const callKinds: readonly [CallKind, ...CallKind[]] = [
  kind(
    38,
    ["file.read", "read", "read"],
    ["allow", "READ_ALLOWED", "allow-reads", "low"],
    ['{"path":"src/module-#.ts"}', "file:src/module-#.ts", 12],
  ),
  kind(
    14,
    ["shell.run", "run", "execute"],
    ["allow", "WORKSPACE_COMMAND", "allow-workspace", "low"],
    ['{"command":"npm test -- part-#"}', "workspace:repo", 9_000],
  ),
  kind(
    12,
    ["shell.run", "run", "read"],
    ["allow", "READ_ALLOWED", "allow-reads", "low"],
    ['{"command":"git status"}', "workspace:repo", 60],
  ),
  kind(
    20,
    ["file.edit", "edit", "write"],
    ["allow", "WORKSPACE_WRITE", "allow-workspace", "low"],
    ['{"path":"src/module-#.ts"}', "file:src/module-#.ts", 15],
  ),
  kind(
    7,
    ["web.fetch", "fetch", "network"],
    ["allow", "LISTED_HOST", "allow-listed-hosts", "medium"],
    ['{"url":"https://docs.example.com/page-#"}', "https://docs.example.com", 700],
  ),
  kind(
    3,
    ["deploy.apply", "apply", "network"],
    ["require_approval", "PRODUCTION_NEEDS_APPROVAL", "prod-needs-approval", "high"],
    ['{"service":"shop-#","environment":"production"}', "service:shop-#", 22_000],
  ),
  kind(
    2.5,
    ["shell.run", "run", "execute"],
    ["deny", "FORCE_PUSH", "no-force-push", "critical"],
    ['{"command":"git push --force"}', "workspace:repo", 0],
  ),
  kind(
    1.5,
    ["shell.run", "run", "execute"],
    ["deny", "WIDE_DELETE", "no-wide-delete", "critical"],
    ['{"command":"rm -rf /srv/data-#"}', "workspace:repo", 0],
  ),
  kind(
    1,
    ["mcp.unlisted", "call", "unknown"],
    ["deny", "TOOL_UNKNOWN", "unknown-tool", "unknown"],
    ['{"call":"sync-#"}', "mcp:unlisted", 0],
  ),
  kind(
    1,
    ["database.query", "query", "write"],
    ["defer", "FACT_MISSING", "needs-resource-state", "medium"],
    ['{"sql":"UPDATE orders SET state = 1 WHERE id = #"}', "database:orders", 0],
  ),
];

/** A company whose agents are recorded. */
export interface SeedTenant {
  readonly tenantId: string;
  readonly weight: number;
  readonly people: number;
}

/** The one with nine tenths of the traffic, and a long tail of small ones. */
const tailTenants = 40;
const bigTenantShare = 0.9;
const bigTenantPeople = 120;

/** Tenants whose names begin with `prefix`, the big one first. */
export function toTenants(prefix: string): readonly [SeedTenant, ...SeedTenant[]] {
  const tail = Array.from({ length: tailTenants }, (_, index) => 1 / (index + 1));
  const tailWeight = tail.reduce((sum, weight) => sum + weight, 0);
  return [
    { tenantId: `${prefix}-big`, weight: bigTenantShare, people: bigTenantPeople },
    ...tail.map((weight, index) => ({
      tenantId: `${prefix}-${String(index + 1).padStart(2, "0")}`,
      weight: ((1 - bigTenantShare) * weight) / tailWeight,
      people: Math.max(1, Math.round(12 * weight)),
    })),
  ];
}

/** Models that are called, with how often. */
export const models: readonly [
  { readonly weight: number; readonly model: string },
  ...{ readonly weight: number; readonly model: string }[],
] = [
  { weight: 6, model: "claude-sonnet-4-5" },
  { weight: 2, model: "claude-opus-4-1" },
  { weight: 3, model: "gpt-5-codex" },
  { weight: 1, model: "in-house-7b" },
];

/** Runtimes, with how often. */
export const runtimes: readonly [
  { readonly weight: number; readonly kind: string; readonly version: string },
  ...{ readonly weight: number; readonly kind: string; readonly version: string }[],
] = [
  { weight: 6, kind: "claude-code", version: "2.1.0" },
  { weight: 3, kind: "codex", version: "0.142.0" },
  { weight: 1, kind: "own-harness", version: "1.0.0" },
];

const dayMs = 86_400_000;
const hourMs = 3_600_000;

/** A moment of the span when people work: weekdays nine times in ten, most of it between 7 and 18 UTC. */
export function toWorkMoment(random: Random, startMs: number, days: number): number {
  for (;;) {
    const dayStartMs = startMs + random.between(0, days - 1) * dayMs;
    const weekday = new Date(dayStartMs).getUTCDay();
    if ((weekday === 0 || weekday === 6) && !random.chance(0.25)) continue;
    const hour = (random.unit() + random.unit() + random.unit()) / 3;
    return Math.floor(dayStartMs + (4 + hour * 18) * hourMs);
  }
}
