import type { Word, WrittenPath } from "./parsed-command.ts";

/** Takes in that a word names what is written: itself, or everything below it. */
export type Write = (word: Word, extent: WrittenPath["extent"]) => void;
/** What a program writes whose words are no plain list of options and operands; `here` is its folder. */
export type Writes = (args: readonly Word[], write: Write, here: Word) => void;

/** A word as it stands in the line. */
export const toText = (word: Word): string => (word.kind === "literal" ? word.text : word.source);
