import type { Tx } from "../platform/postgres.ts";

/** Cause of the stop while a shadow takes the live projection's place. */
export const fenceCause = (shadow: string): string => `promote:${shadow}`;

/**
 * Stops the live processor in all its hosts: whoever has not moved the watermark yet can commit no more, and whoever has is
 * waited for. Partitions that were stopped for something else stay so.
 */
export async function fenceLive(tx: Tx, processor: string, shadow: string): Promise<void> {
  await tx.query(
    `UPDATE host.watermarks SET stopped_cause = $2, stopped_at = clock_timestamp(), epoch = epoch + 1,
        updated_at = clock_timestamp()
      WHERE processor = $1 AND stopped_cause IS NULL`,
    [processor, fenceCause(shadow)],
  );
}

/** Lets what the fence stopped go on, or wait for hosts of another version. */
export async function unfenceLive(
  tx: Tx,
  processor: string,
  shadow: string,
  cause: string | null = null,
): Promise<void> {
  await tx.query(
    `UPDATE host.watermarks SET stopped_cause = $3, stopped_at = CASE WHEN $3::text IS NULL THEN NULL ELSE stopped_at END,
        updated_at = clock_timestamp()
      WHERE processor = $1 AND stopped_cause = $2`,
    [processor, fenceCause(shadow), cause],
  );
}

/** Partitions that a host has taken up since the fence, or that still run. */
export async function loadUnfenced(tx: Tx, processor: string): Promise<readonly string[]> {
  const { rows } = await tx.query<{ place: string }>(
    `SELECT topic || '/' || partition AS place FROM host.watermarks WHERE processor = $1 AND stopped_cause IS NULL
      ORDER BY 1`,
    [processor],
  );
  return rows.map(({ place }) => place);
}
