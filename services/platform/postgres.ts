import pg from "pg";
import { Fault } from "../../schemas/faults.ts";

/** A statement; with a `name` it is prepared once per connection. */
export interface Statement {
  readonly name?: string;
  readonly text: string;
  readonly values?: readonly unknown[];
}

/** Whatever runs statements. int8 comes back as bigint, bytea as Buffer, jsonb parsed, timestamptz as Date. */
export interface Tx {
  query<R = Record<string, unknown>>(
    statement: Statement | string,
    values?: readonly unknown[],
  ): Promise<{ rows: R[]; rowCount: number }>;
}

/** A pool of connections. Every error leaves as a `Fault`; a connection of unknown state is destroyed. */
export interface Database extends Tx {
  /**
   * Runs `work` on one connection, each statement of it committed by itself: what `work` computes before a statement is
   * as fresh as can be, since nothing waits for a connection in between.
   */
  connected<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** Runs `work` on one connection between BEGIN and COMMIT; rolls back when it throws. */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** Listens on a connection of its own, which heals itself; `onState` tells when it may be deaf. */
  listen(
    channel: string,
    onNotify: (payload: string) => void,
    onState?: (state: ListenerState) => void,
  ): Promise<Listener>;
  end(): Promise<void>;
}
export type ListenerState = "live" | "stale";
export interface Listener {
  close(): Promise<void>;
}

export interface DatabaseOptions {
  readonly url: string;
  readonly applicationName: string;
  readonly maxConnections?: number;
  /** The server ends a statement after this long. */
  readonly statementTimeoutMs?: number;
  /** We give up on an answer after this long, and on the connection with it (a silent network). */
  readonly queryTimeoutMs?: number;
  /** Longest wait for a connection, new or from the pool. */
  readonly connectTimeoutMs?: number;
  /** The server ends a session that says nothing for so long inside a transaction, and lets go of what it locked. */
  readonly idleTransactionMs?: number;
  readonly searchPath?: readonly string[];
  /**
   * For pools whose statements find few rows by key. One plan by indexes for all parameters, whatever the tables hold:
   * left to itself the server plans such a statement anew each time, which costs more than to run it, or keeps a plan
   * that it made while the tables were empty.
   */
  readonly findsByKey?: boolean;
}

/** The work of a transaction failed, and its ROLLBACK got no answer. */
class RollbackLost extends Error {
  readonly work: unknown;
  constructor(work: unknown, cause: unknown) {
    super("the rollback got no answer", { cause });
    this.work = work;
  }
}

const types: pg.CustomTypesConfig = {
  getTypeParser(oid: number, format?: "text" | "binary") {
    // int8: a double would round past 2^53.
    if (oid === 20 && format !== "binary") return (text: string) => BigInt(text);
    if (oid === 1016 && format !== "binary") return parseBigintArray;
    return pg.types.getTypeParser(oid, format) as (text: string) => unknown;
  },
};

