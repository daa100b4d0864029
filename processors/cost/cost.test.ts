import { describe, expect, it } from "vitest";
import type { Summaries } from "../../schemas/generated/types.ts";
import { draft } from "../../schemas/envelope.ts";
import { eventOf, given } from "../kit/given.ts";
import { parseAccount, toAccount } from "./account.ts";
import { createCost } from "./cost.ts";
import { toAmount, toDecimal } from "./money.ts";
import type { PriceList } from "./prices.ts";
import { findPrice, parsePrices } from "./prices.ts";
import { toCharge } from "./words.ts";

const nowMs = Date.parse("2026-11-30T12:00:00Z");
const noTokens: Summaries["agent.model.completed"] = {
  model: "large-1",
  outcome: "succeeded",
  input_tokens: null,
  cached_input_tokens: null,
  cache_write_tokens: null,
  output_tokens: null,
  reasoning_tokens: null,
  duration_ms: null,
  cost_micros: null,
  error_kind: null,
  model_call_id: null,
};
const model = (change: Partial<Summaries["agent.model.completed"]>, recordedAtMs = nowMs) =>
  eventOf(draft("agent.model.completed", { ...noTokens, ...change }), { recordedAtMs });
const tool = (change: Partial<Summaries["agent.tool.completed"]> = {}, callId: string | null = "call_1") =>
  eventOf(
    draft(
      "agent.tool.completed",
      {
        outcome: "succeeded",
        duration_ms: 1_500n,
        output_bytes: 1_048_576,
        output_preview: null,
        error_preview: null,
        tool_alias: null,
        ...change,
      },
      {
        execution: { session_id: "s1", ...(callId === null ? {} : { tool_call_id: callId }) },
        subject: { tool: "web.fetch", action: null, resource_ref: null, data_class: "unknown" },
      },
    ),
    { recordedAtMs: nowMs },
  );

const text = `currency: USD
models:
  - model: "large*"
    valid_from: 2026-01-01
    valid_to: 2026-12-01
    input_micros_per_million: 3000000
    cached_input_micros_per_million: 300000
    cache_write_micros_per_million: 3750000
    output_micros_per_million: 15000000
    source: contract 7
  - model: "large*"
    valid_from: 2026-12-01
    input_micros_per_million: 1
    output_micros_per_million: 1
    source: contract 8
  - model: late
    valid_from: 2026-01-01
    listed_at: 2026-12-24
    input_micros_per_million: 1000000
    output_micros_per_million: 1000000
    source: contract 9
tools:
  - tool: "web.*"
    valid_from: 2026-01-01
    call_micros: 1000
    wall_second_micros: 10
    output_mebibyte_micros: 7
    source: contract 7
`;
const priceList = (yaml: string): PriceList => {
  const parsed = parsePrices([{ file: "prices.yaml", text: yaml }]);
  if (!parsed.ok) throw new Error(parsed.problems.join("\n"));
  return parsed.prices;
};
const prices = priceList(text);
const problemsOf = (yaml: string) => {
  const parsed = parsePrices([{ file: "prices.yaml", text: yaml }]);
  return parsed.ok ? [] : parsed.problems;
};

