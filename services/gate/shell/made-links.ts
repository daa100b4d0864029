import { scanAllOptions } from "./options.ts";
import type { Word } from "./parsed-command.ts";
import { resolvePath, toPaths } from "./path-words.ts";
import type { Directories } from "./path-words.ts";

const MAX_LINKS = 64;
const MAX_HOPS = 8;
const MAX_CLIMBS = 256;
/** Longest path of Linux, in characters. */
const MAX_PATH = 4_096;

/** The links that a text makes, and where paths lead through them; null: to what the text does not say. */
export class MadeLinks {
  private readonly targets = new Map<string, string | null>();
  private readonly noted = new Map<string, { readonly directory: string; readonly text: string }>();
  private areClimbsCut = false;

  private get climbs(): { readonly directory: string; readonly text: string }[] {
    return [...this.noted.values()];
  }

  /** Takes in a command that may make links: `ln`, `cp -s`, `cp -l`. */
  note(program: string, args: readonly Word[], directories: Directories): void {
    for (const word of args) this.noteClimb(word, directories);
    const { options, operands } = scanAllOptions(args, "-t -S --target-directory --suffix");
    const has = (pattern: RegExp): boolean => options.some(({ name }) => pattern.test(name));
    const isSoft = has(/^(-s|--symbolic|--symbolic-link)$/);
    if (program !== "ln" && !(program === "cp" && (isSoft || has(/^(-l|--link)$/)))) return;
    const into = options.find(({ name }) => /^(-t|--target-directory)$/.test(name))?.value;
    const here: Word = { kind: "literal", text: "." };
    const place = into ?? (operands.length === 1 ? here : operands.at(-1));
    const sources = into !== undefined || operands.length === 1 ? operands : operands.slice(0, -1);
    if (place === undefined) return;
    for (const directory of directories ?? [])
      for (const folder of toPaths(place, [directory]) ?? [])
        for (const source of sources) {
          const text = source.kind === "literal" || source.reason === "home" ? toText(source) : null;
          const name = (text ?? "").replace(/\/+$/, "").replace(/^.*\//, "");
          const isInside = place === here || into !== undefined;
          const spots = [...(isInside ? [] : [folder]), ...(name === "" ? [] : [resolvePath(folder, name)])];
          for (const spot of spots) {
            const from = isSoft && !has(/^(-r|--relative)$/) ? resolvePath(spot, "..") : directory;
            const target = text === null ? null : resolvePath(from, text);
            if (target !== spot && this.targets.size < MAX_LINKS) this.targets.set(spot, target);
          }
        }
  }

  noteClimb(word: Word, directories: Directories): void {
    // The kernel takes no longer path; and the pattern is quadratic in the length of a name.
    if (word.kind !== "literal" || word.text.length > MAX_PATH || !word.text.includes("/..")) return;
    if (!/[^/.][^/]*\/+\.\./.test(word.text)) return;
    for (const directory of directories ?? []) {
      const key = `${directory}\0${word.text}`;
      if (this.noted.size < MAX_CLIMBS) this.noted.set(key, { directory, text: word.text });
      else if (!this.noted.has(key)) this.areClimbsCut = true;
    }
  }

  /**
   * Paths that were spelled with a way up behind a name, by what they are as text: a link on the disk leads elsewhere.
   * Of a text with more than are kept, all that are: so many that nobody looks at each, and nothing of it is bound.
   */
  toClimbs(paths: ReadonlySet<string>): { readonly path: string; readonly spelled: string }[] {
    return this.climbs
      .map(({ directory, text }) => ({
        path: resolvePath(directory, text),
        spelled: text.startsWith("/") ? text : `${directory}/${text}`,
      }))
      .filter(({ path, spelled }) => this.areClimbsCut || (paths.has(path) && spelled.length <= MAX_PATH));
  }

  get isEmpty(): boolean {
    return this.targets.size === 0;
  }

  /** Where a path leads besides itself. `followsLast`: what stands at the path itself is followed too. */
  follow(path: string, followsLast: boolean): readonly (string | null)[] {
    const found: (string | null)[] = this.climbs
      .filter(({ directory, text }) => resolvePath(directory, text) === path)
      .map(({ directory, text }) => this.walk(directory, text));
    const open: { readonly at: string; readonly hops: number }[] = [
      { at: path, hops: 0 },
      ...found.flatMap((one) => (one === null ? [] : [{ at: one, hops: 0 }])),
    ];
    for (let one = open.pop(); one !== undefined; one = open.pop()) {
      for (const [link, target] of this.targets) {
        const isSame = one.at === link;
        if (!(isSame && followsLast) && !one.at.startsWith(`${link}/`)) continue;
        const next = target === null ? null : resolvePath(target, `./${one.at.slice(link.length)}`);
        if (next === one.at || found.includes(next)) continue;
        found.push(next);
        if (next !== null && one.hops < MAX_HOPS) open.push({ at: next, hops: one.hops + 1 });
      }
    }
    return found.filter((other) => other !== path);
  }

  /** Name by name, as the kernel does: a link is followed before `..` goes up. */
  private walk(directory: string, text: string): string | null {
    let at = text.startsWith("/") ? "/" : directory;
    let hops = 0;
    for (const part of text.split("/")) {
      at = resolvePath(at, part === "" ? "." : `./${part}`);
      for (let target = this.targets.get(at); target !== undefined; target = this.targets.get(at)) {
        hops += 1;
        if (target === null || hops > MAX_HOPS) return null;
        at = target;
      }
    }
    return at;
  }
}

const toText = (word: Word): string => (word.kind === "literal" ? word.text : word.source);
