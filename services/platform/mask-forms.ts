/**
 * The forms that secrets have. Each pattern runs in linear time: a run of characters is entered only at its start
 * (look-behind), and every other repetition is bounded.
 */

/** One kind of secret, and how it is found. */
export interface MaskRule {
  readonly kind: string;
  readonly pattern: RegExp;
  /** A text in which it finds a secret holds one of these, in upper or lower case. */
  readonly triggers: readonly string[];
  /** Group 1 is kept; whether what follows it is a secret after all. */
  readonly isSecret?: (value: string, before: string) => boolean;
}

/** Where a token may start: not inside a word, but right after an escape such as `\n` in quoted text. */
const start = String.raw`(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))`;
/** Names of secrets, as the source of a pattern. */
export const secretNames =
  "password|passwd|pwd|passphrase|(?<![A-Za-z])pass|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|secret[_-]?key|signing[_-]?key|encryption[_-]?key|credentials?";
/** Each of `secretNames` holds one of these. */
const nameTriggers = ["pass", "pwd", "secret", "token", "key", "credential"];
/** A quoted text to its end, or a bare word. */
const value = String.raw`(?:"(?:\\[^]|[^"\\]){1,4096}"?|'(?:\\[^]|[^'\\]){1,4096}'?|\\{1,3}["'][^"'\\]{1,4096}|[^\s"'\\&;]{1,4096})`;

const hasDigit = (text: string): boolean => /[0-9]/.test(text);
/** Words that stand where a secret would, in types, schemas and examples; and names of variables that hold one. */
const isPlaceholder = (text: string): boolean =>
  /^\\{0,3}["']?(?:string|str|number|int|integer|boolean|bool|null|none|undefined|true|false|required|optional|any|unknown|\$\{?[A-Za-z_][A-Za-z0-9_]*\}?|\$\([^]*|<[^<>]*>|\*+|\.{3})[,)}\]]{0,4}\\{0,3}["']?$/i.test(
    text,
  );

/** Up to eight words of a command line before the option that is looked for. */
const otherWords = String.raw`(?:[ \t]{1,4}(?:[^\s;&|"']{1,64}|"[^"\n]{0,128}"|'[^'\n]{0,128}')){0,8}?`;
/** Words that follow "my password is" when no password does. */
const commonWords =
  /^(?:[a-z]+(?:ed|ing|able)|a|an|the|not|no|in|on|at|as|by|for|from|of|to|too|so|set|unset|stored|kept|saved|sent|read|used|needed|required|expired|expiring|invalid|valid|wrong|incorrect|missing|empty|weak|strong|safe|secure|secret|hidden|masked|hashed|encrypted|leaked|lost|gone|never|always|only|also|being|changed|reset|rotated|revoked|refused|rejected|accepted|correct|good|bad|old|new|long|short|here|there|what|where|how|that|this|it|my|your|passed|taken|given|asked|checked|handled|generated|created|printed|shown|logged|working|broken|still|now|just|about|likely|probably|currently|already|available|unavailable|known|unknown|optional|present|absent|different|due|under|with|without|okay|ok)$/i;
