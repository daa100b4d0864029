/** A statement of a processor; with a `name` it is prepared once per connection. */
export interface TransactionStatement {
  readonly name?: string;
  readonly text: string;
  readonly values?: readonly unknown[];
}

/**
 * The host's transaction as a processor's store sees it: it can run statements, and neither commit nor roll back.
 * int8 comes back as bigint, bytea as Buffer, jsonb parsed. Table names are unqualified: the same statements run live
 * and in a shadow schema.
 */
export interface Transaction {
  query<R = Record<string, unknown>>(
    statement: TransactionStatement | string,
    values?: readonly unknown[],
  ): Promise<{ rows: R[]; rowCount: number }>;
}
