import type avsc from "avsc";
import type { AvroSchema } from "../../schemas/avro-json.ts";
import { unknownMustUnderstand } from "../../schemas/must-understand.ts";
import { toType } from "./avro-types.ts";

/** How one writer's schema is read: made once per schema id. Null resolver: both sides are the same on the wire. */
export interface Reading {
  readonly type: avsc.Type;
  readonly resolver: ReturnType<avsc.Type["createResolver"]> | null;
}

/** Whether a consumer with the reader's schema may read records of the writer's. */
export type ReadVerdict = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/**
 * The refusal rules, as far as schemas can tell: a writer's field with `must_understand` that the reader lacks, a
 * record name that does not resolve, a reader's field that the writer lacks and that is not optional. The major of
 * `schema_version` is in the value, and `EventCodec` checks it.
 */
export function mayRead(writerSchema: AvroSchema, readerSchema: AvroSchema): ReadVerdict {
  const reading = toReading(writerSchema, readerSchema, toType(readerSchema));
  return reading.ok ? { ok: true } : reading;
}

/** The same verdict, with the means to decode when it is yes. `readerType` is `toType(readerSchema)`, made once. */
export function toReading(
  writerSchema: AvroSchema,
  readerSchema: AvroSchema,
  readerType: avsc.Type,
): ({ readonly ok: true } & Reading) | { readonly ok: false; readonly reason: string } {
  let writerType: avsc.Type;
  try {
    writerType = toType(writerSchema);
  } catch (cause) {
    return { ok: false, reason: `the writer's schema is not one that we can read: ${messageOf(cause)}` };
  }
  if (writerType.name !== readerType.name) {
    return {
      ok: false,
      reason: `the writer's record is ${writerType.name ?? "unnamed"}, ours is ${readerType.name ?? "unnamed"}`,
    };
  }
  const unknown = unknownMustUnderstand(writerSchema, readerSchema);
  if (unknown.length > 0)
    return { ok: false, reason: `must understand ${unknown.join(", ")}: upgrade this consumer` };
  if (writerType.equals(readerType)) return { ok: true, type: readerType, resolver: null };
  try {
    return { ok: true, type: readerType, resolver: readerType.createResolver(writerType) };
  } catch (cause) {
    return { ok: false, reason: messageOf(cause) };
  }
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

/**
 * Avro's own rules alone, whatever the fabric's: the reason why a reader's schema cannot read a writer's, or null.
 * Full compatibility is this, both ways, against every version.
 */
export function whyUnresolvable(writerSchema: AvroSchema, readerSchema: AvroSchema): string | null {
  try {
    toType(readerSchema).createResolver(toType(writerSchema));
    return null;
  } catch (cause) {
    return messageOf(cause);
  }
}
