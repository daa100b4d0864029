import { createHash, hash } from "node:crypto";
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Cut, EpisodeRow } from "../../../processors/eval/queries.ts";
import { countEpisodes, readEpisodes, readLinkedEpisodes } from "../../../processors/eval/queries.ts";
import { Fault } from "../../../schemas/faults.ts";
import type { Database, Tx } from "../../platform/postgres.ts";
import type { DatasetRow } from "./dataset-row.ts";
import { datasetColumns, datasetSchemaVersion, toDatasetRow } from "./dataset-row.ts";
import type { DatasetFormat, DatasetWriter } from "./dataset-writer.ts";
import { openJsonlWriter } from "./jsonl-writer.ts";
import { LeakageGroups } from "./leakage-groups.ts";
import { openParquetWriter } from "./parquet-writer.ts";
import type { Shares, Split } from "./splits.ts";
import { splitNames, toSplit } from "./splits.ts";

/** Which episodes a dataset holds, and how it is split. Together with the ledger this is all that a version depends on. */
export interface DatasetDefinition extends Cut {
  /** Null: every state. */
  readonly state: EpisodeRow["state"] | null;
  readonly onlyLabelled: boolean;
  readonly shares: Shares;
  readonly seed: string;
}

export interface ExportOptions {
  readonly definition: DatasetDefinition;
  readonly format: DatasetFormat;
  /** Made when it is not there; has to be empty. */
  readonly dir: string;
  /** Null: all three, a file each. */
  readonly split: Split | null;
  readonly signal: AbortSignal;
  readonly onProgress: (rows: number, of: number) => void;
}

/** What `manifest.json` says. */
export interface Manifest {
  readonly version: string;
  readonly content_digest: string;
  readonly schema_version: string;
  readonly until: string;
  readonly tenant_id: string | null;
  readonly filter: { readonly state: string | null; readonly only_labelled: boolean };
  readonly split: { readonly shares: Shares; readonly seed: string };
  readonly format: DatasetFormat;
  /** Rows of the version, whichever of its files were written. */
  readonly rows: number;
  readonly rows_by_split: Readonly<Record<Split, number>>;
  readonly leakage_groups: number;
  readonly files: readonly {
    readonly name: string;
    readonly split: Split;
    readonly rows: number;
  }[];
  readonly columns: readonly { readonly name: string; readonly type: string; readonly doc: string }[];
}

/**
 * Writes a dataset and its manifest. Rows stream from one snapshot of the database; what is held is a page of episodes, a
 * row group, and twenty bytes an episode for the leakage groups. The manifest comes last: without it the folder is no
 * dataset.
 */
export async function exportDataset(database: Database, options: ExportOptions): Promise<Manifest> {
  const { dir } = options;
  await requireEmpty(dir);
  return database.transaction(async (tx) => {
    await tx.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY");
    const files = await openFiles(options);
    try {
      const written = await writeRows(tx, options, files);
      for (const file of files.values()) await file.writer.finish();
      for (const file of files.values()) await rename(file.partial, join(dir, file.name));
      const manifest = toManifest(options, files, written);
      const partial = join(dir, "manifest.json.part");
      await writeFile(partial, `${JSON.stringify(manifest, null, 2)}\n`, { flag: "wx", mode: 0o600 });
      await rename(partial, join(dir, "manifest.json"));
      return manifest;
    } catch (error) {
      for (const file of files.values()) {
        await file.writer.abandon().catch(() => undefined);
        await rm(file.partial, { force: true });
      }
      throw error;
    }
  });
}

interface OpenFile {
  readonly name: string;
  readonly partial: string;
  readonly split: Split;
  readonly writer: DatasetWriter;
  rows: number;
}

interface Written {
  readonly rows: number;
  readonly rowsBySplit: Record<Split, number>;
  readonly groups: number;
  readonly contentDigest: string;
}

async function requireEmpty(dir: string): Promise<void> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const [found] = await readdir(dir);
  if (found !== undefined)
    throw new Fault("USAGE", `\`${dir}\` holds \`${found}\`; name an empty folder for the dataset`);
}

