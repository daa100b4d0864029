/** Where a statement about a runtime comes from. */
export type Evidence = "observed" | "documented" | "unknown";

/** One statement: what is so, who says it, and the condition it holds under. */
export interface Cell<V extends string> {
  readonly value: V | "unknown";
  readonly evidence: Evidence;
  readonly note?: string;
}

export type Power = "yes" | "no" | "conditional";
/** What becomes of the action when the hook fails: it goes on (open), it does not (closed), or there is none left. */
export type FailureMode = "open" | "closed" | "no_action";

/** What a hook can do at one event, and what its failure does. */
export interface EventCapability {
  readonly moment: "before_effect" | "after_effect" | "lifecycle";
  readonly canBlock: Cell<Power>;
  readonly canModify: Cell<Power>;
  readonly canAsk: Cell<Power>;
  readonly canAddContext: Cell<Power>;
  readonly canReplaceResult: Cell<Power>;
  readonly awaited: Cell<Power>;
  readonly onCrash: Cell<FailureMode>;
  readonly onTimeout: Cell<FailureMode>;
  readonly onGarbage: Cell<FailureMode>;
  /** Ids that keep their meaning across the events of one call. */
  readonly stableIds: readonly string[];
  /** Set when a hook here takes over work of the runtime, so that observing alone breaks it. */
  readonly takesOver?: string;
}

/** A runtime's matrix as data, for one client version. */
export interface RuntimeCapabilities {
  readonly runtime: string;
  readonly clientVersion: string;
  readonly recordedOn: string;
  readonly hooksOfOneEvent: Cell<"serial" | "concurrent">;
  readonly exceptionPropagates: Cell<Power>;
  readonly effectRecoverable: Cell<Power>;
  readonly lostEventsReplayable: Cell<Power>;
  /** Ways past the hooks that are known. */
  readonly blindSpots: readonly string[];
  readonly events: Readonly<Record<string, EventCapability>>;
}

/** Seen with the real client. */
export const observed = <V extends string>(value: V, note?: string): Cell<V> =>
  note === undefined ? { value, evidence: "observed" } : { value, evidence: "observed", note };
/** Written in the client's own schemas or pages, not tried. */
export const documented = <V extends string>(value: V, note?: string): Cell<V> =>
  note === undefined ? { value, evidence: "documented" } : { value, evidence: "documented", note };
/** Neither seen nor written anywhere we know. */
export const unknownCell = { value: "unknown", evidence: "unknown" } as const;
