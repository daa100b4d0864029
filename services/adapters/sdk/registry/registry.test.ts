import { describe, expect, expectTypeOf, it } from "vitest";
import type { JsonObject } from "../json.ts";
import type { HookEvents } from "./hook-points.ts";
import { hookPoints, voices } from "./hook-points.ts";
import type { HandlerRecord, HookRegistry } from "./registry.ts";
import { createHookRegistry } from "./registry.ts";

const event = (tool = "shell.run", input: JsonObject = { command: "ls" }): HookEvents["PreToolUse"] => ({
  sessionId: "s1",
  call: { id: "c1", tool, input, origin: "model" },
});
const never = (): Promise<never> => new Promise(() => undefined);

describe("handlers of a point", () => {
  it("run one after another in the order of registration, also when an early one takes longer", async () => {
    const hooks = createHookRegistry();
    const ran: string[] = [];
    hooks.hook("PreToolUse", async () => {
      await new Promise((resolve) => setImmediate(resolve));
      ran.push("first");
    });
    hooks.observe("PreToolUse", () => void ran.push("second"));
    hooks.hook("PreToolUse", () => void ran.push("third"));
    await hooks.emit("PreToolUse", event());
    expect(ran).toEqual(["first", "second", "third"]);
  });

  it("see what earlier ones rewrote, and the last word is what comes out", async () => {
    const hooks = createHookRegistry();
    const seen: unknown[] = [];
    hooks.hook("PreToolUse", ({ call }) => ({ rewrite: { ...call.input, command: "ls -l" } }));
    hooks.observe("PreToolUse", ({ call }) => seen.push(call.input));
    hooks.hook(
      "PreToolUse",
      ({ call }) => ({ rewrite: { ...call.input, safe: true }, context: "made safe" }),
      {
        name: "safe",
      },
    );
    const outcome = await hooks.emit("PreToolUse", event());
    expect(seen).toEqual([{ command: "ls -l" }]);
    expect(outcome.event.call.input).toEqual({ command: "ls -l", safe: true });
    expect(outcome.context).toEqual(["made safe"]);
    expect(outcome.rewrittenBy).toContain("safe");
  });

  it("that are uninstalled no longer act, also in an event that is under way", async () => {
    const hooks = createHookRegistry();
    const ran: string[] = [];
    const uninstalls: (() => void)[] = [];
    hooks.hook("PreToolUse", () => {
      uninstalls[0]?.();
    });
    uninstalls.push(
      hooks.hook("PreToolUse", () => {
        ran.push("gone");
        return { deny: "no" };
      }),
    );
    expect((await hooks.emit("PreToolUse", event())).denied).toBeNull();
    uninstalls[0]?.();
    expect(ran).toEqual([]);
    expect(hooks.handlers()).toHaveLength(1);
  });
});

describe("a policy handler", () => {
  const failing: Record<string, (hooks: HookRegistry) => void> = {
    HANDLER_FAILED: (hooks) =>
      hooks.hook(
        "PreToolUse",
        () => {
          throw new Error("password=hunter2");
        },
        { name: "broken" },
      ),
    HANDLER_TIMEOUT: (hooks) => hooks.hook("PreToolUse", never, { name: "broken", timeoutMs: 5 }),
    HANDLER_GARBAGE: (hooks) => hooks.hook("PreToolUse", () => ({ alow: true }) as never, { name: "broken" }),
  };
  it.each(Object.entries(failing))(
    "that ends in %s denies, and is named without what it said",
    async (code, install) => {
      const hooks = createHookRegistry();
      install(hooks);
      const { denied, records } = await hooks.emit("PreToolUse", event());
      expect(denied).toMatchObject({ handler: "broken", reasonCode: code });
      expect(JSON.stringify(denied)).not.toContain("hunter2");
      expect(records).toMatchObject([{ handler: "broken", role: "policy" }]);
    },
  );

  it.each([
    ["a text", "deny"],
    ["a list", ["deny"]],
    ["true", true],
    ["an empty reason", { deny: " " }],
    ["a reason that is no text", { deny: true }],
    ["a word of another point", { block: "x" }],
    ["an input that is no object", { rewrite: "rm" }],
    ["an input that JSON cannot hold", { rewrite: { at: () => 1 } }],
  ])("that answers %s denies", async (_, answer) => {
    const hooks = createHookRegistry();
    hooks.hook("PreToolUse", () => answer as never);
    expect((await hooks.emit("PreToolUse", event())).denied).toMatchObject({ reasonCode: "HANDLER_GARBAGE" });
  });

  it("that changes the event in place fails instead of believing that it changed something", async () => {
    const hooks = createHookRegistry();
    hooks.hook("PreToolUse", ({ call }) => {
      (call.input as Record<string, unknown>)["command"] = "true";
    });
    expect((await hooks.emit("PreToolUse", event())).denied).toMatchObject({ reasonCode: "HANDLER_FAILED" });
  });

  it("after a denial is not asked any more, and observers still are", async () => {
    const hooks = createHookRegistry();
    const ran: string[] = [];
    hooks.hook("PreToolUse", () => ({ deny: "not here" }), { name: "no" });
    hooks.hook("PreToolUse", () => {
      ran.push("policy");
      return { rewrite: {} };
    });
    hooks.observe("PreToolUse", () => ran.push("observer"));
    const { denied, event: after } = await hooks.emit("PreToolUse", event());
    expect(denied).toEqual({ handler: "no", reasonCode: "HOOK_DENIED", message: "not here" });
    expect(ran).toEqual(["observer"]);
    expect(after.call.input).toEqual({ command: "ls" });
  });

  it("denies by its failure wherever there is something to refuse, and nowhere else", async () => {
    for (const point of Object.keys(voices) as (keyof typeof voices)[]) {
      const hooks = createHookRegistry();
      hooks.hook(point, () => {
        throw new Error("x");
      });
      const { denied } = await hooks.emit(point, { ...event(), output: 1 });
      expect(denied !== null, point).toBe(point !== "Stop");
    }
  });
});

