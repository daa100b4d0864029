import type { ParseContext } from "./place.ts";
import type { ParsedCommand } from "./parsed-command.ts";
import { SyntaxWalk } from "./syntax-walk.ts";
import type { BashParser } from "./syntax-tree.ts";

/**
 * Judges what a command line runs. Pure but for the parser that is handed in; the same text and context give the same
 * value. Certain and opaque are told apart in `parsed-command.ts`.
 */
export function parseCommand(parser: BashParser, text: string, context: ParseContext): ParsedCommand {
  return new SyntaxWalk(parser, context).run(text);
}
