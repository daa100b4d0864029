import { hasName } from "./options.ts";
import type { ParsedCommand, SimpleCommand, Word } from "./parsed-command.ts";

/** What a command line is about to do, in words that rules can name. Facts for a policy, not a verdict. */
export type CommandIntent =
  | "git.push"
  | "git.push.force"
  | "git.commit"
  | "git.discard"
  | "git.hooks.skip"
  | "history.delete"
  | "file.delete"
  | "file.delete.recursive"
  | "file.delete.wide"
  | "pipe.to.shell"
  | "package.install"
  | "package.publish"
  | "secret.read"
  | "credential.read"
  | "network.fetch"
  | "network.send"
  | "network.listen"
  | "reverse.shell"
  | "deploy"
  | "infra.destroy"
  | "infra.change"
  | "container.run.privileged"
  | "privilege.raise"
  | "disk.write"
  | "permission.change"
  | "process.kill"
  | "system.stop"
  | "service.change"
  | "cron.change"
  | "code.inline";

/** All conditions that are given must hold. `verb` is tried on the operands joined by blanks, `option` on each option. */
type IntentRule = {
  readonly intent: CommandIntent;
  readonly programs: string;
  readonly verb?: RegExp;
  readonly option?: RegExp;
  readonly word?: RegExp;
};

const RULES: readonly IntentRule[] = [
  {
    intent: "git.push.force",
    programs: "git",
    verb: /^push\b/,
    word: /^(--force(-with-lease|-if-includes)?(=.*)?|-[a-zA-Z]*f[a-zA-Z]*|--mirror|--delete|-d|--prune|\+.+|:.+)$/,
  },
  { intent: "git.discard", programs: "git", verb: /^reset\b/, option: /^--(hard|merge)$/ },
  { intent: "git.discard", programs: "git", verb: /^clean\b/, option: /^(-[a-zA-Z]*f[a-zA-Z]*|--force)$/ },
  { intent: "git.discard", programs: "git", verb: /^(checkout|restore) (.* )?(\.|:\/)$/ },
  { intent: "git.discard", programs: "git", verb: /^stash (drop|clear)\b/ },
  { intent: "git.discard", programs: "git", verb: /^branch\b/, option: /^-[a-zA-Z]*D/ },
  {
    intent: "git.discard",
    programs: "git",
    verb: /^(reflog expire|filter-branch|filter-repo|update-ref -d)\b/,
  },
  { intent: "file.delete", programs: "rm unlink shred rmdir" },
  { intent: "file.delete.recursive", programs: "rm", option: /^(-[a-zA-Z]*[rR][a-zA-Z]*|--recursive)$/ },
  { intent: "file.delete", programs: "find", word: /^-delete$/ },
  { intent: "file.delete.recursive", programs: "find", word: /^-delete$/ },
  {
    intent: "package.install",
    programs: "npm pnpm yarn bun",
    verb: /^(i|install|add|ci|in|isntall|global add)\b/,
  },
  {
    intent: "package.install",
    programs:
      "pip pip3 gem brew conda mamba cargo snap flatpak choco winget port dnf yum zypper apt apt-get aptitude",
    verb: /^install\b/,
  },
  { intent: "package.install", programs: "go", verb: /^(install|get)\b/ },
  { intent: "package.install", programs: "apk uv poetry composer", verb: /^(add|pip install|require)\b/ },
  { intent: "package.install", programs: "pacman", option: /^-S/ },
  { intent: "package.install", programs: "dpkg rpm", option: /^(-i|--install|-[UiF][a-z]*)$/ },
  { intent: "package.install", programs: "python python3", verb: /^pip install\b/, option: /^-m$/ },
  { intent: "secret.read", programs: "gh", verb: /^auth token\b/ },
  { intent: "secret.read", programs: "vault", verb: /^(read|kv get)\b/ },
  {
    intent: "secret.read",
    programs: "aws",
    verb: /^(secretsmanager get-secret-value|ssm get-parameters?)\b/,
  },
  { intent: "secret.read", programs: "gcloud", verb: /^(secrets versions access|auth print-access-token)\b/ },
  { intent: "secret.read", programs: "kubectl", verb: /^get (secrets?)\b/ },
  { intent: "secret.read", programs: "security", verb: /^find-(generic|internet)-password\b/ },
  { intent: "secret.read", programs: "pass op", verb: /^(show|read|item get)\b/ },
  { intent: "secret.read", programs: "printenv" },
  {
    intent: "network.send",
    programs: "curl",
    word: /^(-d.*|--data(-\w+)?(=.*)?|-F.*|--form(=.*)?|-T.*|--upload-file(=.*)?|--json(=.*)?|-X(POST|PUT|DELETE|PATCH)|POST|PUT|DELETE|PATCH)$/,
  },
  { intent: "network.send", programs: "wget", option: /^--(post|body)-(data|file)/ },
  { intent: "network.send", programs: "nc ncat netcat socat telnet sendmail mail" },
  { intent: "network.send", programs: "scp rsync", word: /^[^/-][^/]*:/ },
  { intent: "network.send", programs: "ssh sftp ftp lftp" },
  {
    intent: "infra.destroy",
    programs: "terraform tofu terragrunt pulumi",
    verb: /^(destroy|state rm|apply -destroy)\b/,
  },
  { intent: "infra.destroy", programs: "terraform tofu", verb: /^apply\b/, option: /^-?-destroy$/ },
  { intent: "infra.destroy", programs: "kubectl oc", verb: /^(delete|drain)\b/ },
  { intent: "infra.destroy", programs: "helm", verb: /^(uninstall|delete)\b/ },
  {
    intent: "infra.destroy",
    programs: "docker podman",
    verb: /^((system|volume|image|container|network|builder) prune|volume rm|rm|rmi|compose down)\b/,
  },
  { intent: "infra.destroy", programs: "aws", verb: /^\S+ (delete-\S+|terminate-\S+|rm|rb)\b/ },
  { intent: "infra.destroy", programs: "gcloud az", verb: /\bdelete\b/ },
  { intent: "infra.destroy", programs: "redis-cli", verb: /^flush(all|db)\b/i },
  { intent: "infra.destroy", programs: "dropdb dropuser" },
  {
    intent: "infra.destroy",
    programs: "psql mysql sqlite3",
    word: /\b(drop\s+(table|database|schema)|truncate|delete\s+from)\b/i,
  },
  { intent: "infra.change", programs: "terraform tofu terragrunt pulumi", verb: /^(apply|up|import)\b/ },
  {
    intent: "infra.change",
    programs: "kubectl oc",
    verb: /^(apply|create|scale|patch|edit|replace|rollout|set|label|annotate)\b/,
  },
  { intent: "infra.change", programs: "helm", verb: /^(install|upgrade|rollback)\b/ },
  { intent: "privilege.raise", programs: "sudo doas su pkexec runuser" },
  { intent: "disk.write", programs: "mkfs mkfs.ext4 fdisk parted wipefs" },
  { intent: "disk.write", programs: "dd", word: /^of=\/dev\/(?!null$|stdout$|stderr$)/ },
  {
    intent: "permission.change",
    programs: "chmod chown chgrp",
    option: /^(-[a-zA-Z]*R[a-zA-Z]*|--recursive)$/,
  },
  {
    intent: "permission.change",
    programs: "chmod",
    word: /^([0-7]?777|[ugoa]*\+[rwx]*s|[2467][0-7]{3}|a\+rwx)$/,
  },
  { intent: "process.kill", programs: "kill pkill killall" },
  { intent: "system.stop", programs: "shutdown reboot halt poweroff" },
  { intent: "system.stop", programs: "systemctl service", verb: /\b(stop|disable|mask|poweroff|reboot)\b/ },
];

