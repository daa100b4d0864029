/** Which schema holds an owner's tables: live each owner's own, in a shadow another one. */
export type SchemaOf = (owner: string) => string;

export const liveSchemas: SchemaOf = (owner) => owner;

/** The host's schema, quoted, as it stands before the names of its tables. */
export const quotedHostSchema = (schemaOf: SchemaOf = liveSchemas): string =>
  quoteIdentifier(schemaOf("host"));

/** A name as an SQL identifier. */
export const quoteIdentifier = (name: string): string => `"${name.replaceAll('"', '""')}"`;
