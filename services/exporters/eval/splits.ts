import { hash } from "node:crypto";
import { Fault } from "../../../schemas/faults.ts";

export const splitNames = ["train", "validation", "test"] as const;
export type Split = (typeof splitNames)[number];

/** Shares of the three splits in whole percent; they add up to 100. */
export type Shares = Readonly<Record<Split, number>>;

export const defaultShares: Shares = { train: 80, validation: 10, test: 10 };

/** Reads `80/10/10`. */
export function toShares(text: string): Shares {
  const parts = text.split("/").map((part) => (/^\d{1,3}$/.test(part) ? Number(part) : NaN));
  const [train, validation, test] = parts;
  if (parts.length !== 3 || parts.reduce((sum, one) => sum + one, 0) !== 100)
    throw new Fault(
      "USAGE",
      `\`${text}\` is no split; give three whole percentages that add up to 100, such as 80/10/10`,
    );
  return { train: train ?? 0, validation: validation ?? 0, test: test ?? 0 };
}

/**
 * The split of a leakage group: a hash of the seed and the group's first episode, as a number below 10,000, against the
 * shares. The same group lands in the same split in each version in which it begins with the same episode.
 */
export function toSplit(seed: string, firstEpisodeId: string, shares: Shares): Split {
  const point = hash("sha256", JSON.stringify([seed, firstEpisodeId]), "buffer").readUInt32BE(0) % 10_000;
  if (point < shares.train * 100) return "train";
  return point < (shares.train + shares.validation) * 100 ? "validation" : "test";
}
