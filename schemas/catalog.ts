/** The four semantics of DESIGN 4: what a topic may do to the main path. */
export type TopicClass = "lifecycle" | "policy" | "domain" | "webhook" | "control";

/** What the catalogue says of one event type, which is also its topic. */
export interface TopicEntry {
  readonly class: TopicClass;
  /** An intent asks, a fact states. */
  readonly nature: "intent" | "fact";
  /** Which envelope fields make the Kafka key; the values are joined by `/`. */
  readonly key: "tenant/correlation" | "tenant" | "consumer";
  /** Latest schema version, `major.minor`. */
  readonly version: `${number}.${number}`;
  readonly partitions: number;
  readonly retentionMs: number;
  readonly cleanup: "delete" | "compact";
  readonly dataClass: "internal" | "confidential";
  /** The room that produces it and answers for its schema. */
  readonly owner: string;
  readonly summary: string;
}

const dayMs = 86_400_000;
/** Replay reaches this far without the archive: a fortnight covers two on-call weeks. */
const standardRetentionMs = 14 * dayMs;
/** Evidence topics outlive a quarter's audit. */
const evidenceRetentionMs = 100 * dayMs;
/** Six lets three hosts share a topic evenly and two idle ones join; raising it later moves keys. */
const standardPartitions = 6;

const standard = {
  key: "tenant/correlation",
  version: "1.0",
  partitions: standardPartitions,
  retentionMs: standardRetentionMs,
  cleanup: "delete",
  dataClass: "internal",
} as const;
const observed = { ...standard, class: "lifecycle", nature: "fact", owner: "gate" } as const;
const ruling = {
  ...standard,
  class: "policy",
  nature: "fact",
  owner: "gate",
  retentionMs: evidenceRetentionMs,
} as const;
const control = {
  ...standard,
  class: "control",
  nature: "fact",
  key: "consumer",
  partitions: 1,
  retentionMs: evidenceRetentionMs,
} as const;

