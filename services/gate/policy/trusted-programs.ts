import type { DeclaredPrograms } from "../shell/declared-programs.ts";

/** A program that a bundle trusts as it is, whatever it does. */
export interface TrustedProgram {
  /** With the words of its subcommand. */
  readonly program: string;
  readonly line: number;
  readonly reason: string;
}

/** What a bundle trusts, in the order of the file: whoever checks it should see it. */
export function toTrusted(programs: DeclaredPrograms | undefined): readonly TrustedProgram[] {
  return [...(programs ?? [])].flatMap(([name, { use, subcommands }]) => [
    ...(use.trusted === null ? [] : [{ program: name, line: use.line, reason: use.trusted }]),
    ...[...subcommands].flatMap(([words, inner]) =>
      inner.trusted === null || inner.trusted === use.trusted
        ? []
        : [{ program: `${name} ${words}`, line: inner.line, reason: inner.trusted }],
    ),
  ]);
}