/** Whether a sentence tells a secret: it looks like none of its words; of a password, and after "my" or "our", any rare word is one. */
function isTold(text: string, before: string): boolean {
  const word = text.replace(/^[\\"']{1,4}|[\\"'.,;:!?)\]}]{1,8}$/g, "");
  if (word.length < 4 || commonWords.test(word)) return false;
  if (/\bto\s{1,4}$/i.test(before) && !/\b(?:set|change|reset)\s/i.test(before)) return false;
  if (/^["']/.test(text) || /\b(?:my|our)\s|passw|passphrase/i.test(before)) return true;
  return /[0-9!@#$%^*+=~]/.test(word) && !/^(?:sha\d{1,3}:|[0-9]+$)/.test(word);
}

/** Forms that lead to the secret: header, flag, assignment, address. They come first, because they see all of it. */
export const ledForms: readonly MaskRule[] = [
  {
    kind: "private_key",
    triggers: ["-----begin "],
    pattern:
      /()-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[^]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|$)/g,
  },
  {
    kind: "authorization",
    triggers: ["authorization"],
    pattern: new RegExp(
      String.raw`(authorization\\{0,3}["']?\s{0,4}[:=]\s{0,4}\\{0,3}["']?(?:(?:bearer|basic|token|digest|negotiate|apikey|aws4-hmac-sha256)\s{1,4})?)[^\r\n"'\\]{1,4096}`,
      "gi",
    ),
    isSecret: (text) => !isPlaceholder(text),
  },
  {
    kind: "cookie",
    triggers: ["cookie"],
    pattern: new RegExp(
      String.raw`(\bcookie\\{0,3}["']?\s{0,4}:\s{0,4}\\{0,3}["']?)[^\r\n"'\\]{1,4096}`,
      "gi",
    ),
  },
  {
    kind: "bearer",
    triggers: ["bearer"],
    pattern: new RegExp(String.raw`(${start}Bearer\s{1,4})[A-Za-z0-9._~+/=-]+`, "g"),
  },
  {
    kind: "bearer",
    triggers: ["bearer"],
    pattern: new RegExp(String.raw`(${start}bearer\s{1,4})[A-Za-z0-9._~+/=-]+`, "gi"),
    isSecret: (text) => hasDigit(text) || text.length >= 20,
  },
  {
    kind: "basic",
    triggers: ["basic"],
    pattern: new RegExp(String.raw`(${start}Basic\s{1,4})[A-Za-z0-9+/_-]{6,}={0,2}`, "gi"),
    isSecret: (text) => /[0-9=+/]|[a-z][A-Z]/.test(text),
  },
  {
    kind: "url_password",
    triggers: ["://"],
    pattern: /((?<=:\/\/)[^\s/:@"'\\[]{0,128}:)(?!\d{1,5}\/)[^\s@"'\\]{1,256}(?=@)/g,
  },
  {
    kind: "login",
    triggers: ["-u"],
    pattern: new RegExp(
      String.raw`((?<![A-Za-z0-9_-])(?:-u|--user|--proxy-user)(?:=|\s{1,4})["']?[^\s:"'\\]{1,128}:)[^\s"'\\]{1,256}`,
      "g",
    ),
    isSecret: (text) => !/^\d+$/.test(text),
  },
  {
    kind: "flag",
    triggers: nameTriggers,
    pattern: new RegExp(
      String.raw`((?<![A-Za-z0-9_-])--?[A-Za-z0-9_-]{0,40}?(?:${secretNames})\s{1,4})(?!-)${value}`,
      "gi",
    ),
    isSecret: (text) => !isPlaceholder(text),
  },
  {
    kind: "program_flag",
    triggers: ["mysql", "mariadb", "sshpass", "-cli", "login", "--password-stdin"],
    // A program's own short option for a password, and what is fed to `--password-stdin`.
    pattern: new RegExp(
      String.raw`((?<![A-Za-z0-9_-])(?:(?:mysql[a-z]{0,12}|mariadb(?:-[a-z]{1,12})?)${otherWords}[ \t]{1,4}-p|` +
        String.raw`sshpass(?:[ \t]{1,4}-v)?[ \t]{1,4}-p[ \t]{0,4}|` +
        String.raw`(?:redis|keydb|valkey)-cli${otherWords}[ \t]{1,4}-a[ \t]{1,4}|` +
        String.raw`(?:docker|podman|nerdctl|buildah|skopeo|registry)[ \t]{1,4}login${otherWords}[ \t]{1,4}-p[ \t]{0,4}|` +
        String.raw`--password-stdin[^;&|\n<]{0,100}<<<[ \t]{0,4}|` +
        String.raw`(?:echo|printf)[ \t]{1,4}(?:(?:-n|'?"?%s(?:\\n)?"?'?)[ \t]{1,4})?(?=[^|\n]{1,300}\|[^|\n]{0,200}--password-stdin))(?!-))${value}`,
      "g",
    ),
    isSecret: (text) => !isPlaceholder(text),
  },
  {
    kind: "value",
    triggers: nameTriggers,
    // A setting by its name: "aws configure set aws_secret_access_key X".
    pattern: new RegExp(
      String.raw`((?<![A-Za-z0-9_-])(?:config(?:ure)?|npm|pnpm|yarn)\s{1,4}set\s{1,4}[A-Za-z0-9_.:/@-]{0,64}?(?:${secretNames})\s{1,4})(?!-)${value}`,
      "gi",
    ),
    isSecret: (text) => !isPlaceholder(text),
  },
  {
    kind: "value",
    triggers: nameTriggers,
    // A sentence: "my password is X".
    pattern: new RegExp(
      String.raw`((?<![A-Za-z0-9_-])(?:${secretNames}|(?:api|access|private|secret|signing|encryption)\s{1,4}key)(?:\s{1,4}[a-z]{1,12})?\s{1,4}(?:is|was|to)(?:\s{0,4}:)?(?:\s{1,4}(?:now|still|set\s{1,4}to))?\s{1,4})(?![-=:<>])${value}`,
      "gi",
    ),
    isSecret: (text, before) => !isPlaceholder(text) && isTold(text, before),
  },
  {
    kind: "value",
    triggers: nameTriggers,
    pattern: new RegExp(
      String.raw`((?:${secretNames})\\{0,3}["']?\s{0,4}(?:=>|:=|[:=])\s{0,4})(?![:=>])${value}`,
      "gi",
    ),
    isSecret: (text) => !isPlaceholder(text),
  },
];

const form = (
  kind: string,
  triggers: readonly string[],
  text: string,
  isSecret?: MaskRule["isSecret"],
): MaskRule => ({
  kind,
  triggers,
  pattern: new RegExp(`(${start})${text}`, "g"),
  ...(isSecret === undefined ? {} : { isSecret }),
});

/** Forms that a provider gave its tokens, so that they can be found anywhere. */
export const knownForms: readonly MaskRule[] = [
  form("api_key", ["sk-"], "sk-[A-Za-z0-9_-]{5,}", (text) => hasDigit(text) || text.length >= 23),
  form("api_key", ["_live_", "_test_"], "(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{8,}"),
  form("webhook_secret", ["whsec_"], "whsec_[A-Za-z0-9+/=]{8,}"),
  form("github_token", ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], "gh[pousr]_[A-Za-z0-9]{6,}"),
  form("github_token", ["github_pat_"], "github_pat_[A-Za-z0-9_]{6,}"),
  form(
    "gitlab_token",
    ["glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-", "glagent-"],
    "gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent)-[A-Za-z0-9_-]{6,}",
  ),
  form("aws_key", ["akia", "asia"], "A(?:KIA|SIA)[A-Z0-9]{12,}"),
  form("slack_token", ["xox"], "xox[abeoprs]-[A-Za-z0-9-]{4,}"),
  form("slack_token", ["xapp-"], "xapp-[A-Za-z0-9-]{6,}", hasDigit),
  form("npm_token", ["npm_"], "npm_[A-Za-z0-9]{20,}"),
  form("google_key", ["aiza"], "AIza[A-Za-z0-9_-]{20,}"),
  form("google_token", ["ya29."], String.raw`ya29\.[A-Za-z0-9_-]{10,}`),
  form("pypi_token", ["pypi-"], "pypi-[A-Za-z0-9_-]{20,}"),
  form("huggingface_token", ["hf_"], "hf_[A-Za-z0-9]{20,}"),
  form("digitalocean_token", ["_v1_"], "do[oprt]_v1_[a-f0-9]{20,}"),
  form("sendgrid_key", ["sg."], String.raw`SG\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`),
  form("jwt", ["eyj"], String.raw`eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?`),
  {
    kind: "high_entropy",
    triggers: ["secret", "token", "key", "passw", "credential", "auth", "signature"],
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
