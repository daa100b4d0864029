/**
 * Secrets out of whatever leaves the vault: previews, rows, error texts, log lines, headers. A secret is replaced by
 * `[masked:<kind>]`.
 */
import { passwordPlace } from "./mask-arguments.ts";
import { knownForms, ledForms, secretNames } from "./mask-forms.ts";
import type { MaskRule } from "./mask-forms.ts";

const masked = (kind: string): string => `[masked:${kind}]`;

/** What is masked already is left alone: masking twice is masking once. */
const alreadyMasked =
  /^\s*\\{0,3}["']?(?:[A-Za-z0-9-]{1,20}\s{1,4})?\[masked:[a-z_]{1,32}\][,)}\]]{0,4}\\{0,3}["']?\s*$/;
/** How much of what stands before a candidate decides whether it is one. */
const contextChars = 40;
/** Every detector, in the order in which they run. */
export const detectors: readonly MaskRule[] = [...ledForms, ...knownForms];

/** How common a character is in texts; letters from the most common one. */
function commonness(letter: string): number {
  const place = "etaoinsrhldcumfpgwybvkxjqz".indexOf(letter);
  return place >= 0 ? 27 - place : "-_./".includes(letter) ? 12 : 1;
}
/** The pair of neighbours in a trigger that other texts hold least often. */
function rarestPair(trigger: string): string {
  const pairs = Array.from({ length: trigger.length - 1 }, (_, at) => trigger.slice(at, at + 2));
  const rareness = (pair: string): number => commonness(pair.charAt(0)) * commonness(pair.charAt(1));
  return pairs.reduce((best, one) => (rareness(one) < rareness(best) ? one : best));
}

/** Two neighbouring ASCII characters → a bit for each detector that has a trigger with this pair, in either case. */
const bitsOfPair = new Int32Array(128 * 128);
detectors.forEach(({ triggers }, index) => {
  for (const pair of triggers.map(rarestPair)) {
    for (const first of [pair.charAt(0), pair.charAt(0).toUpperCase()]) {
      for (const second of [pair.charAt(1), pair.charAt(1).toUpperCase()]) {
        const at = first.charCodeAt(0) * 128 + second.charCodeAt(0);
        bitsOfPair[at] = (bitsOfPair[at] ?? 0) | (1 << index);
      }
    }
  }
});

/**
 * One cheap pass over a text: a bit for each detector (by its place in `detectors`) that could find something; a
 * detector without its bit finds nothing.
 * INVARIANT: test/property/gate-mask.test.ts "finds nothing where the cheap pass saw no trigger".
 */
export function suspicionsOf(text: string): number {
  let seen = 0;
  let before = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    const now = code < 128 ? code : 0;
    seen |= bitsOfPair[before * 128 + now] as number;
    before = now;
  }
  if (seen === 0) return 0;
  // Lower case adds ASCII letters at most (the Kelvin sign becomes a k); it takes none away.
  const lower = text.toLowerCase();
  let suspected = 0;
  for (let index = 0, rest = seen; rest !== 0; index += 1, rest >>>= 1) {
    if ((rest & 1) === 1 && detectors[index]?.triggers.some((one) => lower.includes(one)) === true) {
      suspected |= 1 << index;
    }
  }
  return suspected;
}

/** A replacement can lay another secret bare, once; more passes than this have never been needed. */
const maxPasses = 5;

/** The text with every secret replaced by `[masked:<kind>]`. Linear in the length; masking twice changes nothing. */
export function maskText(text: string): string {
  return text.length < 6 ? text : maskSuspected(text, suspicionsOf(text));
}

function maskSuspected(text: string, suspected: number): string {
  if (suspected === 0 || text.length < 6) return text;
  let result = maskOnce(text, suspected);
  // INVARIANT: masking is idempotent (test/property/gate-mask.test.ts "changes nothing the second time").
  for (let pass = 1, before = text; result !== before && pass < maxPasses; pass += 1) {
    before = result;
    result = maskOnce(result, suspicionsOf(result));
  }
  return result;
}

