import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";
import { Fault } from "../../schemas/faults.ts";
import type { DataClass } from "../../schemas/generated/types.ts";
import { newUuidV7 } from "./ids.ts";
import type { Database, Statement, Tx } from "./postgres.ts";
import { keyBytes, nonceBytes, openBox, sealBox, tagBytes } from "./sealed-box.ts";

/** What wraps tenants' data keys: a local file, or a KMS behind the same two calls. */
export interface KeyEncryptionKey {
  /** Names the key, so that an older one can be told apart after a rotation. */
  readonly id: string;
  wrap(dataKey: Buffer, context: string): Promise<Buffer>;
  /** Throws KEY_UNAVAILABLE when the key is another one, or the context does not fit. */
  unwrap(wrapped: Buffer, kekId: string, context: string): Promise<Buffer>;
}

/** One tenant's opened keys. */
export interface TenantKey {
  readonly tenantId: string;
  readonly version: number;
  readonly dataKey: Buffer;
  readonly digestKey: Buffer;
}

/** Tenants' data keys, opened once and kept in memory; made on first use. */
export interface TenantKeys {
  /** The key that seals new payloads. */
  current(tenantId: string): Promise<TenantKey>;
  /** The key that sealed an older payload. Throws KEY_UNAVAILABLE when it was shredded. */
  version(tenantId: string, version: number): Promise<TenantKey>;
}

/** A row of `vault.evidence`. */
export interface EvidenceRow {
  readonly evidenceId: string;
  readonly tenantId: string;
  readonly keyVersion: number;
  readonly dataClass: DataClass;
  readonly digest: Buffer;
  readonly nonce: Buffer;
  readonly tag: Buffer;
  readonly sealed: Buffer;
  readonly sizeBytes: number;
}

export interface SealedPayload {
  /** `vault://<tenant>/<uuid>`. */
  readonly ref: string;
  /** `hmac-sha256:` and hex. */
  readonly digest: string;
  readonly row: EvidenceRow;
}

export interface PayloadToSeal {
  readonly tenantId: string;
  readonly bytes: Buffer;
  readonly dataClass: DataClass;
}

/** Seals a payload under its tenant's key. Nothing is stored: insert the row with `insertEvidenceStatement`. */
export async function sealPayload(keys: TenantKeys, payload: PayloadToSeal): Promise<SealedPayload> {
  return sealWith(await keys.current(payload.tenantId), payload);
}

/** The same with a key that is open already. */
export function sealWith(key: TenantKey, { tenantId, bytes, dataClass }: PayloadToSeal): SealedPayload {
  if (key.tenantId !== tenantId)
    throw new Fault("INTERNAL", "a payload was about to be sealed with another tenant's key");
  const evidenceId = newUuidV7(Date.now());
  const ref = `vault://${tenantId}/${evidenceId}`;
  const digest = digestOf(key, bytes);
  const { nonce, tag, sealed } = sealBox(key.dataKey, bytes, `evidence\n${tenantId}\n${ref}`);
  return {
    ref,
    digest: `hmac-sha256:${digest.toString("hex")}`,
    row: {
      evidenceId,
      tenantId,
      keyVersion: key.version,
      dataClass,
      digest,
      nonce,
      tag,
      sealed,
      sizeBytes: bytes.length,
    },
  };
}

/** The statement that stores sealed payloads; an empty list inserts nothing. */
export function insertEvidenceStatement(rows: readonly EvidenceRow[]): Statement {
  return {
    name: "vault-insert-evidence",
    text: `INSERT INTO vault.evidence (evidence_id, tenant_id, key_version, data_class, digest, nonce, tag, sealed, size_bytes)
      SELECT * FROM unnest($1::uuid[], $2::text[], $3::int[], $4::text[], $5::bytea[], $6::bytea[], $7::bytea[], $8::bytea[], $9::int[])`,
    values: evidenceColumns(rows),
  };
}

/** The nine arrays of `insertEvidenceStatement`, for a writer that inserts inside a statement of its own. */
export function evidenceColumns(rows: readonly EvidenceRow[]): unknown[][] {
  return [
    rows.map((row) => row.evidenceId),
    rows.map((row) => row.tenantId),
    rows.map((row) => row.keyVersion),
    rows.map((row) => row.dataClass),
    rows.map((row) => row.digest),
    rows.map((row) => row.nonce),
    rows.map((row) => row.tag),
    rows.map((row) => row.sealed),
    rows.map((row) => row.sizeBytes),
  ];
}

/**
 * Reads a payload back and verifies it. Throws EVIDENCE_CORRUPT when bytes, tenant, reference or digest do not belong
 * together or nothing is stored. Who may read is the caller's business (room `vault`).
 */
