import type { Envelope } from "../../schemas/envelope.ts";
import { toAmount } from "./money.ts";
import type { ModelPrice, PriceList, ToolPrice } from "./prices.ts";
import { findPrice } from "./prices.ts";
import { parseAccount } from "./account.ts";
import type { CostEntry, CostEvent, Pricing, UsageRow } from "./usage-row.ts";
import { toBaseRow } from "./usage-row.ts";

/** What one event comes to: its row of usage, and the entries of its money, which add up to 0. */
export interface Charge {
  readonly usage: UsageRow;
  readonly entries: readonly CostEntry[];
}

/** More tokens than any call has: such a number is a fault of whoever reported it. */
const maxCount = 1_000_000_000_000n;
/** Highest amount that a source may claim for a call, or a person correct at once: a trillion of the currency. */
const maxAmountMicros = 1_000_000_000_000_000_000n;
const perMillion = 1_000_000n;
const perSecondMs = 1_000n;
const perMebibyte = 1_048_576n;

/**
 * Books one event. Throws on numbers that cannot be: below 0, absurdly high, or parts that are more than their whole;
 * the host then buries the event, and nothing is guessed.
 */
export function toCharge(event: CostEvent, prices: PriceList): Charge {
  switch (event.type) {
    case "agent.model.completed":
      return chargeModel(event, prices);
    case "agent.tool.completed":
      return chargeTool(event, prices);
    case "agent.subagent.started":
      return chargeSubagent(event);
    case "fabric.cost.corrected":
      return chargeCorrection(event);
  }
}

function chargeModel(event: Envelope<"agent.model.completed">, prices: PriceList): Charge {
  const summary = event.redacted_summary;
  const input = toCount("input_tokens", summary.input_tokens);
  const cached = toCount("cached_input_tokens", summary.cached_input_tokens);
  const written = toCount("cache_write_tokens", summary.cache_write_tokens);
  const output = toCount("output_tokens", summary.output_tokens);
  const reasoning = toCount("reasoning_tokens", summary.reasoning_tokens);
  // Convention of the event type: input_tokens holds all input once, output_tokens all output.
  if (cached + written > input) {
    throw new RangeError(`cached and cache-written tokens are more than input_tokens, which counts them too`);
  }
  if (reasoning > output)
    throw new RangeError("reasoning_tokens are more than output_tokens, which counts them too");
  const reported = toReported(summary.cost_micros);
  const tokens = { uncached: input - cached - written, cached, written, output };
  const price = findPrice(prices.models, summary.model, event.recorded_at);
  const isMeasured = summary.input_tokens !== null || summary.output_tokens !== null;
  const { session_id, attempt } = event.execution;
  const provider = `provider:${summary.model}`;
  const book = new Book(event.event_id);
  let pricing: Pricing;
  if (price !== null && isMeasured) {
    bookTokens(book, provider, tokens, price);
    pricing = { state: "listed", price };
  } else if (reported !== null) {
    book.pair(9, "spend:model:reported", provider, reported);
    pricing = { state: "reported", price: null };
  } else pricing = { state: isMeasured ? "unpriced" : "unmeasured", price: null };
  const usage: UsageRow = {
    ...toBaseRow(event, "model", pricing),
    // Two reports of one model call, such as one of a plugin and one of a shell hook, are one call.
    call_key:
      summary.model_call_id === null
        ? null
        : JSON.stringify(["model", event.correlation_id, session_id, summary.model_call_id, attempt]),
    model: summary.model,
    outcome: summary.outcome,
    amount_micros: book.spent,
    reported_micros: reported,
    uncached_input_tokens: tokens.uncached,
    cached_input_tokens: cached,
    cache_write_tokens: written,
    output_tokens: output,
    reasoning_tokens: reasoning,
    wall_ms: toCount("duration_ms", summary.duration_ms),
    calls: 1n,
  };
  return { usage, entries: book.entries };
}

/** Tokens of a call by the class that is priced; together they are all of them. */
export interface TokenClasses {
  readonly uncached: bigint;
  readonly cached: bigint;
  readonly written: bigint;
  readonly output: bigint;
}

function bookTokens(book: Book, provider: string, tokens: TokenClasses, price: ModelPrice): void {
  const amounts = toTokenAmounts(tokens, price);
  book.pair(1, "spend:model:input", provider, amounts.uncached);
  book.pair(3, "spend:model:cached_input", provider, amounts.cached);
  book.pair(5, "spend:model:cache_write", provider, amounts.written);
  book.pair(7, "spend:model:output", provider, amounts.output);
}

/** The price of each class of tokens; reasoning is output. */
export function toTokenAmounts(tokens: TokenClasses, price: ModelPrice): TokenClasses {
  return {
    uncached: toAmount(tokens.uncached, price.inputMicros, perMillion),
    cached: toAmount(tokens.cached, price.cachedInputMicros, perMillion),
    written: toAmount(tokens.written, price.cacheWriteMicros, perMillion),
    output: toAmount(tokens.output, price.outputMicros, perMillion),
  };
}

