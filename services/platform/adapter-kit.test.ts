import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  resolvePath,
  toCauses,
  toCount,
  toSize,
  toToolName,
  toToolSegment,
  valueBytes,
} from "./adapter-kit.ts";

const toolName = /^[a-z][a-z0-9_]*(\.[A-Za-z0-9_-]+)+$/;
const decode = (segment: string): string =>
  segment.replace(/-0x([0-9a-f]+)-/g, (_, hex: string) => String.fromCodePoint(Number.parseInt(hex, 16)));

describe("tool names", () => {
  it("stay two when the runtime's names are two, whatever these hold", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", minLength: 1, maxLength: 20 }), (name) => {
        const segment = toToolSegment(name);
        expect(`x.${segment}`).toMatch(toolName);
        expect(decode(segment)).toBe(name);
      }),
    );
    expect(toToolSegment("a.b")).not.toBe(toToolSegment("a-0x2e-b"));
    expect(toToolSegment("my-server_1")).toBe("my-server_1");
  });

  it("are refused rather than cut when they are too long or empty", () => {
    expect(toToolName("other", ["x".repeat(194)])).toHaveLength(200);
    expect(toToolName("other", ["x".repeat(195)])).toBeNull();
    expect(toToolName("mcp", ["a", ""])).toBeNull();
  });
});

describe("paths", () => {
  it.each([
    ["/workspace", "a/../../etc/passwd", "/etc/passwd"],
    ["/workspace", "./a//b", "/workspace/a/b"],
    ["/workspace", "/etc/../srv/x", "/srv/x"],
    ["/workspace", "~/x", "~/x"],
    ["C:\\work", "..\\x", "C:\\x"],
    ["/workspace", "C:\\a\\..\\b", "C:\\b"],
    [undefined, "a/../b", "b"],
  ])("under %s, %s is %s", (workingDirectory, path, resolved) => {
    expect(resolvePath(workingDirectory, path)).toBe(resolved);
  });
});

describe("sizes", () => {
  it("count bytes of UTF-8, a string as its own text", () => {
    expect([valueBytes("é"), valueBytes({ a: "é" }), valueBytes(null)]).toEqual([2, 10, 4]);
  });

  it("are not known for what nests too deep to be written", () => {
    expect(valueBytes(JSON.parse(`${"[".repeat(9000)}${"]".repeat(9000)}`))).toBeNull();
  });

  it("fit the wire: no fraction, nothing negative, nothing beyond what a long carries", () => {
    expect([toSize(-1), toSize(1.5), toSize(1e12), toSize(Number.NaN)]).toEqual([0, 1, 2_147_483_647, 0]);
    expect([toCount(3), toCount(-1), toCount(1.5), toCount("3"), toCount(2 ** 53)]).toEqual([
      3n,
      null,
      null,
      null,
      null,
    ]);
  });
});

describe("causes", () => {
  it("name the nearest place first and leave out what is not there", () => {
    expect(toCauses({ sessionId: "s", turnId: "t", toolCallId: "c" }, ["call"])).toEqual([
      { scope: "turn", id: "t" },
      { scope: "session", id: "s" },
    ]);
  });
});
