import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { setTimeout as wait } from "node:timers/promises";
import { COMPATIBILITY, SchemaRegistry, SchemaType } from "@kafkajs/confluent-schema-registry";
import type { AvroSchema } from "../../schemas/avro-json.ts";
import { Fault } from "../../schemas/faults.ts";
import { toType } from "./avro-types.ts";

/** Compatibility levels of the Confluent API that the product uses. */
export type Compatibility = "FULL_TRANSITIVE" | "NONE";

/** A schema as the registry holds it. */
export interface RegisteredSchema {
  readonly schemaId: number;
  readonly schema: AvroSchema;
}

/**
 * The schema registry. Faults: REGISTRY_UNAVAILABLE (transient, after a bounded number of tries), SCHEMA_ID_UNKNOWN
 * (transient), SCHEMA_INCOMPATIBLE, SCHEMA_REFUSED (not Avro), CONFIG_INVALID (credentials).
 */
export interface SchemaRegistryPort {
  /** The schema as it was registered, `must_understand` and all. One request per id, kept for good once it succeeded. */
  schemaById(schemaId: number): Promise<AvroSchema>;
  /** Registers a version under the subject, with the subject's compatibility set first. The same schema gives the same id. */
  register(
    subject: string,
    schema: AvroSchema,
    compatibility: Compatibility,
  ): Promise<{ readonly schemaId: number }>;
  /** Null when the subject has no version. */
  latest(subject: string): Promise<RegisteredSchema | null>;
  setCompatibility(subject: string, compatibility: Compatibility): Promise<void>;
  /** The subject's own level; null when it has none. */
  getCompatibility(subject: string): Promise<string | null>;
  subjects(): Promise<readonly string[]>;
}

export interface RegistryOptions {
  /** Root of the Confluent API, such as `http://registry:8080/apis/ccompat/v7`. */
  readonly url: string;
  readonly username?: string;
  readonly password?: string;
  /** Longest wait for one answer. */
  readonly requestTimeoutMs?: number;
  /** Tries before REGISTRY_UNAVAILABLE. */
  readonly attempts?: number;
  /** First pause between tries; it doubles. */
  readonly retryDelayMs?: number;
}

/** Above the slowest answer of a healthy registry, below a consumer's session timeout. */
const defaultRequestTimeoutMs = 3_000;
const defaultAttempts = 3;
const defaultRetryDelayMs = 100;
/** The errors of the client carry their HTTP status here; a broken connection shows as 400. */
interface ResponseError extends Error {
  readonly status?: number;
}

