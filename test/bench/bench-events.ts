import { newEventId } from "../../services/platform/ids.ts";
import { systemClock } from "../../services/platform/clock.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { draft, toEnvelope } from "../../schemas/envelope.ts";

/** The type that benchmarks publish: a finished tool call, the commonest event with a decision behind it. */
export const benchType = "agent.tool.completed";

/** Wire size of a benchmark event in bytes, header included; the baselines used the same. */
export const benchEventBytes = 900;

/** Ordering keys in flight: enough to fill six partitions and all lanes evenly. */
const correlations = 500;

/** Characters of the preview that bring the event to `benchEventBytes`. */
const previewChars = 64;

const hex = (seed: number, length: number): string =>
  seed
    .toString(16)
    .padStart(8, "0")
    .repeat(Math.ceil(length / 8))
    .slice(0, length);

/** The `index`-th event of a run: every optional field that a gated call has is there. Ids are in order of time. */
export function benchEvent(index: number): Envelope<typeof benchType> {
  const nowMs = systemClock.nowMs();
  const correlation = index % correlations;
  return toEnvelope(
    draft(
      benchType,
      {
        outcome: "succeeded",
        duration_ms: BigInt(40 + (index % 900)),
        output_bytes: 2_048 + (index % 500),
        output_preview: `On branch main, nothing to commit ${hex(index, previewChars)}`,
        error_preview: null,
        tool_alias: "Bash",
      },
      {
        occurred_at: nowMs,
        agent_id: "agent-main",
        user_id: "dev-42@acme.example",
        execution: {
          task_id: `task_${hex(correlation, 24)}`,
          session_id: `ses_${hex(correlation, 32)}`,
          turn_id: `turn_${String(index % 37)}`,
          tool_call_id: `toolu_${hex(index, 24)}`,
          attempt: 1,
        },
        policy: {
          revision: "policy@2026-11-30.1",
          risk: "medium",
          decision: "allow",
          reason_code: "ALLOWED",
          matched_rules: ["allow-shell-read-only", "label-untrusted-input"],
        },
        subject: {
          tool: "shell.run",
          action: "execute",
          resource_ref: "repo:acme/payments#main",
          data_class: "internal",
        },
        plan_digest: `sha256:${hex(index, 64)}`,
        capability_id: `cap_${hex(index, 32)}`,
      },
    ),
    {
      eventId: newEventId(systemClock),
      recordedAtMs: nowMs,
      tenantId: "acme",
      environment: "production",
      runtime: {
        kind: "claude-code",
        adapter_version: "1.0.0",
        runtime_version: "2.1.295",
        permission_mode: "default",
        sandbox: null,
      },
      correlationId: `cor_${hex(correlation, 32)}`,
      causationId: `evt_${hex(index, 32)}`,
      origin: "agent",
      payloadRef: `vault://acme/${hex(index, 32)}`,
      payloadDigest: `hmac-sha256:${hex(index, 64)}`,
      traceparent: `00-${hex(correlation, 32)}-${hex(index, 16)}-01`,
    },
  );
}

/**
 * The event id inside a framed payload, read from its place: 5 bytes of header, 1 byte of length, 40 characters
 * (`event_id` is the first field). It proves what arrived, whoever sent it.
 */
export function eventIdOf(value: Buffer): string {
  return value.toString("latin1", 6, 46);
}
