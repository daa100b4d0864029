import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { HookReplies } from "../../services/adapters/sdk/registry/hook-points.ts";
import { createHookRegistry } from "../../services/adapters/sdk/registry/registry.ts";

/** What a handler does when it is called. */
type Conduct =
  | { readonly kind: "silent" | "throws" | "hangs" | "garbage" | "denies" | "asks" }
  | { readonly kind: "rewrites"; readonly mark: number };
interface Planned {
  readonly role: "policy" | "observer";
  readonly conduct: Conduct;
  readonly isGone: boolean;
}

const conduct: fc.Arbitrary<Conduct> = fc.oneof(
  fc.constantFrom("silent", "throws", "hangs", "garbage", "denies", "asks").map((kind) => ({ kind })),
  fc.nat(1000).map((mark): Conduct => ({ kind: "rewrites", mark })),
  // Most handlers of a long list have to let it pass, or only short lists are looked at.
  fc.nat(1000).map((mark): Conduct => ({ kind: "rewrites", mark })),
  fc.constant<Conduct>({ kind: "silent" }),
);
const planned: fc.Arbitrary<Planned> = fc.record({
  role: fc.constantFrom("policy", "observer"),
  conduct,
  isGone: fc.boolean(),
});

const act = (one: Conduct): HookReplies["PreToolUse"] | Promise<never> | null => {
  switch (one.kind) {
    case "silent":
      return null;
    case "throws":
      throw new Error("x");
    case "hangs":
      return new Promise(() => undefined);
    case "garbage":
      return { decision: "allow" } as never;
    case "denies":
      return { deny: "no" };
    case "asks":
      return { ask: "sure?" };
    case "rewrites":
      return { rewrite: { mark: one.mark } };
  }
};
const isNo = ({ conduct: { kind } }: Planned): boolean =>
  ["throws", "hangs", "garbage", "denies"].includes(kind);

describe("any list of handlers", () => {
  // INVARIANT: one no is a no, whoever else speaks, before or after.
  it("one no is a no, the first one is named, and nothing after it changes anything", async () => {
    let denials = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(planned, { maxLength: 8 }), async (plan) => {
        const hooks = createHookRegistry({ timeoutMs: 2 });
        const called: number[] = [];
        plan.forEach(({ role, conduct: one, isGone }, at) => {
          const handler = (): ReturnType<typeof act> => {
            called.push(at);
            return act(one);
          };
          const uninstall =
            role === "policy"
              ? hooks.hook("PreToolUse", handler, { name: String(at) })
              : hooks.observe("PreToolUse", handler, { name: String(at) });
          if (isGone) uninstall();
        });
        const { denied, event, asks, records } = await hooks.emit("PreToolUse", {
          sessionId: "s",
          call: { id: "c", tool: "shell.run", input: { mark: -1 }, origin: "model" },
        });
        // The plain reading: walk the list once.
        const live = plan.map((one, at) => ({ ...one, at })).filter((one) => !one.isGone);
        const first = live.find((one) => one.role === "policy" && isNo(one));
        const counted = live.filter(
          (one) => one.role === "policy" && (first === undefined || one.at < first.at),
        );
        const marks = counted.flatMap((one) => (one.conduct.kind === "rewrites" ? [one.conduct.mark] : []));
        expect(denied?.handler).toBe(first === undefined ? undefined : String(first.at));
        expect(event.call.input).toEqual({ mark: marks.at(-1) ?? -1 });
        expect(asks.map(({ handler }) => Number(handler))).toEqual(
          counted.filter((one) => one.conduct.kind === "asks").map(({ at }) => at),
        );
        const expected = live.filter(
          (one) => one.role === "observer" || first === undefined || one.at <= first.at,
        );
        expect(called).toEqual(expected.map(({ at }) => at));
        expect(records.map(({ handler }) => Number(handler))).toEqual(called);
        if (denied !== null) denials += 1;
      }),
      { numRuns: 400 },
    );
    // About sixty of them; a generator that makes none would show nothing.
    expect(denials).toBeGreaterThan(15);
  });
});
