import type { CommandIntent } from "./command-intent.ts";

const SECRET_PATHS =
  /(^|\/)(\.ssh\/(id_\w+|[^/]*_key|authorized_keys|identity)$|\.aws\/credentials$|\.netrc$|\.npmrc$|\.pypirc$|\.pgpass$|\.git-credentials$|\.env(\.(?!example$|sample$|template$)[\w.]+)?$|\.kube\/config$|\.docker\/config\.json$|\.gnupg\/|\.config\/gh\/hosts\.yml$|\.vault-token$|id_(rsa|ed25519|ecdsa|dsa)$|credentials\.json$|\.(ssh|aws|gnupg|password-store)\/?$|[\w.-]+\.(pem|key|p12|pfx)$)|^\/etc\/(shadow|sudoers|gshadow)$|^\/proc\/[\w*$]+\/environ$/i;

/** Whether a file of this name holds a secret, whoever reads it. */
export const isSecretPath = (path: string): boolean => SECRET_PATHS.test(path) && !/\.pub$/i.test(path);

const SCHEDULES =
  /^\/etc\/(cron[\w.]*(\/|$)|anacrontab$)|^\/var\/spool\/(cron|at)\b|\.timer$|\/Library\/LaunchAgents\//i;
const SERVICES =
  /^\/(etc|usr\/lib|lib|run)\/systemd\/|\/\.config\/systemd\/user\/|^\/etc\/(init\.d|rc\.local|rc\d?\.d)\b|\/Library\/Launch(Daemons|Agents)\//i;
const REPOSITORY = /(^|[/\\])\.git([/\\]|$)/i;

/** What it means that files are read, whether a command or a tool reads them. */
export function toReadIntents(paths: readonly string[]): CommandIntent[] {
  const intents: CommandIntent[] = [];
  if (paths.some(isSecretPath)) intents.push("secret.read");
  if (paths.some((path) => /^\/dev\/(tcp|udp)\//.test(path))) intents.push("network.send", "reverse.shell");
  return intents;
}

/** What it means that files are written. */
export function toWriteIntents(paths: readonly string[]): CommandIntent[] {
  const any = (pattern: RegExp): boolean => paths.some((path) => pattern.test(path));
  const intents: CommandIntent[] = [];
  if (any(/^\/dev\/(sd|hd|vd|nvme|disk|mmcblk|mapper)/)) intents.push("disk.write");
  if (any(/^\/dev\/(tcp|udp)\//)) intents.push("network.send", "reverse.shell");
  if (any(/(^|[/\\])\.git[/\\]hooks([/\\]|$)|[/\\]\.husky[/\\]/i)) intents.push("git.hooks.skip");
  if (any(SCHEDULES)) intents.push("cron.change");
  if (any(SERVICES)) intents.push("service.change");
  return intents;
}

/** What it means that files, or whole folders, are gone afterwards. */
export function toDeleteIntents(paths: readonly string[]): CommandIntent[] {
  return paths.some((path) => REPOSITORY.test(path) && !/\.lock$/.test(path)) ? ["history.delete"] : [];
}