/** Opens a pool; the first query connects. */
export function openDatabase(options: DatabaseOptions): Database {
  const statementTimeoutMs = options.statementTimeoutMs ?? 30_000;
  const connection: pg.ClientConfig = {
    connectionString: options.url,
    application_name: options.applicationName,
    statement_timeout: statementTimeoutMs,
    query_timeout: options.queryTimeoutMs ?? statementTimeoutMs + 5_000,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 5_000,
    keepAlive: true,
    types,
    options: toServerOptions(options),
  };
  const pool = new pg.Pool({ ...connection, max: options.maxConnections ?? 8, idleTimeoutMillis: 30_000 });
  // An idle connection that breaks is dropped by the pool; its next user gets a new one, and any error there.
  pool.on("error", () => undefined);
  // INVARIANT: a connection that was open when another one fell silent is not used again: it would cost its own wait
  // (test/integration/postgres.test.ts "takes no connection from before a silence").
  let silences = 0;
  const openedAfter = new WeakMap<pg.PoolClient, number>();
  pool.on("connect", (client) => openedAfter.set(client, silences));
  async function connect(): Promise<pg.PoolClient> {
    for (;;) {
      const client = await pool.connect();
      if (openedAfter.get(client) === silences) return client;
      client.release(true);
    }
  }
  // A server that ends tells each connection so, also one that is just being handed out or put away, when the pool does
  // not listen; without a listener the process would end. Whoever uses the connection is told by the next answer.
  pool.on("connect", (client) => client.on("error", () => undefined));

  async function withClient<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    let client: pg.PoolClient;
    try {
      client = await connect();
    } catch (error) {
      throw toDatabaseFault(error);
    }
    let broken = false;
    try {
      return await work(client);
    } catch (error) {
      // INVARIANT: a client that timed out or lost its server never goes back to the pool
      // (test/integration/postgres.test.ts "gives ten quick answers after a query that timed out").
      broken = error instanceof RollbackLost || !isServerError(error);
      if (isSilence(error instanceof RollbackLost ? error.work : error)) silences += 1;
      throw error instanceof RollbackLost ? error.work : error;
    } finally {
      client.release(broken);
    }
  }

  return {
    query: (statement, values) => withClient((client) => run(client, statement, values)),
    connected: (work) =>
      withClient((client) => work({ query: (statement, values) => run(client, statement, values) })),
    transaction: (work) =>
      withClient(async (client) => {
        await run(client, "BEGIN");
        try {
          const result = await work({ query: (statement, values) => run(client, statement, values) });
          await run(client, "COMMIT");
          return result;
        } catch (error) {
          // Over a connection that is lost it would wait for an answer once more: the session ends, and that undoes it.
          if (!isServerError(error)) throw new RollbackLost(error, error);
          // Without an answer to the ROLLBACK the session's state is unknown, whatever the work failed of.
          await client.query("ROLLBACK").catch((lost: unknown) => {
            throw new RollbackLost(error, lost);
          });
          throw error;
        }
      }),
    listen: (channel, onNotify, onState) =>
      openListener(connection, channel, onNotify, onState ?? (() => undefined)),
    end: () => pool.end(),
  };
}

async function run<R>(
  client: pg.ClientBase,
  statement: Statement | string,
  values?: readonly unknown[],
): Promise<{ rows: R[]; rowCount: number }> {
  const query =
    typeof statement === "string"
      ? { text: statement, values: values === undefined ? undefined : [...values] }
      : {
          text: statement.text,
          values: statement.values === undefined ? undefined : [...statement.values],
          ...(statement.name === undefined ? {} : { name: statement.name }),
        };
  try {
    const result = await client.query(query as pg.QueryConfig);
    return { rows: result.rows as R[], rowCount: result.rowCount ?? 0 };
  } catch (error) {
    throw toDatabaseFault(error);
  }
}

/**
 * Between two statements of a transaction our code computes for milliseconds. A server that lost its client without a word
 * would keep that transaction's locks until the network's own patience ends, which is hours.
 */
const defaultIdleTransactionMs = 15_000;

/**
 * Just-in-time compilation is off: it takes up to a second on a plan that looks dear, and every statement of a service is
 * short, or sets of rows through indexes.
 */
function toServerOptions({
  searchPath,
  findsByKey = false,
  idleTransactionMs = defaultIdleTransactionMs,
}: DatabaseOptions): string {
  const options = ["-c jit=off", `-c idle_in_transaction_session_timeout=${idleTransactionMs}`];
  if (findsByKey)
    options.push(
      "-c plan_cache_mode=force_generic_plan",
      "-c enable_seqscan=off",
      "-c enable_hashjoin=off",
      "-c enable_mergejoin=off",
    );
  if (searchPath !== undefined)
    options.push(`-c search_path=${searchPath.map((one) => pg.escapeIdentifier(one)).join(",")}`);
  return options.join(" ");
}

/** Whether the server itself answered with an error, so that the connection is still in step. */
function isServerError(error: unknown): boolean {
  const cause = error instanceof Fault ? error.cause : error;
  if (!(cause instanceof pg.DatabaseError))
    return !(error instanceof Fault) || error.code !== "DATABASE_UNAVAILABLE";
  return !endsConnection(cause.code ?? "") && !isStalePlan(cause);
}

/**
 * A migration changed what a prepared statement returns. The connection keeps the statement and fails for ever; a new one
 * prepares it anew.
 */