export async function openPayload(
  tx: Tx,
  keys: TenantKeys,
  ref: string,
): Promise<{ readonly bytes: Buffer; readonly dataClass: DataClass; readonly digest: string }> {
  const match = referenceForm.exec(ref);
  if (match === null) throw new Fault("EVIDENCE_CORRUPT", "the reference is not vault://<tenant>/<id>");
  const [, tenantId = "", evidenceId = ""] = match;
  const found = await tx.query<StoredEvidence>(
    `SELECT key_version, data_class, digest, nonce, tag, sealed FROM vault.evidence
      WHERE evidence_id = $1 AND tenant_id = $2`,
    [evidenceId, tenantId],
  );
  const row = found.rows[0];
  if (row === undefined) throw new Fault("EVIDENCE_CORRUPT", `nothing is stored under ${ref}`);
  const bytes = await openRow(keys, tenantId, ref, row);
  return { bytes, dataClass: row.data_class, digest: `hmac-sha256:${row.digest.toString("hex")}` };
}

/**
 * Reads many payloads back with one statement. One that cannot be opened is a fault in its place, and says nothing of the
 * others; a database that is away is thrown.
 */
export async function openPayloads(
  tx: Tx,
  keys: TenantKeys,
  refs: readonly string[],
): Promise<ReadonlyMap<string, Buffer | Fault>> {
  const named = refs.map((ref) => ({ ref, match: referenceForm.exec(ref) }));
  const found = await tx.query<StoredEvidence & { readonly evidence_id: string; readonly tenant_id: string }>(
    {
      name: "vault-open-evidence",
      text: `SELECT evidence_id, tenant_id, key_version, data_class, digest, nonce, tag, sealed FROM vault.evidence
      WHERE evidence_id = ANY ($1::uuid[])`,
      values: [named.flatMap(({ match }) => (match?.[2] === undefined ? [] : [match[2]]))],
    },
  );
  const rows = new Map(found.rows.map((row) => [`vault://${row.tenant_id}/${row.evidence_id}`, row]));
  const opened = new Map<string, Buffer | Fault>();
  for (const { ref, match } of named) {
    const row = rows.get(ref);
    try {
      if (match === null || row === undefined)
        throw new Fault("EVIDENCE_CORRUPT", `nothing is stored under ${ref}`);
      opened.set(ref, await openRow(keys, row.tenant_id, ref, row));
    } catch (error) {
      if (!(error instanceof Fault) || error.kind === "transient") throw error;
      opened.set(ref, error);
    }
  }
  return opened;
}

async function openRow(
  keys: TenantKeys,
  tenantId: string,
  ref: string,
  row: StoredEvidence,
): Promise<Buffer> {
  const key = await keys.version(tenantId, row.key_version);
  const bytes = openBox(key.dataKey, row, `evidence\n${tenantId}\n${ref}`);
  if (!timingSafeEqual(digestOf(key, bytes), row.digest)) {
    throw new Fault("EVIDENCE_CORRUPT", `the digest of ${ref} is another one`);
  }
  return bytes;
}

const referenceForm = /^vault:\/\/([a-z0-9-]{1,64})\/([0-9a-f-]{36})$/;

interface StoredEvidence {
  readonly key_version: number;
  readonly data_class: DataClass;
  readonly digest: Buffer;
  readonly nonce: Buffer;
  readonly tag: Buffer;
  readonly sealed: Buffer;
}

/** Seals a small value that stays in its own row: key version (4) + nonce + tag + ciphertext. `place` names row and column. */
export function sealInline(key: TenantKey, place: string, bytes: Buffer): Buffer {
  const { nonce, tag, sealed } = sealBox(key.dataKey, bytes, `inline\n${key.tenantId}\n${place}`);
  const version = Buffer.alloc(4);
  version.writeUInt32BE(key.version);
  return Buffer.concat([version, nonce, tag, sealed]);
}

/** Opens what `sealInline` made; throws EVIDENCE_CORRUPT when it was made elsewhere or changed. */
export async function openInline(
  keys: TenantKeys,
  tenantId: string,
  place: string,
  value: Buffer,
): Promise<Buffer> {
  const head = 4 + nonceBytes + tagBytes;
  if (value.length < head) throw new Fault("EVIDENCE_CORRUPT", `the sealed value of ${place} is too short`);
  const key = await keys.version(tenantId, value.readUInt32BE(0));
  const parts = {
    nonce: value.subarray(4, 4 + nonceBytes),
    tag: value.subarray(4 + nonceBytes, head),
    sealed: value.subarray(head),
  };
  return openBox(key.dataKey, parts, `inline\n${tenantId}\n${place}`);
}

