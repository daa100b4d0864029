/** A tool call that ran, as the client's own record of its session tells it. Ids are those that its hooks tell too. */
export interface RecordedCall {
  readonly sessionId: string;
  readonly callId: string;
  readonly tool: string;
  /** UTC milliseconds. */
  readonly atMs: number;
}

/** What a room reads records with: given to it, so that it opens nothing by itself. */
export interface RecordsReader {
  /** Files below a folder whose path fits and that changed since; none where the folder is not there. */
  filesBelow(dir: string, pattern: RegExp, sinceMs: number): Promise<readonly string[]>;
  /** Lines that are JSON objects; a line that was cut off is left out. */
  objectsOf(path: string): AsyncIterable<Readonly<Record<string, unknown>>>;
  /** Rows of a SQLite file, opened for reading alone. Throws TOOL_MISSING where nothing on the machine can read one. */
  rowsOf(path: string, sql: string, values: readonly number[]): Promise<readonly (readonly unknown[])[]>;
}

/** Where a client keeps what its sessions did. */
export interface SessionRecords {
  /** Below the person's home, for the report. */
  readonly where: string;
  read(home: string, sinceMs: number, reader: RecordsReader): AsyncIterable<RecordedCall>;
}
