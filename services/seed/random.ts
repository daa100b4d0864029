/** Numbers that look random and are the same for the same seed, on every machine. */
export interface Random {
  /** At least 0, below 1. */
  unit(): number;
  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number;
  chance(probability: number): boolean;
  pick<T>(items: readonly [T, ...(readonly T[])]): T;
  /** By weight: an item of weight 2 comes twice as often as one of weight 1. */
  weighted<T extends { readonly weight: number }>(items: readonly [T, ...(readonly T[])]): T;
  /** Log-normal around `median`: most values near it, a long tail above. Whole, at least 1. */
  skewed(median: number, spread: number): number;
  /** A UUIDv7 of that time whose other bits come from here. */
  uuidV7(nowMs: number): string;
  hex(digits: number): string;
}

/** A generator for one stream of numbers; `stream` keeps streams of one seed apart (mulberry32 over a mixed seed). */
export function createRandom(seed: number, stream: number): Random {
  let state = mix(mix(seed >>> 0) ^ mix((stream + 0x9e3779b9) >>> 0));
  const bits = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (t ^ (t >>> 14)) >>> 0;
  };
  const unit = (): number => bits() / 4_294_967_296;
  const hex = (digits: number): string => {
    let text = "";
    while (text.length < digits) text += bits().toString(16).padStart(8, "0");
    return text.slice(0, digits);
  };
  const at = <T>(items: readonly [T, ...(readonly T[])], index: number): T => items[index] ?? items[0];
  return {
    unit,
    between: (low, high) => low + Math.floor(unit() * (high - low + 1)),
    chance: (probability) => unit() < probability,
    pick: (items) => at(items, Math.floor(unit() * items.length)),
    weighted(items) {
      let rest = unit() * items.reduce((sum, item) => sum + item.weight, 0);
      for (const item of items) {
        rest -= item.weight;
        if (rest < 0) return item;
      }
      return items[0];
    },
    skewed(median, spread) {
      const normal = Math.sqrt(-2 * Math.log(1 - unit())) * Math.cos(2 * Math.PI * unit());
      return Math.max(1, Math.round(median * Math.exp(spread * normal)));
    },
    uuidV7(nowMs) {
      const time = Math.floor(nowMs).toString(16).padStart(12, "0");
      const rest = hex(18);
      const variant = ((Number.parseInt(rest.slice(3, 4), 16) & 3) | 8).toString(16);
      return `${time.slice(0, 8)}-${time.slice(8)}-7${rest.slice(0, 3)}-${variant}${rest.slice(4, 7)}-${rest.slice(6, 18)}`;
    },
    hex,
  };
}

function mix(value: number): number {
  let z = (value + 0x9e3779b9) >>> 0;
  z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
  z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
  return (z ^ (z >>> 16)) >>> 0;
}
