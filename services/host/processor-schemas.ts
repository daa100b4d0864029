import { Fault } from "../../schemas/faults.ts";
import type { Database } from "../platform/postgres.ts";
import { liveSchemas } from "./host-schema.ts";
import type { SchemaOf } from "./host-schema.ts";

/**
 * Refuses processors whose schema has a table with a name of the host's; throws CONFIG_INVALID. The host's statements
 * would find their own table all the same, but whoever reads a statement would not know which one is meant.
 */
export async function checkProcessorSchemas(
  database: Pick<Database, "query">,
  processors: readonly string[],
  schemaOf: SchemaOf = liveSchemas,
): Promise<void> {
  const found = await database.query<{ table_name: string }>(
    `SELECT n.nspname || '.' || c.relname AS table_name FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
      WHERE n.nspname = ANY ($1::text[]) AND n.nspname <> $2 AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
        AND c.relname IN (SELECT h.relname FROM pg_class AS h JOIN pg_namespace AS hn ON hn.oid = h.relnamespace
          WHERE hn.nspname = $2 AND h.relkind IN ('r', 'p', 'v', 'm', 'f'))
      ORDER BY 1`,
    [processors.map(schemaOf), schemaOf("host")],
  );
  if (found.rowCount === 0) return;
  const names = found.rows.map((row) => row.table_name).join("`, `");
  throw new Fault(
    "CONFIG_INVALID",
    `\`${names}\` bears a name of the host's tables; rename it in a migration`,
  );
}
