import pg from "pg";

/**
 * A superuser's connections to a test's database. When that is dropped while one of them is still ending, the server says
 * so on it, and nobody listens any more; a query that fails says so itself.
 */
export function openSuperuser(url: string, max = 4): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max });
  pool.on("error", () => undefined);
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}