/** Opens the registry; nothing is sent until the first call. `close` gives its sockets back. */
export function openRegistry(options: RegistryOptions): SchemaRegistryPort & { close(): void } {
  const requestTimeoutMs = options.requestTimeoutMs ?? defaultRequestTimeoutMs;
  const attempts = options.attempts ?? defaultAttempts;
  const retryDelayMs = options.retryDelayMs ?? defaultRetryDelayMs;
  const root = options.url.replace(/\/+$/, "");
  const agent = root.startsWith("https:")
    ? new HttpsAgent({ keepAlive: true })
    : new HttpAgent({ keepAlive: true });
  const authorization =
    options.username === undefined
      ? undefined
      : `Basic ${Buffer.from(`${options.username}:${options.password ?? ""}`).toString("base64")}`;

  // The client hands back avsc types of its own, which have lost `must_understand`: the hook keeps the JSON instead.
  const sources = new WeakMap<object, AvroSchema>();
  const connect = (): SchemaRegistry =>
    new SchemaRegistry(
      {
        host: root,
        agent,
        retry: { retries: 0 },
        ...(options.username === undefined
          ? {}
          : { auth: { username: options.username, password: options.password ?? "" } }),
        middlewares: [
          () => ({
            prepareRequest: (next) =>
              next().then((request) => request.enhance({ timeout: requestTimeoutMs })),
          }),
        ],
      },
      {
        [SchemaType.AVRO]: {
          typeHook: (schema) => {
            const kept = toType({ type: "record", name: "Kept", fields: [] });
            sources.set(kept, schema as AvroSchema);
            return kept;
          },
        },
      },
    );
  let client = connect();

  /** Bounded tries; only a registry that does not answer is asked again. */
  async function withRetry<T>(what: string, work: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await withDeadline(what, work());
      } catch (error) {
        const fault = toRegistryFault(what, error);
        if (fault.code !== "REGISTRY_UNAVAILABLE" || attempt >= attempts) throw fault;
        const pauseMs = retryDelayMs * 2 ** (attempt - 1);
        await wait(pauseMs / 2 + Math.random() * (pauseMs / 2), undefined, { ref: false });
      }
    }
  }

  /**
   * The client never settles when a connection breaks in the middle of an answer, and hands the same dead promise to
   * whoever asks for that id again: it is thrown away then.
   */
  async function withDeadline<T>(what: string, work: Promise<T>): Promise<T> {
    const controller = new AbortController();
    const deadlineMs = requestTimeoutMs * 2;
    try {
      return await Promise.race([
        work,
        wait(deadlineMs, undefined, { signal: controller.signal }).then(() => {
          client = connect();
          throw new Fault("REGISTRY_UNAVAILABLE", `${what}: no answer in ${deadlineMs} ms`);
        }),
      ]);
    } finally {
      controller.abort();
    }
  }

  /** The endpoints that the client does not offer. */
  async function ask(
    method: "GET" | "PUT",
    path: string,
    body?: unknown,
  ): Promise<{ status: number; json: unknown }> {
    const response = await fetch(`${root}${path}`, {
      method,
      headers: {
        "content-type": "application/vnd.schemaregistry.v1+json",
        ...(authorization === undefined ? {} : { authorization }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(requestTimeoutMs),
    });
    const text = await response.text();
    if (!response.ok && response.status !== 404) {
      throw Object.assign(new Error(text.slice(0, 500)), { status: response.status });
    }
    try {
      return { status: response.status, json: JSON.parse(text) as unknown };
    } catch (cause) {
      throw new Fault(
        "REGISTRY_UNAVAILABLE",
        `${path}: the answer is not JSON, check the registry's address`,
        { cause },
      );
    }
  }

  const fetches = new Map<number, Promise<AvroSchema>>();
  const known = new Map<number, AvroSchema>();

  const port: SchemaRegistryPort & { close(): void } = {
    async schemaById(schemaId) {
      const cached = known.get(schemaId);
      if (cached !== undefined) return cached;
      const under = fetches.get(schemaId);
      if (under !== undefined) return under;
      const fetching = withRetry(`schema ${schemaId}`, async () => {
        const schema = sources.get(await client.getSchema(schemaId));
        if (schema === undefined) throw new Fault("SCHEMA_REFUSED", `schema ${schemaId} is not Avro`);
        known.set(schemaId, schema);
        return schema;
      }).finally(() => fetches.delete(schemaId));
      fetches.set(schemaId, fetching);
      return fetching;
    },

    async register(subject, schema, compatibility) {
      // Before the first version, so that there is no moment without the check.
      if ((await port.getCompatibility(subject)) !== compatibility)
        await port.setCompatibility(subject, compatibility);
      const { id } = await withRetry(subject, () =>
        client.register(
          { type: SchemaType.AVRO, schema: JSON.stringify(schema) },
          { subject, compatibility: COMPATIBILITY[compatibility] },
        ),
      );
      return { schemaId: id };
    },

    async latest(subject) {
      const schemaId = await withRetry(subject, () => client.getLatestSchemaId(subject)).catch(
        (error: unknown) => {
          if (error instanceof Fault && error.code === "SCHEMA_ID_UNKNOWN") return null;
          throw error;
        },
      );
      return schemaId === null ? null : { schemaId, schema: await port.schemaById(schemaId) };
    },

    async setCompatibility(subject, compatibility) {
      await withRetry(subject, () => ask("PUT", `/config/${encodeURIComponent(subject)}`, { compatibility }));
    },

    async getCompatibility(subject) {
      const { status, json } = await withRetry(subject, () =>
        ask("GET", `/config/${encodeURIComponent(subject)}`),
      );
      if (status === 404) return null;
      return (json as { compatibilityLevel?: string }).compatibilityLevel?.toUpperCase() ?? null;
    },

    async subjects() {
      const { json } = await withRetry("subjects", () => ask("GET", "/subjects"));
      return json as string[];
    },

    close() {
      agent.destroy();
    },
  };
  return port;
}

function toRegistryFault(what: string, error: unknown): Fault {
  if (error instanceof Fault) return error;
  const text = error instanceof Error ? error.message : String(error);
  const name = error instanceof Error ? error.name : "";
  if (
    name === "ConfluentSchemaRegistryInvalidSchemaError" ||
    name === "ConfluentSchemaRegistryArgumentError"
  ) {
    return new Fault("SCHEMA_REFUSED", `${what} is not Avro`, { cause: error });
  }
  if (name === "ConfluentSchemaRegistryCompatibilityError") {
    return new Fault("SCHEMA_INCOMPATIBLE", `${what}: somebody changes its compatibility level`, {
      cause: error,
    });
  }
  switch ((error as ResponseError).status) {
    case 404:
      return new Fault("SCHEMA_ID_UNKNOWN", what, { cause: error });
    case 409:
    case 422:
      return new Fault("SCHEMA_INCOMPATIBLE", `${what}: ${text}`, { cause: error });
    case 401:
    case 403:
      return new Fault("CONFIG_INVALID", "the schema registry refuses the credentials", { cause: error });
    default:
      return new Fault("REGISTRY_UNAVAILABLE", `${what}: ${text}`, { cause: error });
  }
}
