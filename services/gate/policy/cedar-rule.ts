import type { ReasonCode } from "../../../schemas/gate.ts";

/** One Cedar policy of a bundle, taken apart. */
export interface CedarRule {
  readonly id: string;
  readonly effect: "permit" | "forbid";
  /** Of `static-deny.cedar`. */
  readonly isStatic: boolean;
  /** The policy's text with the effect `permit`. */
  readonly permitText: string;
  /** Actions that its scope names; null: all. */
  readonly actions: readonly string[] | null;
  /** Features of a question of which one has to hold for the policy to match or to fail; null: nothing is known. */
  readonly guard: readonly string[] | null;
  /** What it reads of a question; see `toUses`. */
  readonly uses: readonly string[];
  readonly reason: ReasonCode;
  readonly message: string;
  readonly priority: number;
}
