import type { FileHandle } from "node:fs/promises";
import { open } from "node:fs/promises";
import { ByteWriter, ParquetWriter, schemaFromColumnData } from "hyparquet-writer";
import type { DatasetRow } from "./dataset-row.ts";
import { datasetColumns, datasetSchemaVersion } from "./dataset-row.ts";
import type { DatasetWriter } from "./dataset-writer.ts";

/** A row group ends at whichever comes first: enough rows for its statistics to be of use, or enough text to hold. */
const groupRows = 10_000;
const groupBytes = 16 * 1024 * 1024;

/** Bytes go to the file after each row group; the library's own file writer would block the process. */
class FileBytes extends ByteWriter {
  readonly #handle: FileHandle;
  constructor(handle: FileHandle) {
    super();
    this.#handle = handle;
  }
  async flush(): Promise<void> {
    const bytes = this.getBytes();
    await this.#handle.writeFile(bytes);
    this.index = 0;
  }
}

/** Parquet with Snappy; times are TIMESTAMP_MILLIS in UTC, lists are JSON text. */
export async function openParquetWriter(file: string): Promise<DatasetWriter> {
  const handle = await open(file, "wx", 0o600);
  const schema = schemaFromColumnData({
    columnData: datasetColumns.map(({ name, type, nullable }) => ({ name, type, nullable, data: [] })),
  });
  const writer = new FileBytes(handle);
  const parquet = new ParquetWriter({
    writer,
    schema,
    createdBy: "policy-hook-fabric",
    kvMetadata: [{ key: "fabric.dataset.schema", value: datasetSchemaVersion }],
  });
  let columns = emptyColumns();
  let rows = 0;
  let bytes = 0;
  async function flush(): Promise<void> {
    if (rows === 0) return;
    await parquet.write({
      columnData: datasetColumns.map(({ name }, index) => ({ name, data: columns[index] ?? [] })),
      rowGroupSize: rows,
    });
    columns = emptyColumns();
    rows = 0;
    bytes = 0;
  }
  return {
    async write(row: DatasetRow) {
      datasetColumns.forEach(({ name, type }, index) => {
        const value = toParquet(row[name], type);
        if (typeof value === "string") bytes += value.length;
        columns[index]?.push(value);
      });
      rows += 1;
      if (rows >= groupRows || bytes >= groupBytes) await flush();
    },
    async finish() {
      await flush();
      await parquet.finish();
      await writer.flush();
      await handle.close();
    },
    abandon: () => handle.close(),
  };
}

function emptyColumns(): unknown[][] {
  return datasetColumns.map(() => []);
}

function toParquet(value: unknown, type: (typeof datasetColumns)[number]["type"]): unknown {
  if (value === null || value === undefined) return null;
  switch (type) {
    case "INT64":
      return BigInt(value as number);
    case "TIMESTAMP":
      return new Date(value as string);
    case "JSON":
      // The library makes JSON of it.
      return value;
    case "STRING":
    case "INT32":
      return value;
  }
}
