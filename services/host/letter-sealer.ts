import type { DataClass } from "../../schemas/generated/types.ts";
import type { Tx } from "../platform/postgres.ts";
import type { TenantKeys } from "../platform/vault-seal.ts";
import { insertEvidenceStatement, sealPayload } from "../platform/vault-seal.ts";

/** Bytes of a letter on their way to the vault. */
export interface BytesToSeal {
  readonly tenantId: string;
  readonly bytes: Buffer;
  readonly dataClass: DataClass;
}

/** Puts bytes away in the caller's transaction and says where: `vault://…` and a digest, in the order given. */
export interface LetterSealer {
  /** Opens tenants' keys before the transaction, since that may need a connection of its own. */
  open(tenantIds: readonly string[]): Promise<void>;
  seal(
    tx: Tx,
    payloads: readonly BytesToSeal[],
  ): Promise<readonly { readonly ref: string; readonly digest: string }[]>;
}

/** The sealer that writes to the vault, under the tenant's own key. */
export function createVaultLetterSealer(keys: TenantKeys): LetterSealer {
  return {
    async open(tenantIds) {
      await Promise.all(tenantIds.map((tenantId) => keys.current(tenantId)));
    },
    async seal(tx, payloads) {
      const sealed = await Promise.all(payloads.map((payload) => sealPayload(keys, payload)));
      await tx.query(insertEvidenceStatement(sealed.map(({ row }) => row)));
      return sealed.map(({ ref, digest }) => ({ ref, digest }));
    },
  };
}
