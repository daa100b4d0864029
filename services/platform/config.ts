import { readFileSync } from "node:fs";
import { z } from "zod";
import { Fault } from "../../schemas/faults.ts";

/** Services that connect to Postgres, each as its own role `fabric_<name>`. */
export const databaseUsers = [
  "gate",
  "relay",
  "host",
  "sealer",
  "desk",
  "recovery",
  "exporter",
  "contracts",
  "auditor",
  "analyst",
  "admin",
] as const;
export type DatabaseUser = (typeof databaseUsers)[number];

const url = z.string().regex(/^postgres(ql)?:\/\//, "must be a postgres:// address");
const optionalText = z.string().min(1).optional();
const port = z.coerce.number().int().min(0).max(65_535);
const flag = z.enum(["true", "false"]).transform((text) => text === "true");

const environmentSchema = z.object({
  FABRIC_ENVIRONMENT: z
    .string()
    .regex(/^[a-z0-9-]+$/)
    .default("local"),
  FABRIC_LOG_LEVEL: z.enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"]).default("info"),
  FABRIC_HTTP_HOST: z.string().default("127.0.0.1"),
  FABRIC_HTTP_PORT: port.default(0),
  FABRIC_GATE_PORT: port.default(7411),
  FABRIC_GATE_BODY_LIMIT_BYTES: z.coerce
    .number()
    .int()
    .min(1024)
    .max(64 * 1024 * 1024)
    .default(4 * 1024 * 1024),
  FABRIC_GATE_BUDGET_MS: z.coerce.number().int().min(10).max(60_000).default(250),
  FABRIC_POLICY_DIR: optionalText,
  FABRIC_DESK_PORT: port.default(7412),
  FABRIC_GATE_LOCAL_FILES: flag.default(false),
  FABRIC_GATE_SPOOL_FILE: optionalText,
  FABRIC_THROTTLE_FILE: optionalText,
  FABRIC_KAFKA_BROKERS: z
    .string()
    .transform((text) => text.split(",").map((one) => one.trim()))
    .pipe(z.array(z.string().regex(/^[^:\s]+:\d+$/, "each broker is host:port")).min(1)),
  FABRIC_KAFKA_TLS: flag.default(false),
  FABRIC_KAFKA_SASL_MECHANISM: z.enum(["plain", "scram-sha-256", "scram-sha-512"]).optional(),
  FABRIC_KAFKA_USERNAME: optionalText,
  FABRIC_KAFKA_PASSWORD: optionalText,
  FABRIC_KAFKA_REPLICATION: z.coerce.number().int().min(1).max(9).default(1),
  FABRIC_TOPIC_PREFIX: z
    .string()
    .regex(/^([a-z0-9-]+\.)?$/, "ends in a dot, such as `team-a.`")
    .default(""),
  FABRIC_REGISTRY_URL: z.url({ protocol: /^https?$/ }),
  FABRIC_REGISTRY_USERNAME: optionalText,
  FABRIC_REGISTRY_PASSWORD: optionalText,
  FABRIC_KEK_FILE: optionalText,
  FABRIC_AUTH_KEYS_FILE: optionalText,
  FABRIC_CAPABILITY_KEYS_FILE: optionalText,
  FABRIC_OIDC_ISSUER: z.url().optional(),
  FABRIC_OIDC_AUDIENCE: optionalText,
  FABRIC_SEAL_KEY_FILE: optionalText,
  FABRIC_SEAL_PUBLIC_KEYS_DIR: optionalText,
  FABRIC_TOKEN_FILE: optionalText,
  FABRIC_GATE_URL: z.url({ protocol: /^https?$/ }).optional(),
  FABRIC_DESK_URL: z.url({ protocol: /^https?$/ }).optional(),
  FABRIC_PRICES_DIR: optionalText,
  FABRIC_BUDGETS_FILE: optionalText,
  FABRIC_BREAKER_FILE: optionalText,
  FABRIC_REPORTER_TOKENS_DIR: optionalText,
  FABRIC_OTLP_ENDPOINT: z.url({ protocol: /^https?$/ }).optional(),
  FABRIC_OTLP_PROTOCOL: z.enum(["http", "grpc"]).default("http"),
  FABRIC_OTLP_HEADERS: z
    .string()
    .default("")
    .transform((text) => text.split(",").filter((one) => one.trim() !== ""))
    .pipe(z.array(z.string().regex(/^\s*[A-Za-z0-9-]+\s*=/, "headers are name=value,name=value"))),
  FABRIC_OTLP_HOLD_MS: z.coerce.number().int().min(0).max(86_400_000).default(30_000),
  FABRIC_TRACE_RETENTION_DAYS: z.coerce.number().int().min(1).max(3_650).default(14),
  ...Object.fromEntries(
    databaseUsers.map((user) => [`FABRIC_DATABASE_URL_${user.toUpperCase()}`, url.optional()]),
  ),
});

/** Everything that the services may know of their surroundings, parsed once. Secrets have no defaults. */
export interface Config {
  readonly environment: string;
  readonly logLevel: string;
  readonly http: { readonly host: string; readonly port: number };
  readonly gate: {
    readonly port: number;
    readonly url: string | undefined;
    readonly bodyLimitBytes: number;
    readonly budgetMs: number;
    readonly policyDir: string | undefined;
    /** The gate runs where the agent does, and looks at its files. */
    readonly localFiles: boolean;
    /** Reads that pass while the database is away; one file for each gate. */
    readonly spoolFile: string | undefined;
    /** Limits on observing events; the package brings its own. */
    readonly throttleFile: string | undefined;
  };
  /** Where people's commands on the queue are answered. */
  readonly desk: { readonly port: number; readonly url: string | undefined };
  readonly cost: {
    /** Price lists (a folder of YAML files) and budgets; the package brings examples of both. */
    readonly pricesDir: string | undefined;
    readonly budgetsFile: string | undefined;
    /** Tokens of the role reporter, `<tenant>.token` each: whose budgets the gate is told of. */
    readonly reporterTokensDir: string | undefined;
  };
  /** The breaker's thresholds; the package brings its own. */
  readonly breaker: { readonly file: string | undefined };
  readonly kafka: {
    readonly brokers: readonly string[];
    readonly tls: boolean;
    readonly sasl:
      | {
          readonly mechanism: "plain" | "scram-sha-256" | "scram-sha-512";
          readonly username: string;
          readonly password: string;
        }
      | undefined;
    readonly replication: number;
    readonly topicPrefix: string;
  };
  readonly registry: {
    readonly url: string;
    readonly username: string | undefined;
    readonly password: string | undefined;
  };
  /** Where spans go; off without an endpoint. */
  readonly otlp: {
    readonly endpoint: string | undefined;
    readonly protocol: "http" | "grpc";
    readonly headers: Readonly<Record<string, string>>;
    /** A trace that was quiet for this long is sent as it is. */
    readonly holdMs: number;
    readonly retentionDays: number;
  };
  readonly databaseUrls: Readonly<Partial<Record<DatabaseUser, string>>>;
  readonly kekFile: string | undefined;
  readonly authKeysFile: string | undefined;
  readonly capabilityKeysFile: string | undefined;
  readonly oidc: { readonly issuer: string; readonly audience: string } | undefined;
  readonly sealKeyFile: string | undefined;
  readonly sealPublicKeysDir: string | undefined;
  readonly tokenFile: string | undefined;
}

/**
 * Reads the environment, on top of an env file when `FABRIC_ENV_FILE` names one or `envFile` is given.
 * All faults are reported together, each with the variable's name.
 */
export function loadConfig(
  options: { readonly envFile?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Config {
  const env = options.env ?? process.env;
  const file = env["FABRIC_ENV_FILE"] ?? options.envFile;
  const merged = { ...(file === undefined ? {} : readEnvFile(file)), ...definedOnly(env) };
  const parsed = environmentSchema.safeParse(merged);
  const faults: string[] = [];
  if (!parsed.success) {
    for (const issue of parsed.error.issues) {
      const name = String(issue.path[0] ?? "");
      faults.push(name in merged ? `${name}: ${issue.message}` : `${name} is not set`);
    }
  }
  for (const name of Object.keys(merged)) {
    if (
      name.startsWith("FABRIC_") &&
      !(name in environmentSchema.shape) &&
      !outsideConfig.has(name) &&
      !name.startsWith(outsidePrefix)
    ) {
      faults.push(`${name} is not a setting of this version`);
    }
  }
  if (parsed.success) faults.push(...pairFaults(parsed.data));
  if (faults.length > 0 || !parsed.success) {
    throw new Fault(
      "CONFIG_INVALID",
      `${faults.join("; ")}. Run \`fabric up\` for a local stack, or set what is named`,
    );
  }
  return toConfig(parsed.data);
}

/** Variables that others read: the env file's own name, and those of the test harness and of CI. */
const outsideConfig = new Set(["FABRIC_ENV_FILE", "FABRIC_RUN_MARK"]);
const outsidePrefix = "FABRIC_TEST_";

type Environment = z.output<typeof environmentSchema>;

function pairFaults(one: Environment): string[] {
  const faults: string[] = [];
  if (
    one.FABRIC_KAFKA_SASL_MECHANISM !== undefined &&
    (one.FABRIC_KAFKA_USERNAME === undefined || one.FABRIC_KAFKA_PASSWORD === undefined)
  ) {
    faults.push("FABRIC_KAFKA_SASL_MECHANISM needs FABRIC_KAFKA_USERNAME and FABRIC_KAFKA_PASSWORD");
  }
  if ((one.FABRIC_OIDC_ISSUER === undefined) !== (one.FABRIC_OIDC_AUDIENCE === undefined)) {
    faults.push("FABRIC_OIDC_ISSUER and FABRIC_OIDC_AUDIENCE go together");
  }
  return faults;
}

function toConfig(one: Environment): Config {
  const urls = one as unknown as Record<string, string | undefined>;
  const databaseUrls: Partial<Record<DatabaseUser, string>> = {};
  for (const user of databaseUsers) {
    const found = urls[`FABRIC_DATABASE_URL_${user.toUpperCase()}`];
    if (found !== undefined) databaseUrls[user] = found;
  }
  return {
    environment: one.FABRIC_ENVIRONMENT,
    logLevel: one.FABRIC_LOG_LEVEL,
    http: { host: one.FABRIC_HTTP_HOST, port: one.FABRIC_HTTP_PORT },
    gate: {
      port: one.FABRIC_GATE_PORT,
      url: one.FABRIC_GATE_URL,
      bodyLimitBytes: one.FABRIC_GATE_BODY_LIMIT_BYTES,
      budgetMs: one.FABRIC_GATE_BUDGET_MS,
      policyDir: one.FABRIC_POLICY_DIR,
      localFiles: one.FABRIC_GATE_LOCAL_FILES,
      spoolFile: one.FABRIC_GATE_SPOOL_FILE,
      throttleFile: one.FABRIC_THROTTLE_FILE,
    },
    desk: { port: one.FABRIC_DESK_PORT, url: one.FABRIC_DESK_URL },
    cost: {
      pricesDir: one.FABRIC_PRICES_DIR,
      budgetsFile: one.FABRIC_BUDGETS_FILE,
      reporterTokensDir: one.FABRIC_REPORTER_TOKENS_DIR,
    },
    breaker: { file: one.FABRIC_BREAKER_FILE },
    kafka: {
      brokers: one.FABRIC_KAFKA_BROKERS,
      tls: one.FABRIC_KAFKA_TLS,
      sasl:
        one.FABRIC_KAFKA_SASL_MECHANISM === undefined
          ? undefined
          : {
              mechanism: one.FABRIC_KAFKA_SASL_MECHANISM,
              username: one.FABRIC_KAFKA_USERNAME ?? "",
              password: one.FABRIC_KAFKA_PASSWORD ?? "",
            },
      replication: one.FABRIC_KAFKA_REPLICATION,
      topicPrefix: one.FABRIC_TOPIC_PREFIX,
    },
    registry: {
      url: one.FABRIC_REGISTRY_URL,
      username: one.FABRIC_REGISTRY_USERNAME,
      password: one.FABRIC_REGISTRY_PASSWORD,
    },
    otlp: {
      endpoint: one.FABRIC_OTLP_ENDPOINT,
      protocol: one.FABRIC_OTLP_PROTOCOL,
      headers: Object.fromEntries(
        one.FABRIC_OTLP_HEADERS.map((line) => {
          const equals = line.indexOf("=");
          return [line.slice(0, equals).trim().toLowerCase(), line.slice(equals + 1).trim()];
        }),
      ),
      holdMs: one.FABRIC_OTLP_HOLD_MS,
      retentionDays: one.FABRIC_TRACE_RETENTION_DAYS,
    },
    databaseUrls,
    kekFile: one.FABRIC_KEK_FILE,
    authKeysFile: one.FABRIC_AUTH_KEYS_FILE,
    capabilityKeysFile: one.FABRIC_CAPABILITY_KEYS_FILE,
    oidc:
      one.FABRIC_OIDC_ISSUER === undefined || one.FABRIC_OIDC_AUDIENCE === undefined
        ? undefined
        : { issuer: one.FABRIC_OIDC_ISSUER, audience: one.FABRIC_OIDC_AUDIENCE },
    sealKeyFile: one.FABRIC_SEAL_KEY_FILE,
    sealPublicKeysDir: one.FABRIC_SEAL_PUBLIC_KEYS_DIR,
    tokenFile: one.FABRIC_TOKEN_FILE,
  };
}

/** A required setting of one service; the fault names the variable. */
export function requireSetting<T>(value: T | undefined, variable: string, why: string): T {
  if (value === undefined) throw new Fault("CONFIG_INVALID", `${variable} is not set; ${why}`);
  return value;
}

/** The database address of one service. */
export function databaseUrl(config: Config, user: DatabaseUser): string {
  return requireSetting(
    config.databaseUrls[user],
    `FABRIC_DATABASE_URL_${user.toUpperCase()}`,
    `this service connects as fabric_${user}`,
  );
}

/** The configuration for people: passwords in addresses and secret settings are masked. */
export function describeConfig(config: Config): Record<string, unknown> {
  return JSON.parse(
    JSON.stringify(config, (key, value: unknown) => {
      // Headers of a collector are mostly its keys.
      if (key === "headers") return Object.keys(value as object).map((name) => `${name}: [masked]`);
      if (typeof value !== "string") return value;
      if (key === "password") return "[masked]";
      return value.replace(/^([a-z]+:\/\/[^:/@]+):[^@]+@/, "$1:[masked]@");
    }),
  ) as Record<string, unknown>;
}

/** `NAME=value` lines; `#` starts a comment line. */
function readEnvFile(path: string): Record<string, string> {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new Fault("CONFIG_INVALID", `the env file \`${path}\` cannot be read`, { cause: error });
  }
  const values: Record<string, string> = {};
  text.split("\n").forEach((line, index) => {
    const trimmed = line.trim();
    if (trimmed === "" || trimmed.startsWith("#")) return;
    const equals = trimmed.indexOf("=");
    if (equals < 1)
      throw new Fault("CONFIG_INVALID", `\`${path}\` line ${String(index + 1)} is not NAME=value`);
    values[trimmed.slice(0, equals)] = trimmed.slice(equals + 1);
  });
  return values;
}

function definedOnly(env: NodeJS.ProcessEnv): Record<string, string> {
  const values: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (name.startsWith("FABRIC_") && value !== undefined && value !== "") values[name] = value;
  }
  return values;
}
