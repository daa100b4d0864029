import type { DatasetRow } from "./dataset-row.ts";

/** One file of a dataset. Rows go out while they come in: no more than a row group is held. */
export interface DatasetWriter {
  write(row: DatasetRow): Promise<void>;
  /** Writes what is held, and the file's end. */
  finish(): Promise<void>;
  /** Leaves the file as it is. */
  abandon(): Promise<void>;
}

export const datasetFormats = ["jsonl", "parquet"] as const;
export type DatasetFormat = (typeof datasetFormats)[number];