const SECRET_PATHS =
  /(^|\/)(\.ssh\/(id_\w+|.*_key|authorized_keys)$|\.aws\/credentials$|\.netrc$|\.npmrc$|\.pypirc$|\.pgpass$|\.git-credentials$|\.env(\.(?!example$|sample$|template$)[\w.]+)?$|\.kube\/config$|\.docker\/config\.json$|\.gnupg\/|\.config\/gh\/hosts\.yml$|\.vault-token$|id_(rsa|ed25519|ecdsa|dsa)$|credentials\.json$|[\w.-]+\.(pem|key|p12|pfx)$)|^\/etc\/(shadow|sudoers|gshadow)$|^\/proc\/[\w*$]+\/environ$/;
/** Programs that carry files away, or open them, by words that the path table does not follow. */
const CARRIERS = "scp rsync curl tar zip gpg openssl sqlite3 cp mv dd base64 xxd";

const text = (word: Word): string =>
  word.kind === "literal" ? word.text : word.source.replace(/^"|"$/g, "");

/** Intents of a command line, sorted, each once. */
export function toIntents(parsed: ParsedCommand): readonly CommandIntent[] {
  const found = new Set<CommandIntent>();
  for (const command of parsed.commands)
    for (const rule of RULES) if (matches(rule, command)) found.add(rule.intent);
  for (const reason of parsed.opaque) {
    if (reason.kind === "inline_code") found.add("code.inline");
    if (reason.kind === "code_from_input" && /^(pipe|<\()/.test(reason.detail)) found.add("pipe.to.shell");
  }
  for (const { path } of parsed.writes)
    if (/^\/dev\/(sd|hd|vd|nvme|disk|mmcblk|mapper)/.test(path)) found.add("disk.write");
  for (const { path } of parsed.writes) if (/^\/dev\/(tcp|udp)\//.test(path)) found.add("network.send");
  if (parsed.reads.some((path) => SECRET_PATHS.test(path))) found.add("secret.read");
  for (const command of parsed.commands)
    if (
      hasName(CARRIERS, command.program) &&
      command.argv.some(
        (word) => !/\s/.test(text(word)) && SECRET_PATHS.test(text(word).replace(/^(if=|@|\w+=@)/, "")),
      )
    )
      found.add("secret.read");
  return [...found].sort();
}

function matches(rule: IntentRule, command: SimpleCommand): boolean {
  if (!hasName(rule.programs, command.program)) return false;
  const words = command.argv.map(text);
  if (
    rule.option !== undefined &&
    !words.some((word) => word.startsWith("-") && rule.option?.test(word) === true)
  )
    return false;
  if (rule.word !== undefined && !words.some((word) => rule.word?.test(word) === true)) return false;
  return rule.verb === undefined || rule.verb.test(toOperands(command.program, words).join(" "));
}

/** Operands without the options in front of the verb, so that `git -C dir push` is a push. */
function toOperands(program: string, words: readonly string[]): string[] {
  const takesValue =
    program === "git"
      ? "-C -c --git-dir --work-tree --namespace"
      : "-n --namespace --context --profile --region -f --kubeconfig -chdir --prefix -C --project";
  const operands: string[] = [];
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? "";
    if (!word.startsWith("-")) operands.push(word);
    else if (hasName(takesValue, word)) at += 1;
  }
  return operands;
}