async function openFiles({ dir, format, split }: ExportOptions): Promise<Map<Split, OpenFile>> {
  const files = new Map<Split, OpenFile>();
  for (const one of splitNames) {
    if (split !== null && split !== one) continue;
    const name = `episodes-${one}.${format}`;
    const partial = join(dir, `${name}.part`);
    const writer = await (format === "jsonl" ? openJsonlWriter(partial) : openParquetWriter(partial));
    files.set(one, { name, partial, split: one, writer, rows: 0 });
  }
  return files;
}

async function writeRows(
  tx: Tx,
  { definition, signal, onProgress }: ExportOptions,
  files: ReadonlyMap<Split, OpenFile>,
): Promise<Written> {
  const count = await countEpisodes(tx, definition);
  const groups = new LeakageGroups(count);
  for await (const page of readLinkedEpisodes(tx, definition)) {
    signal.throwIfAborted();
    for (const linked of page) groups.add(linked);
  }
  // The first episode of a group comes before the others: its id is known when it is asked for.
  const ids = Buffer.alloc(count * idBytes);
  const digest = createHash("sha256");
  const seenGroups = new Uint8Array(count);
  const written = { rows: 0, rowsBySplit: { train: 0, validation: 0, test: 0 }, groups: 0 };
  let ordinal = 0;
  for await (const page of readEpisodes(tx, definition)) {
    signal.throwIfAborted();
    for (const episode of page) {
      keepId(ids, ordinal, episode.episode_id);
      const first = groups.firstOf(ordinal);
      ordinal += 1;
      if (!isWanted(episode, definition)) continue;
      const group = idAt(ids, first);
      const split = toSplit(definition.seed, group, definition.shares);
      const row: DatasetRow = toDatasetRow(episode, split, group);
      digest.update(`${JSON.stringify(row)}\n`);
      if (seenGroups[first] === 0) {
        seenGroups[first] = 1;
        written.groups += 1;
      }
      written.rows += 1;
      written.rowsBySplit[split] += 1;
      const file = files.get(split);
      if (file === undefined) continue;
      await file.writer.write(row);
      file.rows += 1;
    }
    onProgress(ordinal, count);
  }
  return { ...written, contentDigest: `sha256:${digest.digest("hex")}` };
}

function isWanted(episode: EpisodeRow, { state, onlyLabelled }: DatasetDefinition): boolean {
  return (state === null || episode.state === state) && (!onlyLabelled || episode.labels.length > 0);
}

/** An id is `epi_` and a UUID: its 16 bytes are all that has to be kept. */
const idBytes = 16;

function keepId(ids: Buffer, ordinal: number, episodeId: string): void {
  ids.write(episodeId.slice("epi_".length).replaceAll("-", ""), ordinal * idBytes, "hex");
}

function idAt(ids: Buffer, ordinal: number): string {
  const hex = ids.toString("hex", ordinal * idBytes, (ordinal + 1) * idBytes);
  return `epi_${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

function toManifest(
  { definition, format }: ExportOptions,
  files: ReadonlyMap<Split, OpenFile>,
  written: Written,
): Manifest {
  const { tenantId, untilMs, state, onlyLabelled, shares, seed } = definition;
  const what = {
    schema_version: datasetSchemaVersion,
    until: new Date(untilMs).toISOString(),
    tenant_id: tenantId,
    filter: { state, only_labelled: onlyLabelled },
    split: { shares, seed },
    content_digest: written.contentDigest,
  };
  return {
    // The same definition over the same ledger is the same version, in either format.
    version: `epv_${hash("sha256", JSON.stringify(what), "hex").slice(0, 32)}`,
    ...what,
    format,
    rows: written.rows,
    rows_by_split: written.rowsBySplit,
    leakage_groups: written.groups,
    files: [...files.values()].map(({ name, split, rows }) => ({ name, split, rows })),
    columns: datasetColumns.map(({ name, type, doc }) => ({ name, type, doc })),
  };
}