/** The key cache of one process. `database` must be able to read and insert `vault.tenant_keys`. */
export function openTenantKeys(database: Pick<Database, "query">, kek: KeyEncryptionKey): TenantKeys {
  const opened = new Map<string, Promise<TenantKey>>();
  /** Asks once, however many wait; a failure is forgotten, so that the next one asks again. */
  function once(name: string, load: () => Promise<TenantKey>): Promise<TenantKey> {
    const known = opened.get(name);
    if (known !== undefined) return known;
    const loading = load();
    opened.set(name, loading);
    loading.catch(() => opened.delete(name));
    return loading;
  }
  return {
    current: (tenantId) => once(`${tenantId}#current`, () => loadOrMakeKey(database, kek, tenantId)),
    version: (tenantId, version) =>
      once(`${tenantId}#${String(version)}`, async () => {
        const row = await loadKeyRow(database, tenantId, version);
        if (row === undefined) throw new Fault("KEY_UNAVAILABLE", `the data key of ${tenantId} is gone`);
        return openKeyRow(kek, tenantId, row);
      }),
  };
}

interface KeyRow {
  readonly key_version: number;
  readonly kek_id: string;
  readonly wrapped_key: Buffer;
}

async function loadKeyRow(tx: Tx, tenantId: string, version: number | null): Promise<KeyRow | undefined> {
  const found = await tx.query<KeyRow>(
    `SELECT key_version, kek_id, wrapped_key FROM vault.tenant_keys
      WHERE tenant_id = $1 AND ($2::int IS NULL OR key_version = $2) ORDER BY key_version DESC LIMIT 1`,
    [tenantId, version],
  );
  return found.rows[0];
}

async function loadOrMakeKey(tx: Tx, kek: KeyEncryptionKey, tenantId: string): Promise<TenantKey> {
  const known = await loadKeyRow(tx, tenantId, null);
  if (known !== undefined) return openKeyRow(kek, tenantId, known);
  const wrapped = await kek.wrap(randomBytes(keyBytes), wrapContext(tenantId, 1));
  // INVARIANT: of several that make a tenant's first key at once, all use the one that was stored
  // (test/integration/vault.test.ts "makes one key when many ask for a new tenant at once").
  await tx.query(
    `INSERT INTO vault.tenant_keys (tenant_id, key_version, kek_id, wrapped_key) VALUES ($1, 1, $2, $3)
      ON CONFLICT DO NOTHING`,
    [tenantId, kek.id, wrapped],
  );
  const stored = await loadKeyRow(tx, tenantId, null);
  if (stored === undefined) throw new Fault("KEY_UNAVAILABLE", `the data key of ${tenantId} was not stored`);
  return openKeyRow(kek, tenantId, stored);
}

async function openKeyRow(kek: KeyEncryptionKey, tenantId: string, row: KeyRow): Promise<TenantKey> {
  const dataKey = await kek.unwrap(row.wrapped_key, row.kek_id, wrapContext(tenantId, row.key_version));
  const digestKey = Buffer.from(
    hkdfSync("sha256", dataKey, Buffer.alloc(0), "fabric payload digest", keyBytes),
  );
  return { tenantId, version: row.key_version, dataKey, digestKey };
}

function wrapContext(tenantId: string, version: number): string {
  return `tenant-key\n${tenantId}\n${String(version)}`;
}

function digestOf(key: TenantKey, bytes: Buffer): Buffer {
  return createHmac("sha256", key.digestKey).update(bytes).digest();
}

/** Wraps with a key in memory; what a local key file and tests use. */
export function openMemoryKek(id: string, key: Buffer): KeyEncryptionKey {
  if (key.length !== keyBytes)
    throw new Fault("KEY_UNAVAILABLE", "the key-encryption key is not 32 bytes long");
  return {
    id,
    wrap(dataKey, context) {
      const { nonce, tag, sealed } = sealBox(key, dataKey, context);
      return Promise.resolve(Buffer.concat([nonce, tag, sealed]));
    },
    unwrap(wrapped, kekId, context) {
      if (kekId !== id) {
        return Promise.reject(
          new Fault("KEY_UNAVAILABLE", `the data key was wrapped with ${kekId}, not ${id}`),
        );
      }
      const parts = {
        nonce: wrapped.subarray(0, nonceBytes),
        tag: wrapped.subarray(nonceBytes, nonceBytes + tagBytes),
        sealed: wrapped.subarray(nonceBytes + tagBytes),
      };
      try {
        return Promise.resolve(openBox(key, parts, context));
      } catch (error) {
        return Promise.reject(
          new Fault("KEY_UNAVAILABLE", "the data key does not open with this key-encryption key", {
            cause: error,
          }),
        );
      }
    },
  };
}
