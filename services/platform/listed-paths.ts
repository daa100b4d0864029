import { toTextPreview } from "./masked-preview.ts";

/** Longest path that an event shows; the vault keeps the whole input. */
const pathMaxChars = 512;
/** Most paths that an event lists. With the length above an event stays far below what a broker takes. */
const listedPathsMax = 64;

/** A path as events show it: masked, since a token can stand in a path as well as anywhere, and bounded. */
export function toPathText(path: string): string {
  return toTextPreview(path, pathMaxChars);
}

/** The paths of one call as events list them. */
export function toListedPaths(paths: readonly string[]): string[] {
  return paths.slice(0, listedPathsMax).map(toPathText);
}
