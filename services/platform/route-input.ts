import type { z } from "zod";
import { Fault } from "../../schemas/faults.ts";
import type { Caller } from "./auth.ts";
import type { HttpRequest, ReceivedBody } from "./http.ts";

/** Faults that one answer lists; who sends more has other problems. */
const shownFaultsMax = 10;

/** Who calls a route that is not public. Throws INTERNAL on one that is: its author took the wrong table. */
export function callerOf({ caller }: Pick<HttpRequest, "caller">): Caller {
  if (caller === null) throw new Fault("INTERNAL", "a route without a caller");
  return caller;
}

/** The body, read; MEDIA_TYPE_UNSUPPORTED without one: such a request passes no content-type parser. */
export function bodyOf(request: { readonly body: unknown }): ReceivedBody {
  const body = request.body as ReceivedBody | undefined | null;
  if (body == null) throw new Fault("MEDIA_TYPE_UNSUPPORTED");
  return body;
}

/** What a schema makes of a value; REQUEST_INVALID names the fields, and `whole` for a fault of the value itself. */
export function parseInput<T extends z.ZodType>(schema: T, value: unknown, whole = "request"): z.output<T> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.map(
    (one) => `${one.path.map(String).join(".") || whole}: ${one.message}`,
  );
  throw new Fault("REQUEST_INVALID", faults.slice(0, shownFaultsMax).join("; "));
}