function isStalePlan(error: pg.DatabaseError): boolean {
  return error.code === "0A000" && error.message.includes("cached plan must not change result type");
}

/** Whether no answer came in time, as the client says it: the other end may be gone without a word. */
function isSilence(error: unknown): boolean {
  const cause = error instanceof Fault ? error.cause : error;
  return cause instanceof Error && cause.message === "Query read timeout";
}

/** SQLSTATE classes after which the session is gone or going: connection exception, operator intervention, its own idleness. */
function endsConnection(sqlState: string): boolean {
  return (
    sqlState === "25P03" || sqlState.startsWith("08") || (sqlState.startsWith("57P") && sqlState !== "57P05")
  );
}

/**
 * SQLSTATE classes that are the data's fault: a row hit twice, data, constraints, a view's check, a limit of the server
 * (a row wider than its index takes), what a function raises. The same statement never succeeds.
 */
const dataClasses: ReadonlySet<string> = new Set(["21", "22", "23", "44", "54", "P0"]);

/**
 * Tells what a Postgres error means for the work: away, lost a race, or never to succeed.
 * Everything unknown counts as the database being away.
 */
export function toDatabaseFault(error: unknown): Fault {
  if (error instanceof Fault) return error;
  const text = error instanceof Error ? error.message : String(error);
  const sqlState = error instanceof pg.DatabaseError ? (error.code ?? "") : "";
  if (error instanceof pg.DatabaseError && isStalePlan(error)) {
    return new Fault("DATABASE_CONFLICT", text, { cause: error });
  }
  if (sqlState === "40001" || sqlState === "40P01" || sqlState === "55P03") {
    return new Fault("DATABASE_CONFLICT", text, { cause: error });
  }
  if (dataClasses.has(sqlState.slice(0, 2))) {
    return new Fault("DATABASE_REJECTED", `${text} (${sqlState})`, { cause: error });
  }
  if (sqlState.startsWith("42") || sqlState === "0A000" || sqlState === "28P01" || sqlState === "28000") {
    return new Fault("INTERNAL", `${text} (${sqlState})`, { cause: error });
  }
  return new Fault("DATABASE_UNAVAILABLE", text, { cause: error });
}

/** How often the listener proves that its connection still carries bytes. */
const listenerProbeMs = 5_000;
const listenerRetryMs = 500;

async function openListener(
  connection: pg.ClientConfig,
  channel: string,
  onNotify: (payload: string) => void,
  onState: (state: ListenerState) => void,
): Promise<Listener> {
  let closed = false;
  let current: pg.Client | null = null;
  let timer: NodeJS.Timeout | undefined;

  async function connect(): Promise<void> {
    const client = new pg.Client({ ...connection, query_timeout: listenerProbeMs });
    current = client;
    client.on("notification", (message) => onNotify(message.payload ?? ""));
    client.on("error", () => restart(client));
    client.on("end", () => restart(client));
    try {
      await client.connect();
      await client.query(`LISTEN ${pg.escapeIdentifier(channel)}`);
    } catch {
      restart(client);
      return;
    }
    if (closed || current !== client) return;
    onState("live");
    // Whatever was notified while nobody listened is unknown: wake once.
    onNotify("");
    probeLater(client);
  }
  function probeLater(client: pg.Client): void {
    timer = setTimeout(() => {
      client.query("SELECT 1").then(
        () => {
          if (!closed && current === client) probeLater(client);
        },
        () => restart(client),
      );
    }, listenerProbeMs);
    timer.unref();
  }
  function restart(client: pg.Client): void {
    if (closed || current !== client) return;
    current = null;
    clearTimeout(timer);
    onState("stale");
    client.end().catch(() => undefined);
    timer = setTimeout(() => void connect(), listenerRetryMs);
  }

  await connect();
  return {
    async close() {
      closed = true;
      clearTimeout(timer);
      const client = current;
      current = null;
      await client?.end().catch(() => undefined);
    },
  };
}

function parseBigintArray(text: string): bigint[] {
  const inner = text.slice(1, -1);
  return inner === "" ? [] : inner.split(",").map((one) => BigInt(one));
}