describe("an observer", () => {
  it("that throws, hangs or talks is recorded and skipped", async () => {
    const records: HandlerRecord[] = [];
    const hooks = createHookRegistry({ timeoutMs: 5, onHandled: (record) => records.push(record) });
    hooks.observe("PreToolUse", () => Promise.reject(new Error("x")));
    hooks.observe("PreToolUse", never);
    hooks.observe("PreToolUse", () => ({ deny: "no", rewrite: {} }));
    const { denied, event: after } = await hooks.emit("PreToolUse", event());
    expect(denied).toBeNull();
    expect(after.call.input).toEqual({ command: "ls" });
    expect(records.map(({ outcome }) => outcome)).toEqual(["failed", "timed_out", "silent"]);
  });

  it("is all that a handler can be where nobody has a say", async () => {
    const hooks = createHookRegistry();
    for (const point of hookPoints)
      hooks.hook(point, () => {
        throw new Error("x");
      });
    const roles = new Map(hooks.handlers().map(({ point, role }) => [point, role]));
    expect(roles.get("SessionEnd")).toBe("observer");
    expect(roles.get("PreToolUse")).toBe("policy");
    const ended = await hooks.emit("SessionEnd", { sessionId: "s1", reason: "done" });
    expect(ended.denied).toBeNull();
  });
});

describe("what a handler is for", () => {
  it("is told by tool and by conditions on the input", async () => {
    const hooks = createHookRegistry();
    hooks.hook("PreToolUse", () => ({ deny: "no pushing to main" }), {
      match: { tools: ["shell.*"], where: [{ field: "/command", is: { like: "git push*main" } }] },
    });
    const decide = async (tool: string, command: string): Promise<boolean> =>
      (await hooks.emit("PreToolUse", event(tool, { command }))).denied === null;
    expect(await decide("shell.run", "git push origin main")).toBe(false);
    expect(await decide("shell.run", "git push origin topic")).toBe(true);
    expect(await decide("file.write", "git push origin main")).toBe(true);
  });

  it("is in doubt everything: a condition that throws counts as met", async () => {
    const hooks = createHookRegistry();
    hooks.hook("PreToolUse", () => ({ deny: "no" }), {
      match: {
        when: () => {
          throw new Error("x");
        },
      },
    });
    expect((await hooks.emit("PreToolUse", event())).denied).not.toBeNull();
  });
});

describe("types", () => {
  it("are those of the point", () => {
    const hooks = createHookRegistry();
    hooks.hook("PostToolUse", ({ output, durationMs }) => {
      expectTypeOf(durationMs).toEqualTypeOf<number>();
      return { replace: output };
    });
    hooks.hook("UserPromptSubmit", ({ prompt }) => ({ rewrite: prompt.trim() }));
    // @ts-expect-error: a result cannot be denied after the effect, only withheld
    hooks.hook("PostToolUse", () => ({ deny: "too late" }));
    // @ts-expect-error: nobody has a say at the end of a session
    hooks.hook("SessionEnd", () => ({ deny: "no" }));
    // @ts-expect-error: there is no such point
    expect(() => hooks.hook("PreTeleport", () => undefined)).toThrow(RangeError);
    expect(hooks.handlers()).toHaveLength(4);
  });
});
