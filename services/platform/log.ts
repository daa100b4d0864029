import type { DestinationStream, Logger } from "pino";
import { pino } from "pino";

/** Structured log on stderr; stdout belongs to a command's result. */
export type Log = Logger;

export interface LogOptions {
  readonly service: string;
  readonly level?: string;
  /** Where lines go; stderr when left out. */
  readonly destination?: DestinationStream;
}

/** Keys whose values never reach a log line, at the top and one level down. */
const secretKeys = ["authorization", "cookie", "password", "token", "secret", "api_key", "apiKey", "url"];

/** Makes the log of one service. Known secret keys are replaced; free text must be masked by its writer. */
export function createLog({ service, level = "info", destination }: LogOptions): Log {
  return pino(
    {
      level,
      base: { service },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: secretKeys.flatMap((key) => [key, `*.${key}`]), censor: "[masked]" },
    },
    destination ?? pino.destination({ dest: 2, sync: true }),
  );
}