function chargeTool(event: Envelope<"agent.tool.completed">, prices: PriceList): Charge {
  const summary = event.redacted_summary;
  const tool = event.subject?.tool ?? summary.tool_alias;
  const wallMs = toCount("duration_ms", summary.duration_ms);
  const outputBytes = toCount("output_bytes", BigInt(summary.output_bytes ?? 0));
  // A call that the gate stopped used nothing.
  const ran = summary.outcome !== "blocked";
  const price = tool === null || !ran ? null : findPrice(prices.tools, tool, event.recorded_at);
  const book = new Book(event.event_id);
  if (price !== null) bookTool(book, tool ?? "", { wallMs, outputBytes }, price);
  const { session_id, tool_call_id, attempt } = event.execution;
  const usage: UsageRow = {
    ...toBaseRow(event, "tool", price === null ? { state: "free", price: null } : { state: "listed", price }),
    // Two results of one call, such as one of the runtime and one of the host, are one call.
    call_key:
      tool_call_id === null
        ? null
        : JSON.stringify(["tool", event.correlation_id, session_id, tool_call_id, attempt]),
    tool,
    outcome: summary.outcome,
    amount_micros: book.spent,
    wall_ms: wallMs,
    output_bytes: outputBytes,
    calls: ran ? 1n : 0n,
  };
  return { usage, entries: book.entries };
}

function bookTool(
  book: Book,
  tool: string,
  used: { readonly wallMs: bigint; readonly outputBytes: bigint },
  price: ToolPrice,
): void {
  book.pair(11, "spend:tool:call", `tool:${tool}`, price.callMicros);
  book.pair(
    13,
    "spend:tool:wall_time",
    "wall_time",
    toAmount(used.wallMs, price.wallSecondMicros, perSecondMs),
  );
  book.pair(
    15,
    "spend:tool:network",
    "network",
    toAmount(used.outputBytes, price.outputMebibyteMicros, perMebibyte),
  );
}

function chargeSubagent(event: Envelope<"agent.subagent.started">): Charge {
  const { subagent_id } = event.redacted_summary;
  const usage: UsageRow = {
    ...toBaseRow(event, "subagent", { state: "free", price: null }),
    call_key: JSON.stringify(["subagent", event.correlation_id, event.execution.session_id, subagent_id]),
    fan_out: 1n,
  };
  return { usage, entries: [] };
}

function chargeCorrection(event: Envelope<"fabric.cost.corrected">): Charge {
  const { correction_id, corrects_event_id, account, amount_micros, cause, author } = event.redacted_summary;
  if (amount_micros > maxAmountMicros || amount_micros < -maxAmountMicros) {
    throw new RangeError("amount_micros is beyond what one correction may move");
  }
  const about = parseAccount(account);
  const book = new Book(event.event_id);
  book.pair(17, about.name, "corrections", amount_micros);
  const base = toBaseRow(event, "correction", { state: "correction", price: null });
  const usage: UsageRow = {
    ...base,
    call_key: JSON.stringify(["correction", correction_id]),
    model: about.model,
    tool: about.tool,
    user_id: about.user,
    agent_id: about.agent,
    runtime_kind: about.runtime ?? base.runtime_kind,
    environment: about.environment ?? base.environment,
    amount_micros: book.spent,
    corrects_event_id,
    cause,
    author,
  };
  return { usage, entries: book.entries };
}

function toCount(name: string, value: bigint | null): bigint {
  if (value === null) return 0n;
  if (value < 0n) throw new RangeError(`${name} is below 0`);
  if (value > maxCount) throw new RangeError(`${name} is more than any call has`);
  return value;
}

function toReported(micros: bigint | null): bigint | null {
  if (micros === null) return null;
  if (micros < 0n) throw new RangeError("cost_micros is below 0; a refund is a correction");
  if (micros > maxAmountMicros) throw new RangeError("cost_micros is more than any call costs");
  return micros;
}

/** Collects the entries of one event: each amount is debited to what it was spent on and credited to who asks for it. */
class Book {
  readonly entries: CostEntry[] = [];
  spent = 0n;
  private readonly eventId: string;

  constructor(eventId: string) {
    this.eventId = eventId;
  }

  /** `line` is the first of two numbers that always mean the same account class, so that an entry's id never moves. */
  pair(line: number, debit: string, credit: string, amount: bigint): void {
    if (amount === 0n) return;
    this.spent += amount;
    this.entries.push(
      { event_id: this.eventId, line, account: debit, amount_micros: amount },
      { event_id: this.eventId, line: line + 1, account: credit, amount_micros: -amount },
    );
  }
}
