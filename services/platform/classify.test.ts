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
  it("buries nothing for an error of the host itself", () => {
    for (const stage of ["claim", "watermark", "commit", "offset"] as const) {
      expect(isRecordFault(classify(new Error("x"), stage))).toBe(false);
    }
  });
});
