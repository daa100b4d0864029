/** Where a command writes: results to stdout, progress and faults to stderr. */
export interface Screen {
  /** A line of the result. */
  line(text: string): void;
  /** A document of a stream: with `--json` one JSON line on stdout, else `text`. */
  record(json: unknown, text: string): void;
  /** A line of progress; on stderr, so that stdout stays one document. */
  progress(text: string): void;
  /** Replaces the last line of progress on the terminal that is watched; absent elsewhere. */
  readonly status?: (text: string) => void;
  readonly colour: boolean;
  /** True when stdout must hold exactly one JSON document. */
  readonly json: boolean;
  /** Width of the terminal that shows the result; absent where there is none, and lines are as long as they are. */
  readonly columns?: number;
  /** True when a person watches stderr: progress that is no news for a log is written only then. */
  readonly isWatched?: boolean;
}

const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const;

/** ANSI styling that is plain text when colour is off; meaning never rests on colour alone. */
export function style(screen: Screen, name: keyof typeof codes, text: string): string {
  return screen.colour ? `\u001b[${String(codes[name])}m${text}\u001b[0m` : text;
}
