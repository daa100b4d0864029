/**
 * Secrets out of whatever leaves the vault: previews, rows, error texts, log lines, headers. A secret is replaced by
 * `[masked:<kind>]`. The patterns run in linear time: a run of characters is entered only at its start (look-behind),
 * and every other repetition is bounded.
 */

const masked = (kind: string): string => `[masked:${kind}]`;

interface Rule {
  readonly kind: string;
  readonly pattern: RegExp;
  /** Group 1 is kept; whether what follows it is a secret after all. */
  readonly isSecret?: (value: string, before: string) => boolean;
}

/** Where a token may start: not inside a word, but right after an escape such as `\n` in quoted text. */
const start = String.raw`(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))`;
/** What is masked already is left alone: masking twice is masking once. */
const alreadyMasked =
  /^\s*\\{0,3}["']?(?:[A-Za-z0-9-]{1,20}\s{1,4})?\[masked:[a-z_]{1,32}\][,)}\]]{0,4}\\{0,3}["']?\s*$/;
const secretNames =
  "password|passwd|pwd|passphrase|(?<![A-Za-z])pass|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|secret[_-]?key|signing[_-]?key|encryption[_-]?key|credentials?";
/** A quoted text to its end, or a bare word. */
const value = String.raw`(?:"(?:\\[^]|[^"\\]){1,4096}"?|'(?:\\[^]|[^'\\]){1,4096}'?|\\{1,3}["'][^"'\\]{1,4096}|[^\s"'\\&;]{1,4096})`;

const hasDigit = (text: string): boolean => /[0-9]/.test(text);
/** Words that stand where a secret would, in types, schemas and examples; and names of variables that hold one. */
const isPlaceholder = (text: string): boolean =>
  /^\\{0,3}["']?(?:string|str|number|int|integer|boolean|bool|null|none|undefined|true|false|required|optional|any|unknown|\$\{?[A-Za-z_][A-Za-z0-9_]*\}?|\$\([^]*|<[^<>]*>|\*+|\.{3})[,)}\]]{0,4}\\{0,3}["']?$/i.test(
    text,
  );

/** Forms that lead to the secret: header, flag, assignment, address. They come first, because they see all of it. */
const ledForms: readonly Rule[] = [
  {
    kind: "private_key",
    pattern:
      /()-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[^]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|$)/g,
  },
  {
    kind: "authorization",
    pattern: new RegExp(
      String.raw`(authorization\\{0,3}["']?\s{0,4}[:=]\s{0,4}\\{0,3}["']?(?:(?:bearer|basic|token|digest|negotiate|apikey|aws4-hmac-sha256)\s{1,4})?)[^\r\n"'\\]{1,4096}`,
      "gi",
    ),
    isSecret: (text) => !isPlaceholder(text),
  },
  {
    kind: "cookie",
    pattern: new RegExp(
      String.raw`(\bcookie\\{0,3}["']?\s{0,4}:\s{0,4}\\{0,3}["']?)[^\r\n"'\\]{1,4096}`,
      "gi",
    ),
  },
  {
    kind: "bearer",
    pattern: new RegExp(String.raw`(${start}Bearer\s{1,4})[A-Za-z0-9._~+/=-]+`, "g"),
  },
  {
    kind: "bearer",
    pattern: new RegExp(String.raw`(${start}bearer\s{1,4})[A-Za-z0-9._~+/=-]+`, "gi"),
    isSecret: (text) => hasDigit(text) || text.length >= 20,
  },
  {
    kind: "basic",
    pattern: new RegExp(String.raw`(${start}Basic\s{1,4})[A-Za-z0-9+/_-]{6,}={0,2}`, "gi"),
    isSecret: (text) => /[0-9=+/]|[a-z][A-Z]/.test(text),
  },
  {
    kind: "url_password",
    pattern: /((?<=:\/\/)[^\s/:@"'\\[]{0,128}:)(?!\d{1,5}\/)[^\s@"'\\]{1,256}(?=@)/g,
  },
  {
    kind: "login",
    pattern: new RegExp(
      String.raw`((?<![A-Za-z0-9_-])(?:-u|--user|--proxy-user)(?:=|\s{1,4})["']?[^\s:"'\\]{1,128}:)[^\s"'\\]{1,256}`,
      "g",
    ),
    isSecret: (text) => !/^\d+$/.test(text),
  },
  {
    kind: "flag",
    pattern: new RegExp(
      String.raw`((?<![A-Za-z0-9_-])--?[A-Za-z0-9_-]{0,40}?(?:${secretNames})\s{1,4})(?!-)${value}`,
      "gi",
    ),
    isSecret: (text) => !isPlaceholder(text),
  },
  {
    kind: "value",
    pattern: new RegExp(
      String.raw`((?:${secretNames})\\{0,3}["']?\s{0,4}(?:=>|:=|[:=])\s{0,4})(?![:=>])${value}`,
      "gi",
    ),
    isSecret: (text) => !isPlaceholder(text),
  },
];

const form = (kind: string, text: string, isSecret?: Rule["isSecret"]): Rule => ({
  kind,
  pattern: new RegExp(`(${start})${text}`, "g"),
  ...(isSecret === undefined ? {} : { isSecret }),
});

/** Forms that a provider gave its tokens, so that they can be found anywhere. */
const knownForms: readonly Rule[] = [
  form("api_key", "sk-[A-Za-z0-9_-]{5,}", (text) => hasDigit(text) || text.length >= 23),
  form("api_key", "(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{8,}"),
  form("webhook_secret", "whsec_[A-Za-z0-9+/=]{8,}"),
  form("github_token", "gh[pousr]_[A-Za-z0-9]{6,}"),
  form("github_token", "github_pat_[A-Za-z0-9_]{6,}"),
  form("gitlab_token", "gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent)-[A-Za-z0-9_-]{6,}"),
  form("aws_key", "A(?:KIA|SIA)[A-Z0-9]{12,}"),
  form("slack_token", "xox[abeoprs]-[A-Za-z0-9-]{4,}"),
  form("slack_token", "xapp-[A-Za-z0-9-]{6,}", hasDigit),
  form("npm_token", "npm_[A-Za-z0-9]{20,}"),
  form("google_key", "AIza[A-Za-z0-9_-]{20,}"),
  form("google_token", String.raw`ya29\.[A-Za-z0-9_-]{10,}`),
  form("pypi_token", "pypi-[A-Za-z0-9_-]{20,}"),
  form("huggingface_token", "hf_[A-Za-z0-9]{20,}"),
  form("digitalocean_token", "do[oprt]_v1_[a-f0-9]{20,}"),
  form("sendgrid_key", String.raw`SG\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`),
  form("jwt", String.raw`eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?`),
  {
    kind: "high_entropy",
    pattern: /((?<![A-Za-z0-9+=_-]))[A-Za-z0-9+=_-]{32,}/g,
    isSecret: (text, before) =>
      /(?:secret|token|key|passw|credential|auth|signature)[^]{0,24}$/i.test(before) && isRandom(text),
  },
];

/** Upper, lower and digits mixed, with at least four bits a character; hex digests, UUIDs and words are not. */
function isRandom(text: string): boolean {
  const sample = text.slice(0, 256);
  if (!/[a-z]/.test(sample) || !/[A-Z]/.test(sample) || !hasDigit(sample)) return false;
  const counts = new Map<string, number>();
  for (const one of sample) counts.set(one, (counts.get(one) ?? 0) + 1);
  let bits = 0;
  for (const count of counts.values()) bits -= (count / sample.length) * Math.log2(count / sample.length);
  return bits >= 4;
}

/** How much of what stands before a candidate decides whether it is one. */
const contextChars = 40;
const allForms: readonly Rule[] = [...ledForms, ...knownForms];

/** A replacement can lay another secret bare, once; more passes than this have never been needed. */
const maxPasses = 5;

/** The text with every secret replaced by `[masked:<kind>]`. Linear in the length; masking twice changes nothing. */
export function maskText(text: string): string {
  if (text.length < 6) return text;
  let result = maskOnce(text);
  // INVARIANT: masking is idempotent (test/property/gate-mask.test.ts "changes nothing the second time").
  for (let pass = 1, before = text; result !== before && pass < maxPasses; pass += 1) {
    before = result;
    result = maskOnce(result);
  }
  return result;
}

function maskOnce(text: string): string {
  let result = text;
  for (const { kind, pattern, isSecret } of allForms) {
    result = result.replace(pattern, (whole: string, lead: string, ...rest: unknown[]) => {
      const secret = whole.slice(lead.length);
      if (alreadyMasked.test(secret)) return whole;
      if (isSecret === undefined) return lead + masked(kind);
      const found = rest.find((one) => typeof one === "number") ?? 0;
      const at = found + lead.length;
      return isSecret(secret, result.slice(Math.max(0, at - contextChars), at)) ? lead + masked(kind) : whole;
    });
  }
  return result;
}

const secretKey =
  /(?:^|_)(?:password|passwd|pwd|passphrase|pass|secret|token|api_?key|access_?key|private_?key|secret_?key|signing_?key|encryption_?key|credentials?|authorization|cookie|auth)$/;
const secretFlag = new RegExp(`^--?[A-Za-z0-9_-]{0,40}?(?:${secretNames})$`, "i");

/** Whether a name says that its value is a secret: `password`, `apiKey`, `X-Auth-Token`, `AWS_SECRET_ACCESS_KEY`. */
export function isSecretKey(name: string): boolean {
  if (name.length > 128) return false;
  const words = name.replace(/([a-z0-9])([A-Z])/g, "$1_$2").replace(/[^A-Za-z0-9]+/g, "_");
  return secretKey.test(words.toLowerCase());
}

/** Deeper values are cut: what nests so deep is no preview of anything. */
const maskMaxDepth = 256;

/**
 * A copy of a JSON value with its secrets masked: by the form of a text, by the name of the key that holds it at any
 * depth, and after a flag in a list of arguments.
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
  if (Array.isArray(value)) {
    const items = value as readonly unknown[];
    return items.map((item, index) => {
      const before = items[index - 1];
      const led = typeof before === "string" && secretFlag.test(before) && typeof item === "string";
      return maskValue(item, isSecret || (led && !item.startsWith("-")), depth + 1);
    });
  }
  const copy: [string, unknown][] = Object.entries(value).map(([name, item]) => [
    maskText(name),
    maskValue(item, isSecret || isSecretKey(name), depth + 1),
  ]);
  // `fromEntries` defines, so that a key named `__proto__` stays a key.
  return Object.fromEntries(copy);
}