describe("a model call", () => {
  it("counts cached and cache-written input once and prices each class by its own rate", () => {
    // The same call as a provider tells it (5 + 128,955 + 1,253) and as OpenTelemetry does (130,213, of which 128,955).
    const rows = [
      model({ input_tokens: 130_213n, cached_input_tokens: 128_955n, cache_write_tokens: 1_253n }),
      model({ input_tokens: 130_213n, cached_input_tokens: 128_955n }),
    ].map((event) => toCharge(event, prices).usage);
    expect(
      rows.map((row) => row.uncached_input_tokens + row.cached_input_tokens + row.cache_write_tokens),
    ).toEqual([130_213n, 130_213n]);
    expect(rows.map((row) => row.amount_micros)).toEqual([15n + 38_687n + 4_699n, 3_774n + 38_687n]);
  });

  it("is booked twice over: what was spent, and who asks for it; together 0", () => {
    const { entries, usage } = toCharge(
      model({ input_tokens: 10n, cached_input_tokens: 4n, output_tokens: 3n, reasoning_tokens: 2n }),
      prices,
    );
    expect(entries.map((one) => [one.line, one.account, one.amount_micros])).toEqual([
      [1, "spend:model:input", 18n],
      [2, "provider:large-1", -18n],
      [3, "spend:model:cached_input", 1n],
      [4, "provider:large-1", -1n],
      [7, "spend:model:output", 45n],
      [8, "provider:large-1", -45n],
    ]);
    expect(usage).toMatchObject({ amount_micros: 64n, output_tokens: 3n, reasoning_tokens: 2n });
  });

  it("takes the price of the time at which it was recorded", () => {
    const last = model({ input_tokens: 1_000_000n }, Date.parse("2026-11-30T23:59:59.999Z"));
    const next = model({ input_tokens: 1_000_000n }, Date.parse("2026-12-01T00:00:00Z"));
    expect(toCharge(last, prices).usage.amount_micros).toBe(3_000_000n);
    expect(toCharge(next, prices).usage).toMatchObject({
      amount_micros: 1n,
      price_valid_from: Date.parse("2026-12-01"),
    });
  });

  it("goes by the price list, and by the source's claim only where the list is silent", () => {
    const claim = { input_tokens: 1_000_000n, cost_micros: 5n };
    expect(toCharge(model(claim), prices).usage).toMatchObject({
      amount_micros: 3_000_000n,
      reported_micros: 5n,
      price_state: "listed",
    });
    expect(toCharge(model({ ...claim, model: "other" }), prices).usage).toMatchObject({
      amount_micros: 5n,
      price_state: "reported",
    });
    expect(toCharge(model({ cost_micros: 5n }), prices).usage).toMatchObject({
      amount_micros: 5n,
      price_state: "reported",
    });
  });

  it("without a price is booked with 0 and says so; without tokens it says that", () => {
    const unpriced = toCharge(model({ model: "other", output_tokens: 9n }), prices);
    expect(unpriced.usage).toMatchObject({ amount_micros: 0n, price_state: "unpriced", output_tokens: 9n });
    expect(unpriced.entries).toEqual([]);
    expect(toCharge(model({}), prices).usage.price_state).toBe("unmeasured");
  });

  it("stays unpriced in a rebuild when its price was put on the list later", () => {
    const call = { model: "late", output_tokens: 1_000_000n };
    expect(toCharge(model(call), prices).usage.price_state).toBe("unpriced");
    expect(toCharge(model(call, Date.parse("2026-12-24")), prices).usage.amount_micros).toBe(1_000_000n);
  });

  it.each([
    [{ input_tokens: -1n }],
    [{ output_tokens: 10n ** 15n }],
    [{ duration_ms: -5n }],
    [{ cost_micros: -1n }],
    [{ input_tokens: 10n, cached_input_tokens: 11n }],
    [{ input_tokens: 10n, cached_input_tokens: 6n, cache_write_tokens: 5n }],
    [{ cached_input_tokens: 1n }],
    [{ output_tokens: 1n, reasoning_tokens: 2n }],
  ])("with numbers that cannot be is refused: %o", (change) => {
    expect(() => toCharge(model(change), prices)).toThrow(RangeError);
  });
});

describe("a tool call", () => {
  it("costs its call, its wall time and what came over the network", () => {
    const { entries, usage } = toCharge(tool(), prices);
    expect(entries.map((one) => [one.account, one.amount_micros])).toEqual([
      ["spend:tool:call", 1_000n],
      ["tool:web.fetch", -1_000n],
      ["spend:tool:wall_time", 15n],
      ["wall_time", -15n],
      ["spend:tool:network", 7n],
      ["network", -7n],
    ]);
    expect(usage).toMatchObject({
      amount_micros: 1_022n,
      wall_ms: 1_500n,
      output_bytes: 1_048_576n,
      calls: 1n,
    });
  });

  it("that the gate stopped costs nothing", () => {
    expect(toCharge(tool({ outcome: "blocked" }), prices).usage).toMatchObject({
      amount_micros: 0n,
      calls: 0n,
    });
  });

  it("can be told apart from another one by its id alone", () => {
    expect(toCharge(tool(), prices).usage.call_key).toBe(
      toCharge(tool({ outcome: "failed" }), prices).usage.call_key,
    );
    expect(toCharge(tool({}, "call_2"), prices).usage.call_key).not.toBe(
      toCharge(tool(), prices).usage.call_key,
    );
    expect(toCharge(tool({}, null), prices).usage.call_key).toBeNull();
  });
});