function maskOnce(text: string, suspectedAtFirst: number): string {
  let result = text;
  let suspected = suspectedAtFirst;
  for (let index = 0; index < detectors.length; index += 1) {
    if ((suspected & (1 << index)) === 0) continue;
    const before = result;
    result = detect(before, detectors[index] as MaskRule);
    // What stands there now may hold another trigger.
    if (result !== before) suspected = suspicionsOf(result);
  }
  return result;
}

/** The text without what one detector finds. */
export function detect(text: string, { kind, pattern, isSecret }: MaskRule): string {
  return text.replace(pattern, (whole: string, lead: string, ...rest: unknown[]) => {
    const secret = whole.slice(lead.length);
    if (alreadyMasked.test(secret)) return whole;
    if (isSecret === undefined) return lead + masked(kind);
    const found = rest.find((one) => typeof one === "number") ?? 0;
    const at = found + lead.length;
    return isSecret(secret, text.slice(Math.max(0, at - contextChars), at)) ? lead + masked(kind) : whole;
  });
}

const secretKey =
  /(?:^|_)(?:password|passwd|pwd|passphrase|pass|secret|token|api_?key|access_?key|private_?key|secret_?key|signing_?key|encryption_?key|credentials?|authorization|cookie|auth)$/;
const secretFlag = new RegExp(`^--?[A-Za-z0-9_-]{0,40}?(?:${secretNames})$`, "i");

/** Detectors whose triggers are part of every name that `secretKey` knows. */
const nameSuspicions = detectors.reduce(
  (bits, { kind }, index) =>
    ["value", "cookie", "high_entropy"].includes(kind) ? bits | (1 << index) : bits,
  0,
);

/** Whether a name says that its value is a secret: `password`, `apiKey`, `X-Auth-Token`, `AWS_SECRET_ACCESS_KEY`. */
function isSecretName(name: string, suspected: number): boolean {
  if (name.length > 128 || (suspected & nameSuspicions) === 0) return false;
  const words = name.replace(/([a-z0-9])([A-Z])/g, "$1_$2").replace(/[^A-Za-z0-9]+/g, "_");
  return secretKey.test(words.toLowerCase());
}

/** Deeper values are cut: what nests so deep is no preview of anything. */
const maskMaxDepth = 256;

/**
 * A JSON value with its secrets masked: by the form of a text, by the name of the key that holds it at any depth, and
 * after a flag in a list of arguments. A copy; what holds no secret is returned as it is.
 */
export function maskJson(value: unknown): unknown {
  return maskValue(value, false, 0);
}

function maskValue(value: unknown, isSecret: boolean, depth: number): unknown {
  if (typeof value === "string") {
    if (!isSecret) return maskText(value);
    return value === "" || value.startsWith("[masked:") ? value : masked("value");
  }
  if (typeof value === "number" || typeof value === "bigint") return isSecret ? masked("value") : value;
  if (typeof value !== "object" || value === null) return value;
  if (depth >= maskMaxDepth) return masked("depth");
  let isChanged = false;
  if (Array.isArray(value)) {
    const items = value as readonly unknown[];
    const place = passwordPlace(items);
    const copy = items.map((item, index) => {
      const before = items[index - 1];
      const led = typeof before === "string" && secretFlag.test(before) && typeof item === "string";
      const isArgument = index === place && typeof item === "string";
      const one = maskValue(item, isSecret || isArgument || (led && !item.startsWith("-")), depth + 1);
      if (one !== item) isChanged = true;
      return one;
    });
    return isChanged ? copy : value;
  }
  const copy = Object.entries(value).map(([name, item]: [string, unknown]): [string, unknown] => {
    const suspected = suspicionsOf(name);
    const shown = maskSuspected(name, suspected);
    const one = maskValue(item, isSecret || isSecretName(name, suspected), depth + 1);
    if (one !== item || shown !== name) isChanged = true;
    return [shown, one];
  });
  // `fromEntries` defines, so that a key named `__proto__` stays a key.
  return isChanged ? Object.fromEntries(copy) : value;
}
