/** An episode's place in a cut, and something that it shares with each that it is related to. */
export interface Linked {
  readonly ordinal: number;
  readonly link: string;
}

/**
 * Which episodes may not be parted: those that share a link, over any number of steps. Union-find over places in the cut;
 * four bytes an episode. The first episode of a group stands for it, whatever the order of the links.
 */
export class LeakageGroups {
  readonly #parents: Int32Array;
  #last: Linked | null = null;

  constructor(episodes: number) {
    this.#parents = Int32Array.from({ length: episodes }, (_, ordinal) => ordinal);
  }

  /** Takes links in sorted order: those of the same text follow each other. */
  add(linked: Linked): void {
    if (this.#last?.link === linked.link) this.join(this.#last.ordinal, linked.ordinal);
    this.#last = linked;
  }

  /** Two episodes are related. */
  join(left: number, right: number): void {
    const [first, second] = [this.firstOf(left), this.firstOf(right)];
    if (first !== second) this.#parents[Math.max(first, second)] = Math.min(first, second);
  }

  /** The first episode of the group that an episode belongs to. */
  firstOf(ordinal: number): number {
    let at = ordinal;
    for (;;) {
      const parent = this.#parents[at] ?? at;
      if (parent === at) return at;
      // Every second step is cut short, so that chains stay flat.
      const grandparent = this.#parents[parent] ?? parent;
      this.#parents[at] = grandparent;
      at = grandparent;
    }
  }
}
