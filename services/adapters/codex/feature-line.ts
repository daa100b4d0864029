import { Fault } from "../../../schemas/faults.ts";

/** Marks what is ours in a TOML text, which no parser is needed for: the client keeps comments when it writes the file. */
const mark = "# policy-hook-fabric";
const wasMark = `${mark} was: `;
const anyHeader = /^\s*\[/;
const featuresHeader = /^\s*\[\s*features\s*\]/;

const isOurs = (line: string): boolean => line.trimEnd().endsWith(mark);
/** The line's key is `name`, as a bare or a quoted one. */
const setsKey = (line: string, name: string): boolean =>
  new RegExp(`^\\s*(?:${name}|"${name}"|'${name}')\\s*=`).test(line);

/** The text with `name = false` in `[features]`; what stood there is kept as a comment. */
export function withFeatureOff(before: string | null, name: string, path: string): string {
  // The client writes into the file too: our line is left where it stands.
  if (before !== null && before.split("\n").some(isOurs) && hasFeatureOff(before, name)) return before;
  const text = withoutFeatureLine(before ?? "");
  const lines = text === "" ? [] : text.replace(/\n$/, "").split("\n");
  const top = lines.findIndex((line) => anyHeader.test(line));
  const beforeSections = top === -1 ? lines : lines.slice(0, top);
  if (beforeSections.some((line) => /^\s*["']?features["']?\s*[.=]/.test(line))) {
    throw new Fault(
      "CONFIG_INVALID",
      `\`features\` of \`${path}\` is no section; write it as \`[features]\`, then install again`,
    );
  }
  const own = `${name} = false ${mark}`;
  const header = lines.findIndex((line) => featuresHeader.test(line));
  if (header === -1) {
    return [...lines, ...(lines.length === 0 ? [] : [""]), `[features] ${mark}`, own, ""].join("\n");
  }
  const next = lines.findIndex((line, at) => at > header && anyHeader.test(line));
  const section = lines.slice(header + 1, next === -1 ? undefined : next);
  return [
    ...lines.slice(0, header + 1),
    own,
    ...section.map((line) => (setsKey(line, name) ? `${wasMark}${line}` : line)),
    ...(next === -1 ? [] : lines.slice(next)),
    "",
  ].join("\n");
}

/** The text as it was before, as far as others have left it; unchanged when nothing of ours is in it. */
export function withoutFeatureLine(text: string): string {
  const lines = text.split("\n");
  if (!lines.some((line) => isOurs(line) || line.startsWith(wasMark))) return text;
  const kept = lines.filter((line) => !isOurs(line) || featuresHeader.test(line));
  const header = kept.findIndex((line) => featuresHeader.test(line) && isOurs(line));
  const next = kept.findIndex((line, at) => at > header && anyHeader.test(line));
  const section = header === -1 ? [] : kept.slice(header + 1, next === -1 ? undefined : next);
  // A section that we opened goes when nobody has written into it since, with the blank line in front of it.
  const closes = header !== -1 && section.every((line) => line.trim() === "");
  const from = closes && kept[header - 1] === "" ? header - 1 : header;
  const left = closes ? [...kept.slice(0, from), ...kept.slice(header + 1)] : kept;
  return left
    .map((line) => (line.startsWith(wasMark) ? line.slice(wasMark.length) : line.replace(` ${mark}`, "")))
    .join("\n");
}

/** Whether the text's `[features]` section says `name = false`. */
export function hasFeatureOff(text: string, name: string): boolean {
  const lines = text.split("\n");
  const header = lines.findIndex((line) => featuresHeader.test(line));
  if (header === -1) return false;
  const next = lines.findIndex((line, at) => at > header && anyHeader.test(line));
  return lines
    .slice(header + 1, next === -1 ? undefined : next)
    .some((line) => setsKey(line, name) && /=\s*false\b/.test(line));
}
