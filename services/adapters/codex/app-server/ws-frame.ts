import type { RawData } from "ws";

/** A frame's text; null: it is no text. */
export function toFrameText(data: RawData, isBinary: boolean): string | null {
  if (isBinary) return null;
  if (data instanceof ArrayBuffer) return Buffer.from(data).toString("utf8");
  return (Array.isArray(data) ? Buffer.concat(data) : data).toString("utf8");
}
