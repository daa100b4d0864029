import { z } from "zod";

/** Sessions of one question, and calls of one session: what is left out is asked about in the next one. */
export const comparedSessionsMax = 100;
export const comparedCallsMax = 500;

const id = z
  .string()
  .min(1)
  .max(256)
  .regex(/^\P{Cc}+$/u, "an id holds no control characters");

/** Sessions of one runtime as its client recorded them, for a comparison with what the gate decided. */
export const compareSessionsSchema = z.strictObject({
  runtime: id,
  sessions: z
    .array(z.strictObject({ session_id: id, call_ids: z.array(id).min(1).max(comparedCallsMax) }))
    .min(1)
    .max(comparedSessionsMax),
});
export type CompareSessions = z.output<typeof compareSessionsSchema>;

/** By session, in the order of the question. */
export const comparedSessionsSchema = z.strictObject({
  sessions: z.array(
    z.strictObject({
      session_id: z.string(),
      /** Whether the gate decided on any call of it, also on one that was not named. */
      is_known: z.boolean(),
      /** Of the named calls those on which the gate decided nothing. */
      unknown_call_ids: z.array(z.string()),
    }),
  ),
});
export type ComparedSessions = z.output<typeof comparedSessionsSchema>;
