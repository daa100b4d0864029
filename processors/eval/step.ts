/** One call of an episode, as the row of the episode lists it. */
export interface Step {
  /** From 1, in the order of `recorded_at` and then of event ids. */
  readonly number: number;
  readonly at: string;
  readonly tool: string | null;
  readonly action: string | null;
  readonly resource: string | null;
  readonly effect_class: string | null;
  readonly plan_digest: string | null;
  /** Masked beginning of the input. */
  readonly input: string | null;
  readonly agent_id: string | null;
  readonly decision: string | null;
  readonly reason_code: string | null;
  readonly outcome: string | null;
  readonly duration_ms: number | null;
  /** The runtime or a person at it refused the call. */
  readonly refused: boolean;
  /** It ran without a decision. */
  readonly ungated: boolean;
  /** The later call that made up for it. */
  readonly recovered_by: number | null;
}
