import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { DecisionName } from "../../../schemas/gate.ts";
import type { CommandIntent } from "../../../services/gate/shell/command-intent.ts";

/** A command line with its right answers, written by hand. Paths are for the directory /project and the home /home/u. */
export type CorpusCommand = {
  readonly text: string;
  /** Every program, builtin and function that runs, sorted. For an opaque one: those that must be found at least. */
  readonly programs: readonly string[];
  readonly writes: readonly string[];
  readonly opaque: boolean;
  readonly dangerous: readonly (CommandIntent | "none")[];
  /** What the default bundle owes, by judgement and not by its answer. */
  readonly decision: DecisionName;
  /** False: never run for real, not even in the empty machine. */
  readonly runnable?: boolean;
};

/** All families, in the order of their names. */
export function readCorpus(): (CorpusCommand & { readonly family: string })[] {
  return readdirSync(import.meta.dirname)
    .filter((name) => name.endsWith(".json"))
    .sort()
    .flatMap((name) => {
      const family = name.replace(/\.json$/, "");
      const commands = JSON.parse(readFileSync(join(import.meta.dirname, name), "utf8")) as CorpusCommand[];
      return commands.map((command) => ({ ...command, family }));
    });
}

/** Odd spellings without hand-written answers: bash itself says what each of them runs and writes. */
export function readSpellings(): readonly string[] {
  return JSON.parse(readFileSync(join(import.meta.dirname, "spellings/spellings.json"), "utf8")) as string[];
}

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
/** Layers that take any script. Each keeps what runs inside it, and some add a program of their own. */
const LAYERS: readonly ((script: string) => string)[] = [
  (script) => `sh -c ${quote(script)}`,
  (script) => `bash -lc ${quote(script)} name arg`,
  (script) => `env -i A=b bash -c ${quote(script)}`,
  (script) => `(${script}\n)`,
  (script) => `{ ${script}\n}`,
  (script) => `echo "$(${script}\n)"`,
  (script) => `timeout 5 bash -c ${quote(script)}`,
  (script) => `nohup nice -n 5 setsid bash -c ${quote(script)}`,
  (script) => `eval ${quote(script)}`,
  (script) => `wrapped() { ${script}\n}; wrapped`,
  (script) => `if true; then ${script}\nfi`,
  (script) => `for i in 1; do ${script}\ndone`,
  (script) => `true && { ${script}\n}`,
  (script) => `false || ( ${script}\n)`,
  (script) => `cat <(${script}\n)`,
  (script) => `echo go | xargs bash -c ${quote(script)}`,
  (script) => `: "\${unset_name:-$(${script}\n)}"`,
  (script) => `X=1 bash -c ${quote(script)} > wrapped.log 2>&1`,
  (script) => `sudo -n -u root bash -c ${quote(script)}`,
  (script) => `case x in x) ${script}\n;; esac`,
  (script) => `: $((1 + $(${script}\n echo 1)))`,
  (script) => `bash <<'WRAPPED_END'\n${script}\nWRAPPED_END`,
  (script) => `find . -maxdepth 0 -exec bash -c ${quote(script)} \\;`,
  (script) => `busybox sh -c ${quote(script)}`,
  (script) => `while true; do ${script}\nbreak; done`,
  (script) => `trap ${quote(script)} EXIT`,
];

/** The command inside of the layers that the numbers choose, innermost first. */
export function wrapCommand(text: string, layers: readonly number[]): { readonly text: string } {
  return { text: layers.reduce((script, layer) => (LAYERS[layer % LAYERS.length] ?? String)(script), text) };
}
