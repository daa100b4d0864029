/** Names under which secrets lie; a glob that was written for one of them reads it. */
const SECRET_NAMES =
  ".env .env.local .env.production .env.development .netrc .npmrc .pypirc .pgpass .git-credentials .vault-token id_rsa id_ed25519 id_ecdsa id_dsa credentials credentials.json authorized_keys config shadow sudoers gshadow hosts.yml environ .ssh .aws .gnupg .kube .docker .envrc config.json ssh_host_rsa_key ssh_host_ed25519_key ssh secrets run credentials.tfrc.json .terraform.d .config terraform.tfstate terraform.tfvars .claude .credentials.json .codex auth.json".split(
    " ",
  );

/**
 * Paths that a glob may find and that hold secrets: `.e*` finds `.env`. A sign at the beginning of a name finds
 * everything, and counts for nothing: `*.ts` was not written for `id_rsa`.
 */
export function toSecretCandidates(path: string): string[] {
  return toCandidates(path, SECRET_NAMES);
}

/** Names by which the gate's own files are found. */
const GATE_NAMES =
  ".claude .codex .git .fabric .mcp.json .claude.json settings.json settings.local.json hooks hooks.json config.toml policy deploy".split(
    " ",
  );

/** Paths of the gate's own files that a glob may find. */
export function toGateCandidates(path: string): string[] {
  return toCandidates(path, GATE_NAMES);
}

function toCandidates(path: string, names: readonly string[]): string[] {
  if (!/[*?[]/.test(path) || path.length > 1_024) return [];
  let found: string[] = [""];
  for (const part of path.split("/").slice(1)) {
    const fitting = !/[*?[]/.test(part)
      ? [part]
      : /^[*?[]/.test(part)
        ? []
        : names.filter((name) => fits(part, name));
    found = found.flatMap((before) =>
      fitting.length === 0 ? [`${before}/${part}`] : fitting.map((name) => `${before}/${name}`),
    );
    if (found.length > 64) return [];
  }
  return found.filter((candidate) => candidate !== path);
}

/** Names of the secrets that hide, and those that have no ending. */
const DOT_NAMES = SECRET_NAMES.filter((name) => /^\.|^id_/.test(name));

/** Whether a glob of `find` or of `--include` finds a hidden secret: there a `*` fits a dot as well. */
export const fitsDotName = (glob: string): boolean =>
  /[{(]/.test(glob) ? /env|rc|id_|\{[^}]*[*?[]/i.test(glob) : DOT_NAMES.some((name) => fits(glob, name));

/** Whether a glob of one name finds a name. A set in brackets fits any character: better one too many. */
function fits(glob: string, name: string): boolean {
  const parts = glob.replace(/\[[^\]]*\]/g, "?").split("*");
  let at = 0;
  for (const [index, part] of parts.entries()) {
    const isLast = index === parts.length - 1;
    const found =
      isLast && index > 0 ? Math.max(at, name.length - part.length) : indexOf(part, name, at, index === 0);
    if (found === -1 || !fitsAt(part, name, found)) return false;
    at = found + part.length;
  }
  return at === name.length;
}

function indexOf(part: string, name: string, from: number, isFirst: boolean): number {
  if (isFirst) return fitsAt(part, name, 0) ? 0 : -1;
  for (let at = from; at + part.length <= name.length; at += 1) if (fitsAt(part, name, at)) return at;
  return -1;
}

function fitsAt(part: string, name: string, at: number): boolean {
  if (at + part.length > name.length) return false;
  for (let offset = 0; offset < part.length; offset += 1)
    if (part[offset] !== "?" && part[offset] !== name[at + offset]) return false;
  return true;
}