describe("a correction", () => {
  const correction = (account: string, amount: bigint) =>
    eventOf(
      draft("fabric.cost.corrected", {
        correction_id: "c1",
        corrects_event_id: "evt_x",
        account,
        amount_micros: amount,
        cause: "refund",
        author: "ann",
      }),
    );

  it("is an entry of its own, in the dimensions of what it corrects", () => {
    const account = toAccount({ ...parseAccount("spend:model"), model: "m&1", user: "bob" });
    const { entries, usage } = toCharge(correction(account, -40n), prices);
    expect(usage).toMatchObject({
      kind: "correction",
      model: "m&1",
      user_id: "bob",
      tool: null,
      amount_micros: -40n,
    });
    expect(entries.map((one) => [one.account, one.amount_micros])).toEqual([
      ["spend:model", -40n],
      ["corrections", 40n],
    ]);
  });
});

describe("money", () => {
  it("is rounded half up, once", () => {
    expect([1n, 499_999n, 500_000n, 1_499_999n, 1_500_000n].map((n) => toAmount(n, 1n, 1_000_000n))).toEqual([
      0n,
      0n,
      1n,
      1n,
      2n,
    ]);
    expect(toAmount(10n ** 12n, 10n ** 12n, 10n ** 6n)).toBe(10n ** 18n);
  });
  it("is shown exactly", () => {
    expect([0n, 5n, -1_500_000n, 10n ** 18n].map(toDecimal)).toEqual([
      "0.000000",
      "0.000005",
      "-1.500000",
      "1000000000000.000000",
    ]);
  });
});

describe("a price list", () => {
  it("lets an exact name win over a pattern, and a longer pattern over a shorter one", () => {
    const of = (pattern: string) => ({
      pattern,
      validFromMs: 0,
      validToMs: null,
      listedAtMs: 0,
      source: "",
    });
    const all = [of("*"), of("a*"), of("ab*"), of("ab")];
    expect(["ab", "abc", "ac", "x"].map((name) => findPrice(all, name, 1)?.pattern)).toEqual([
      "ab",
      "ab*",
      "a*",
      "*",
    ]);
  });

  it("refuses prices that are valid at the same time, with both places", () => {
    expect(problemsOf(text.replace("    valid_to: 2026-12-01\n", ""))).toEqual([
      "prices.yaml:10: `large*` is valid while the price of prices.yaml:3 still is; end that one with valid_to",
    ]);
  });

  it("names the line of each fault", () => {
    expect(problemsOf(text.replace("call_micros: 1000", "call_micros: 0.5"))).toEqual([
      "prices.yaml:25: tools.0.call_micros: a rate is a whole number of millionths",
    ]);
    expect(problemsOf(text.replace("2026-01-01", "tomorrow"))[0]).toMatch(/^prices.yaml:4: .*2026-11-30/);
    expect(problemsOf(text.replace("currency: USD", "currency: EUR"))[0]).toMatch(/^prices.yaml:1: currency/);
    expect(problemsOf("currency: USD\nmodels: [")[0]).toMatch(/^prices.yaml:2: /);
    expect(problemsOf(text.replace("source: contract 7", "sauce: contract 7")).length).toBeGreaterThan(0);
  });
});

describe("cost", () => {
  it("adds a batch in four statements: the lock of its goals, calls that are known, usage, entries", async () => {
    const { statements, emissions } = await given(createCost({ prices, budgets: [] })).when(
      model({ input_tokens: 1_000_000n }),
      tool(),
    );
    expect(statements).toHaveLength(4);
    expect(emissions).toEqual([]);
  });
});