/** Every event type: its topic's settings, owner and meaning. The one list that everything else is made from. */
export const catalog = {
  "agent.session.started": { ...observed, summary: "a session began or continued, with the hooks loaded" },
  "agent.session.ended": { ...observed, summary: "a session ended" },
  "agent.session.compacted": { ...observed, summary: "a session's context was compacted" },
  "agent.turn.started": { ...observed, summary: "a turn began" },
  "agent.turn.completed": { ...observed, summary: "a turn came to an end, well or not" },
  "agent.prompt.submitted": {
    ...observed,
    dataClass: "confidential",
    summary: "a prompt was handed to the agent",
  },
  "agent.subagent.started": { ...observed, summary: "a child agent began" },
  "agent.subagent.stopped": { ...observed, summary: "a child agent ended" },
  "agent.model.completed": {
    ...observed,
    class: "domain",
    version: "1.1",
    summary: "a model call ended, with its tokens",
  },
  "agent.lifecycle.observed": {
    ...observed,
    version: "1.1",
    summary: "a signal of the runtime that changes nothing for policy",
  },
  "agent.tool.requested": {
    ...ruling,
    nature: "intent",
    dataClass: "confidential",
    summary: "an agent asked to use a tool",
  },
  "agent.tool.authorized": { ...ruling, summary: "the gate allowed a tool call" },
  "agent.tool.denied": { ...ruling, summary: "the gate refused a tool call" },
  "agent.tool.deferred": { ...ruling, summary: "the gate put a tool call off until a fact is there" },
  "agent.deferral.answered": {
    ...ruling,
    summary: "a plan that was put off was asked for again, and decided",
  },
  "agent.tool.completed": {
    ...ruling,
    class: "domain",
    dataClass: "confidential",
    summary: "a tool call ended",
  },
  "agent.permission.requested": {
    ...ruling,
    nature: "intent",
    dataClass: "confidential",
    summary: "the runtime asks whether a tool call may go on",
  },
  "agent.permission.refused": { ...ruling, summary: "the runtime itself refused a tool call" },
  "agent.effect.prepared": {
    ...ruling,
    dataClass: "confidential",
    summary: "a plan was frozen for a person to look at",
  },
  "agent.approval.requested": { ...ruling, nature: "intent", summary: "a person has to agree to a plan" },
  "agent.approval.granted": { ...ruling, summary: "a person agreed to one plan, for one use" },
  "agent.approval.refused": { ...ruling, summary: "a person refused a plan" },
  "agent.approval.expired": { ...ruling, summary: "an approval came to its end unused" },
  "agent.approval.voided": { ...ruling, summary: "an approval does not fit the plan any more" },
  "agent.approval.consumed": { ...ruling, summary: "a call passed by using up an approval" },
  "agent.capability.issued": { ...ruling, summary: "a right to carry out one plan was issued" },
  "agent.capability.spent": { ...ruling, summary: "calls of a right were used" },
  "agent.capability.revoked": { ...ruling, summary: "a right was taken back before its time" },
  "agent.capability.expired": { ...ruling, summary: "a right came to its end with calls left" },
  "agent.plan.revoked": { ...ruling, summary: "a plan may not be carried out any more, whoever asks" },
  "agent.effect.attempted": { ...ruling, owner: "execution", summary: "an effect was sent to its resource" },
  "agent.effect.receipted": { ...ruling, owner: "execution", summary: "the resource answered an effect" },
  "agent.effect.unresolved": {
    ...ruling,
    owner: "execution",
    summary: "nobody knows whether an effect happened",
  },
  "agent.effect.reconciled": {
    ...ruling,
    owner: "execution",
    summary: "it was found out what became of an effect",
  },
  "agent.effect.ungated": { ...ruling, summary: "a tool ran without a decision before it" },
  "agent.plan.diverged": { ...ruling, summary: "what ran is not what was agreed to" },
  "agent.episode.labelled": {
    ...ruling,
    class: "domain",
    owner: "desk",
    summary: "a person judged an episode",
  },
  "fabric.adapter.unrecognized": {
    ...ruling,
    class: "control",
    version: "1.1",
    summary: "a payload that no adapter understands",
  },
  "fabric.policy.activated": {
    ...control,
    key: "tenant",
    owner: "gate",
    summary: "the gate decides by another revision from here on",
  },
  "fabric.letter.buried": { ...control, owner: "host", summary: "an input was set aside for a person" },
  "fabric.gap.found": {
    ...control,
    version: "1.1",
    owner: "host",
    summary: "records that a consumer never saw are gone",
  },
  "fabric.letter.redriven": {
    ...control,
    owner: "host",
    summary: "an input that was set aside went through its consumer",
  },
  "fabric.letter.archived": { ...control, owner: "recovery", summary: "a person put a letter away for good" },
  "fabric.redrive.requested": {
    ...control,
    owner: "recovery",
    summary: "a person sends letters through their consumer again",
  },
  "fabric.redrive.stopped": {
    ...control,
    owner: "recovery",
    summary: "a person stopped a redrive under way",
  },
  "fabric.redrive.resumed": {
    ...control,
    owner: "recovery",
    summary: "a person let a redrive that was stopped go on",
  },
  "fabric.gap.resumed": {
    ...control,
    owner: "recovery",
    summary: "a person chose how a stopped partition goes on",
  },
  "fabric.emission.released": {
    ...control,
    owner: "recovery",
    summary: "a person let events go out that were held back",
  },
  "fabric.emission.dropped": {
    ...control,
    owner: "recovery",
    summary: "a person threw events away that were held back",
  },
  "fabric.publication.retried": {
    ...control,
    key: "tenant",
    owner: "recovery",
    summary: "a person put a refused event back into the outbox",
  },
  "fabric.publication.archived": {
    ...control,
    key: "tenant",
    owner: "recovery",
    summary: "a person put a refused event away for good",
  },
  "fabric.cost.corrected": {
    ...control,
    key: "tenant",
    owner: "desk",
    summary: "a person corrected the ledger",
  },
  "fabric.cost.closed": {
    ...control,
    key: "tenant",
    owner: "desk",
    summary: "a person closed a month of the ledger",
  },
  "fabric.cost.anomalous": {
    ...control,
    key: "tenant",
    owner: "cost",
    summary: "a scope spends far more than before",
  },
  "fabric.budget.crossed": { ...control, key: "tenant", owner: "cost", summary: "spending passed a limit" },
  "fabric.tenant.erased": {
    ...control,
    key: "tenant",
    owner: "desk",
    summary: "what people and tools wrote in a tenant's episodes is to be gone",
  },
  "fabric.takeover.opened": {
    ...control,
    key: "tenant",
    owner: "takeover",
    summary: "work waits for a person",
  },
  "fabric.takeover.claimed": {
    ...control,
    key: "tenant",
    owner: "desk",
    summary: "a person works on an item",
  },
  "fabric.takeover.noted": {
    ...control,
    key: "tenant",
    owner: "desk",
    summary: "a person noted something on an item",
  },
  "fabric.takeover.reassigned": {
    ...control,
    key: "tenant",
    owner: "desk",
    summary: "an item goes to another person",
  },
  "fabric.takeover.resolved": {
    ...control,
    key: "tenant",
    owner: "desk",
    summary: "a person closed an item",
  },
  "fabric.takeover.breached": {
    ...control,
    key: "tenant",
    owner: "takeover",
    summary: "an item waits for too long",
  },
  "fabric.breaker.tripped": {
    ...control,
    version: "1.1",
    key: "tenant",
    owner: "breaker",
    summary: "a scope is read-only from here on",
  },
  "fabric.breaker.reset": {
    ...control,
    version: "1.1",
    key: "tenant",
    owner: "incidents",
    summary: "a person ended a read-only state",
  },
  "fabric.incident.declared": {
    ...control,
    key: "tenant",
    owner: "incidents",
    summary: "a person froze a scope",
  },
  "fabric.incident.lifted": {
    ...control,
    key: "tenant",
    owner: "incidents",
    summary: "a person lifted an incident",
  },
  "fabric.throttle.applied": {
    ...control,
    key: "tenant",
    owner: "gate",
    summary: "observing events were dropped, delayed, coalesced, sampled or cut",
  },
  "fabric.audit.sealed": {
    ...control,
    key: "tenant",
    partitions: standardPartitions,
    owner: "audit",
    summary: "a block of the audit trail was closed and signed",
  },
} as const satisfies Record<string, TopicEntry>;

/** Name of an event type, which is also its topic's name. */
export type EventType = keyof typeof catalog;

/** All event types, in catalogue order. */
export const eventTypes = Object.keys(catalog) as EventType[];

/** Whether a string names a type of the catalogue. */
export function isEventType(name: string): name is EventType {
  return Object.hasOwn(catalog, name);
}
