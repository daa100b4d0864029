import { describe, expect, it } from "vitest";
import { Fault } from "../../schemas/faults.ts";
import { classify, isRecordFault } from "./classify.ts";

describe("classify", () => {
  it("keeps a fault of the rim as it is", () => {
    const fault = new Fault("DATABASE_UNAVAILABLE");
    expect(classify(fault, "apply")).toBe(fault);
    expect(isRecordFault(fault)).toBe(false);
  });
  it.each([
    ["project", "PROJECTION_FAILED"],
    ["apply", "PROJECTION_FAILED"],
    ["emit", "PROJECTION_FAILED"],
    ["decode", "RECORD_UNDECODABLE"],
  ] as const)("calls any other error of %s the record's own", (stage, code) => {
    const fault = classify(new TypeError("x of undefined"), stage);
    expect(fault.code).toBe(code);
    expect(isRecordFault(fault)).toBe(true);
    expect(fault.cause).toBeInstanceOf(TypeError);
  });
  it("never sends an effect again whose end nobody saw", () => {
    expect(classify(new Error("socket hang up"), "effect")).toMatchObject({ kind: "unknown_effect" });
    // What failed before it was on the wire says so itself.
    expect(classify(new Fault("GATE_UNREACHABLE"), "effect")).toMatchObject({ kind: "transient" });
  });
  it("calls any other error of a decision, a publication or an export a broken invariant", () => {
    for (const stage of ["decide", "publish", "export"] as const) {
      expect(classify(new TypeError("x of undefined"), stage)).toMatchObject({
        code: "INTERNAL",
        kind: "fatal",
      });
    }
  });
  it("buries nothing for an error of the host itself", () => {
    for (const stage of ["claim", "watermark", "commit", "offset"] as const) {
      expect(isRecordFault(classify(new Error("x"), stage))).toBe(false);
    }
  });
});
