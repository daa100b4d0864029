/**
 * What a history of events costs, worked out anew from the design's words alone: it imports nothing of the product, keeps
 * everything in memory and adds up fractions exactly. Slow and plain on purpose.
 */

/** An event as it travels, as far as money goes. */
export interface PlainEvent {
  readonly event_id: string;
  readonly type: string;
  readonly tenant_id: string;
  readonly recorded_at: number;
  readonly correlation_id: string;
  readonly actor: { readonly user_id: string | null };
  readonly execution: {
    readonly session_id: string | null;
    readonly tool_call_id: string | null;
    readonly attempt: number;
  };
  readonly subject: { readonly tool: string | null } | null;
  readonly redacted_summary: Readonly<Record<string, unknown>>;
}

/** A price in millionths: of a model per million tokens, of a tool per call, second and MiB. */
export interface PlainPrice {
  readonly name: string;
  readonly from: string;
  readonly until?: string;
  readonly rates: readonly number[];
}

/** The price list as people write it. */
export function toPriceText(models: readonly PlainPrice[], tools: readonly PlainPrice[]): string {
  const lines = (prices: readonly PlainPrice[], what: string, units: readonly string[]): string[] =>
    prices.map(({ name, from, until, rates }) => {
      const dates = `valid_from: ${from}, ${until === undefined ? "" : `valid_to: ${until}, `}source: t`;
      const figures = units.map((unit, index) => `${unit}: ${String(rates[index] ?? 0)}`).join(", ");
      return `  - { ${what}: ${name}, ${dates}, ${figures} }`;
    });
  return [
    "currency: USD",
    "models:",
    ...lines(models, "model", [
      "input_micros_per_million",
      "cached_input_micros_per_million",
      "cache_write_micros_per_million",
      "output_micros_per_million",
    ]),
    "tools:",
    ...lines(tools, "tool", ["call_micros", "wall_second_micros", "output_mebibyte_micros"]),
  ].join("\n");
}

const within = (price: PlainPrice, name: string | null, at: number): boolean =>
  name === price.name &&
  Date.parse(price.from) <= at &&
  (price.until === undefined || at < Date.parse(price.until));

const whole = (value: unknown): bigint =>
  typeof value === "bigint" ? value : BigInt((value as number | null) ?? 0);

/** quantity × rate / unit, half up, by long division. */
function round(quantity: bigint, rate: number, unit: bigint): bigint {
  const exact = quantity * BigInt(rate);
  const quotient = exact / unit;
  return (exact % unit) * 2n >= unit ? quotient + 1n : quotient;
}

function costOf(event: PlainEvent, models: readonly PlainPrice[], tools: readonly PlainPrice[]): bigint {
  const s = event.redacted_summary;
  if (event.type === "fabric.cost.corrected") return whole(s["amount_micros"]);
  if (event.type === "agent.tool.completed") {
    if (s["outcome"] === "blocked") return 0n;
    const price = tools.find((one) => within(one, event.subject?.tool ?? null, event.recorded_at));
    if (price === undefined) return 0n;
    const [perCall = 0, perSecond = 0, perMebibyte = 0] = price.rates;
    return (
      BigInt(perCall) +
      round(whole(s["duration_ms"]), perSecond, 1000n) +
      round(whole(s["output_bytes"]), perMebibyte, 1024n * 1024n)
    );
  }
  if (event.type !== "agent.model.completed") return 0n;
  const price = models.find((one) => within(one, s["model"] as string, event.recorded_at));
  const knowsTokens = s["input_tokens"] !== null || s["output_tokens"] !== null;
  if (price === undefined || !knowsTokens) return s["cost_micros"] === null ? 0n : whole(s["cost_micros"]);
  const [input = 0, cached = 0, written = 0, output = 0] = price.rates;
  const million = 1_000_000n;
  const fresh = whole(s["input_tokens"]) - whole(s["cached_input_tokens"]) - whole(s["cache_write_tokens"]);
  return (
    round(fresh, input, million) +
    round(whole(s["cached_input_tokens"]), cached, million) +
    round(whole(s["cache_write_tokens"]), written, million) +
    round(whole(s["output_tokens"]), output, million)
  );
}

/** How little a report of a model call tells of its cost: 0 a price and tokens, 1 a claim, 2 tokens, 3 nothing. */
function silenceOf(event: PlainEvent, models: readonly PlainPrice[]): number {
  if (event.type !== "agent.model.completed") return 0;
  const s = event.redacted_summary;
  const knowsTokens = s["input_tokens"] !== null || s["output_tokens"] !== null;
  if (knowsTokens && models.some((one) => within(one, s["model"] as string, event.recorded_at))) return 0;
  return s["cost_micros"] !== null ? 1 : knowsTokens ? 2 : 3;
}

/** Names the call that an event tells of; two events with the same name tell of the same one. */
function callOf(event: PlainEvent): string {
  const { session_id, tool_call_id, attempt } = event.execution;
  if (event.type === "agent.tool.completed" && tool_call_id !== null) {
    return [event.tenant_id, event.correlation_id, session_id ?? "", "tool", tool_call_id, attempt].join("|");
  }
  const modelCallId = event.redacted_summary["model_call_id"];
  if (event.type === "agent.model.completed" && typeof modelCallId === "string") {
    return [event.tenant_id, event.correlation_id, session_id ?? "", "model", modelCallId, attempt].join("|");
  }
  if (event.type === "agent.subagent.started") {
    return [
      event.tenant_id,
      event.correlation_id,
      session_id ?? "",
      "sub",
      event.redacted_summary["subagent_id"],
    ].join("|");
  }
  if (event.type === "fabric.cost.corrected") {
    return [event.tenant_id, "correction", event.redacted_summary["correction_id"]].join("|");
  }
  return event.event_id;
}

/** Tenant and UTC day → millionths spent; days on which nothing was spent are left out. */
export function referenceTotals(
  events: readonly PlainEvent[],
  models: readonly PlainPrice[],
  tools: readonly PlainPrice[],
): Map<string, bigint> {
  const first = new Map<string, PlainEvent>();
  for (const event of events) {
    const known = first.get(callOf(event));
    const silence = silenceOf(event, models);
    const before = known === undefined ? 9 : silenceOf(known, models);
    const isEarlier =
      known === undefined ||
      silence < before ||
      (silence === before &&
        (event.recorded_at < known.recorded_at ||
          (event.recorded_at === known.recorded_at && event.event_id < known.event_id)));
    if (isEarlier) first.set(callOf(event), event);
  }
  const totals = new Map<string, bigint>();
  for (const event of first.values()) {
    // A repricing of a call goes with it, where a better report of the call took its place.
    const { cause, corrects_event_id: of } = event.redacted_summary;
    const corrected =
      event.type === "fabric.cost.corrected" && cause === "repriced"
        ? events.find((one) => one.event_id === of && one.tenant_id === event.tenant_id)
        : undefined;
    const isReplaced =
      corrected !== undefined &&
      corrected.type !== "fabric.cost.corrected" &&
      first.get(callOf(corrected))?.event_id !== corrected.event_id;
    if (isReplaced) continue;
    const day = new Date(event.recorded_at).toISOString().slice(0, 10);
    const key = `${event.tenant_id} ${day}`;
    totals.set(key, (totals.get(key) ?? 0n) + costOf(event, models, tools));
  }
  return new Map([...totals].filter(([, micros]) => micros !== 0n));
}
