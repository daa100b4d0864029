/** What `outbox.settled_mark()` answered: each writer of a number up to `drawn` has an id below `xid`. */
export interface SettledMark {
  readonly drawn: bigint;
  readonly xid: bigint;
}

/** What a read must know before it starts, to be allowed to raise the floor when it ends. */
export interface FloorView {
  readonly from: bigint;
  readonly settled: bigint;
  readonly era: number;
}

/**
 * The serial number below which nothing has to be looked for: each row of our lanes up to it is deleted, will never
 * exist, or is remembered by us (in flight, or its topic is held). It decides nothing: it only spares the dead index
 * entries that the deletes leave behind, and a full sweep checks it every few seconds.
 *
 * INVARIANT: the floor never passes a row that may still appear. A number is drawn after its transaction got an id, so
 * once every id below the mark's is over, all numbers drawn before the mark are settled; and a read raises the floor
 * only by what was settled before its snapshot (test/integration/relay-order.test.ts "publishes a row whose
 * transaction stays open while later ones are published and deleted").
 */
export class SettledFloor {
  #value = 0n;
  #settled = 0n;
  #era = 0;
  #marks: SettledMark[] = [];

  get value(): bigint {
    return this.#value;
  }

  /** Take it before the read is sent. */
  view(): FloorView {
    return { from: this.#value, settled: this.#settled, era: this.#era };
  }

  /** `oldestRunning` is the snapshot's xmin: each smaller transaction id has ended. */
  learn(mark: SettledMark, oldestRunning: bigint): void {
    this.#marks.push(mark);
    while (this.#marks[0] !== undefined && this.#marks[0].xid <= oldestRunning) {
      this.#settled = this.#marks[0].drawn;
      this.#marks.shift();
    }
    // A long transaction elsewhere holds everything back; newer marks then say no more than every second one would.
    if (this.#marks.length > 64) this.#marks = this.#marks.filter((_, index) => index % 2 === 0);
  }

  /** A complete read from `view.from` found `first` as its lowest row, or none. */
  raise(view: FloorView, first: bigint | undefined): void {
    if (view.era !== this.#era) return;
    const clear = first === undefined || first > view.settled ? view.settled : first - 1n;
    if (clear > this.#value) this.#value = clear;
  }

  /** Rows below may be due again: other lanes, a failed send, a topic that is no longer held. */
  reset(): void {
    this.#value = 0n;
    this.#era += 1;
  }
}
