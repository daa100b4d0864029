/** Work that waits for its turn. */
interface Waiting {
  readonly lane: string;
  readonly work: () => Promise<void>;
}
/** Work that nobody has room for yet. */
interface AtDoor extends Waiting {
  readonly accepted: () => void;
}

/**
 * Runs work of many lanes: in order within a lane, `atOnce` lanes at a time. Whoever brings work is let go as soon as
 * there is room for it, so that he can fetch the next: at most one piece waits per lane, and `atOnce` in all.
 */
export class ReadAhead {
  readonly #atOnce: number;
  readonly #running = new Map<string, Promise<void>>();
  #waiting: Waiting[] = [];
  #door: AtDoor[] = [];

  constructor(atOnce: number) {
    this.#atOnce = atOnce;
  }

  /** Resolves when the work runs or waits in its lane. `work` must not reject. */
  bring(lane: string, work: () => Promise<void>): Promise<void> {
    return new Promise((accepted) => {
      this.#door.push({ lane, work, accepted });
      this.#move();
    });
  }

  /** Forgets what waits, lets everybody at the door go, and resolves when what runs has ended. */
  async drain(): Promise<void> {
    this.#waiting = [];
    for (const { accepted } of this.#door.splice(0)) accepted();
    await Promise.all(this.#running.values());
  }

  #move(): void {
    for (let moved = true; moved;) {
      moved = false;
      while (this.#running.size < this.#atOnce) {
        const at = this.#waiting.findIndex(({ lane }) => !this.#running.has(lane));
        const next = at < 0 ? undefined : this.#waiting.splice(at, 1)[0];
        if (next === undefined) break;
        this.#run(next);
      }
      const at = this.#door.findIndex(
        ({ lane }) =>
          (this.#running.size < this.#atOnce || this.#waiting.length < this.#atOnce) &&
          !this.#waiting.some((one) => one.lane === lane),
      );
      const next = at < 0 ? undefined : this.#door.splice(at, 1)[0];
      if (next !== undefined) {
        this.#waiting.push(next);
        next.accepted();
        moved = true;
      }
    }
  }

  #run({ lane, work }: Waiting): void {
    this.#running.set(
      lane,
      work().finally(() => {
        this.#running.delete(lane);
        this.#move();
      }),
    );
  }
}
