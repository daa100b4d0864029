/** One committed row of the outbox on its way out. */
export interface OutboxEvent {
  /** Serial number; within a lane it is the commit order. */
  readonly seq: bigint;
  /** Event type; the topic is the prefix and this. */
  readonly type: string;
  readonly key: string;
  readonly lane: number;
  readonly payload: Buffer;
  readonly headers: Readonly<Record<string, string>>;
  /** UTC milliseconds of the INSERT, by the database's clock. */
  readonly createdAtMs: number;
}

/** Lanes of one group are leased together. */
export const lanesPerGroup = 64;
export const laneGroups = 16;
