import { toSource } from "./launch.ts";
import type { Launch } from "./launch.ts";
import { scanAllOptions } from "./options.ts";
import type { Word } from "./parsed-command.ts";

const FD_VALUES =
  "-e --extension -E --exclude -t --type -S --size -o --owner -d --max-depth --min-depth --exact-depth -c --color -j --threads " +
  "--changed-within --changed-before --max-results --path-separator --search-path --base-directory --ignore-file --format --batch-size --and";
/** The places that a found path takes: `{}`, `{/}`, `{//}`, `{.}`, `{/.}`. */
const MARK = /\{(?:\/{0,2}|\/?\.)\}/;

const literal = (text: string): Word => ({ kind: "literal", text });
const toText = (word: Word): string => (word.kind === "literal" ? word.text : word.prefix);

/** The words that fd starts for what it finds: each `-x` or `-X` up to `;`, alone or at the end of a cluster. */
export function toFdCommands(args: readonly Word[]): { at: number; words: readonly Word[] }[] {
  const commands: { at: number; words: readonly Word[] }[] = [];
  for (let at = 0; at < args.length; at += 1) {
    const text = toText(args[at] ?? literal(""));
    const attached =
      /^--exec(?:-batch)?=([\s\S]*)$/.exec(text) ?? /^-[HIsiglLapFu01qh]*[xX]([\s\S]*)$/.exec(text);
    if (attached === null && !/^--exec(?:-batch)?$/.test(text)) continue;
    const rest = args.slice(at + 1);
    const end = rest.findIndex((word) => toSource(word) === ";");
    const words = end === -1 ? rest : rest.slice(0, end);
    const first = attached?.[1] ?? "";
    commands.push({ at, words: first === "" ? words : [literal(first), ...words] });
    at += words.length;
  }
  return commands;
}

/** The folders that fd looks below. */
export function toFdRoots(args: readonly Word[]): readonly Word[] {
  const { options, operands } = toScan(args);
  const given = options.flatMap(({ name, value }) =>
    /^--(?:search-path|base-directory)$/.test(name) && value !== undefined ? [value] : [],
  );
  const isPatternLess = options.some(({ name }) => name === "--search-path");
  const roots = [...given, ...(isPatternLess ? operands : operands.slice(1))];
  return roots.length === 0 ? [literal(".")] : roots;
}

const toScan = (args: readonly Word[]): ReturnType<typeof scanAllOptions> =>
  scanAllOptions(args.slice(0, toFdCommands(args)[0]?.at ?? args.length), FD_VALUES);

/** What fd starts: with what it finds in the places that are marked for it, or behind all other words. */
export function toFdLaunches(args: readonly Word[]): Launch[] {
  const choices = toFound(args);
  const found: Word = {
    kind: "unresolved",
    reason: "input",
    source: "{}",
    prefix: "",
    ...(choices === undefined ? {} : { choices }),
  };
  return toFdCommands(args).map(({ words }): Launch => {
    const isMarked = words.some((word) => MARK.test(toSource(word)));
    const filled = words.map((word): Word => {
      const source = toSource(word);
      if (!MARK.test(source)) return word;
      return source === "{}" ? found : { ...found, source, prefix: toText(word).replace(/\{[\s\S]*$/, "") };
    });
    return { kind: "words", words: isMarked ? filled : [...filled, found] };
  });
}

/** What fd finds, as far as its words bound it; undefined: anything, hidden files too. */
function toFound(args: readonly Word[]): Word[] | undefined {
  const { options, operands } = toScan(args);
  const isOpen = options.some(({ name }) =>
    /^(?:-H|-u|--hidden|--unrestricted|--base-directory)$/.test(name),
  );
  const start = toFdCommands(args)[0]?.at ?? -1;
  const seesHidden = /^-[A-Za-z]*[Hu]/.test(toText(args[start] ?? literal("")));
  const pattern = operands[0];
  const roots = toFdRoots(args);
  if (isOpen || seesHidden || (pattern !== undefined && pattern.kind !== "literal")) return undefined;
  if (roots.some((root) => root.kind !== "literal" && root.reason !== "home")) return undefined;
  const extensions = options.flatMap(({ name, value }) =>
    /^(?:-e|--extension)$/.test(name) && value?.kind === "literal" ? [`*.${value.text}`] : [],
  );
  const names = extensions.length > 0 ? extensions : toNames(pattern?.text ?? "");
  return roots.flatMap((root) => {
    const folder = toSource(root).replace(/\/+$/, "");
    const start = /^[/~.]/.test(folder) || folder === "" ? folder : `./${folder}`;
    // A root may be a file, or a folder whose name says enough.
    return [
      ...(folder === "." ? [] : [root]),
      ...names.map((name): Word => {
        const text = `${start}/${name}`;
        if (/[*]/.test(name) || start.startsWith("~"))
          return {
            kind: "unresolved",
            reason: "glob",
            source: text,
            prefix: text.replace(/[*][\s\S]*$/, ""),
          };
        return literal(text);
      }),
    ];
  });
}

/** Names that fit a pattern of fd: a plain one may be a whole name, a part of one or its end. */
function toNames(pattern: string): string[] {
  if (/^[\w-]+$/.test(pattern)) return [pattern, `*${pattern}*`, `*.${pattern}`];
  const end = /^(?:\.\*)?\\\.(\w+)\$$/.exec(pattern);
  return end === null ? ["*"] : [`*.${end[1] ?? ""}`];
}
