/** The five kinds of DESIGN 10: what happens to the work, whatever the cause. */
export const faultKinds = ["transient", "poison", "refused", "unknown_effect", "fatal"] as const;
export type FaultKind = (typeof faultKinds)[number];

interface FaultEntry {
  readonly kind: FaultKind;
  /** HTTP status when a server answers with it. */
  readonly status: number;
  /** Exit code of the command line (DESIGN 18). */
  readonly exit: 1 | 2 | 3 | 4;
  readonly text: string;
}

/** Every fault code: its kind, how HTTP and the command line show it, and a short text for people. */
export const faultTable = {
  BODY_TOO_LARGE: { kind: "refused", status: 413, exit: 2, text: "the body is larger than the limit" },
  BODY_NOT_JSON: { kind: "refused", status: 400, exit: 2, text: "the body is not JSON" },
  REQUEST_INVALID: { kind: "refused", status: 400, exit: 2, text: "the request does not fit its schema" },
  ROUTE_UNKNOWN: { kind: "refused", status: 404, exit: 2, text: "there is nothing at this address" },
  RUNTIME_UNKNOWN: { kind: "refused", status: 404, exit: 2, text: "no adapter has this name" },
  MEDIA_TYPE_UNSUPPORTED: {
    kind: "refused",
    status: 415,
    exit: 2,
    text: "the content type is not application/json",
  },
  TOKEN_MISSING: { kind: "refused", status: 401, exit: 4, text: "a bearer token is needed" },
  TOKEN_INVALID: { kind: "refused", status: 401, exit: 4, text: "the token is not valid" },
  ROLE_MISSING: { kind: "refused", status: 403, exit: 4, text: "the token does not carry the role" },
  TENANT_UNKNOWN: { kind: "refused", status: 403, exit: 4, text: "the token's tenant is not served here" },
  POLICY_REFUSED: { kind: "refused", status: 422, exit: 1, text: "the policy bundle is refused" },
  POLICY_CONFLICT: {
    kind: "refused",
    status: 409,
    exit: 1,
    text: "this revision's name was used for other files",
  },
  POLICY_UNKNOWN: { kind: "refused", status: 404, exit: 1, text: "no such policy revision is stored" },
  CAPABILITY_REFUSED: {
    kind: "refused",
    status: 409,
    exit: 4,
    text: "the right does not cover this use",
  },
  CAPABILITY_UNKNOWN: { kind: "refused", status: 404, exit: 1, text: "there is no such right" },
  APPROVAL_UNKNOWN: { kind: "refused", status: 404, exit: 1, text: "there is no such approval" },
  APPROVAL_OWN: {
    kind: "refused",
    status: 403,
    exit: 4,
    text: "nobody approves what was asked for in his own session; somebody else has to",
  },
  APPROVAL_EXPIRED: { kind: "refused", status: 409, exit: 1, text: "the approval's time is up" },
  APPROVAL_DECIDED: { kind: "refused", status: 409, exit: 1, text: "the approval was decided before" },
  APPROVAL_DIGEST: {
    kind: "refused",
    status: 409,
    exit: 1,
    text: "the plan is not the one that was shown; look at it again",
  },
  TAKEOVER_UNKNOWN: { kind: "refused", status: 404, exit: 1, text: "there is no such takeover item" },
  TAKEOVER_HELD: { kind: "refused", status: 409, exit: 1, text: "somebody else works on this item" },
  TAKEOVER_CLOSED: { kind: "refused", status: 409, exit: 1, text: "the item is closed already" },
  LETTER_UNKNOWN: { kind: "refused", status: 404, exit: 1, text: "there is no such letter" },
  GAP_UNKNOWN: { kind: "refused", status: 404, exit: 1, text: "there is no such stopped partition" },
  EMISSIONS_UNKNOWN: { kind: "refused", status: 404, exit: 1, text: "there are no such held events" },
  PUBLICATION_UNKNOWN: { kind: "refused", status: 404, exit: 1, text: "there is no such parked event" },
  DESK_UNREACHABLE: { kind: "transient", status: 503, exit: 3, text: "the desk does not answer" },
  COST_UNKNOWN: { kind: "refused", status: 404, exit: 1, text: "the ledger has no such cost" },
  COST_CORRECTED: {
    kind: "refused",
    status: 409,
    exit: 1,
    text: "a correction of this name with another content was recorded before",
  },
  INCIDENT_UNKNOWN: { kind: "refused", status: 404, exit: 1, text: "there is no such incident" },
  INCIDENT_LIFTED: { kind: "refused", status: 409, exit: 1, text: "the incident was lifted before" },
  BREAKER_UNKNOWN: { kind: "refused", status: 404, exit: 1, text: "there is no such trip of the breaker" },
  BREAKER_RESET: { kind: "refused", status: 409, exit: 1, text: "the trip was reset before" },
  COST_PERIOD: { kind: "refused", status: 409, exit: 1, text: "this month of the ledger cannot be closed" },
  CLIENT_REFUSED: {
    kind: "refused",
    status: 409,
    exit: 4,
    text: "this client cannot be made fail-closed",
  },
  OVERLOADED: { kind: "transient", status: 503, exit: 3, text: "too much work is waiting" },
  GATE_UNREACHABLE: { kind: "transient", status: 503, exit: 3, text: "the gate does not answer" },
  GATE_TIMEOUT: { kind: "transient", status: 503, exit: 3, text: "the decision's time budget ran out" },
  DATABASE_UNAVAILABLE: { kind: "transient", status: 503, exit: 3, text: "Postgres does not answer" },
  DATABASE_CONFLICT: { kind: "transient", status: 503, exit: 3, text: "a concurrent transaction won" },
  DATABASE_REJECTED: { kind: "poison", status: 500, exit: 1, text: "Postgres refused the data" },
  BROKER_UNAVAILABLE: { kind: "transient", status: 503, exit: 3, text: "Kafka does not answer" },
  BROKER_REJECTED: { kind: "poison", status: 500, exit: 1, text: "Kafka refused it" },
  COLLECTOR_UNAVAILABLE: { kind: "transient", status: 503, exit: 3, text: "the collector takes no spans" },
  COLLECTOR_REJECTED: { kind: "poison", status: 500, exit: 1, text: "the collector refuses the spans" },
  EFFECT_UNKNOWN: {
    kind: "unknown_effect",
    status: 502,
    exit: 1,
    text: "nobody knows whether the effect took place; ask for it, do not send it again",
  },
  TOPIC_MISSING: { kind: "transient", status: 503, exit: 3, text: "the topic does not exist" },
  REGISTRY_UNAVAILABLE: {
    kind: "transient",
    status: 503,
    exit: 3,
    text: "the schema registry does not answer",
  },
  SCHEMA_ID_UNKNOWN: {
    kind: "transient",
    status: 503,
    exit: 3,
    text: "the registry does not know the schema id",
  },
  SCHEMA_NOT_REGISTERED: {
    kind: "transient",
    status: 503,
    exit: 3,
    text: "the event type has no registered schema",
  },
  SCHEMA_REFUSED: {
    kind: "poison",
    status: 500,
    exit: 1,
    text: "this consumer must not read this schema version",
  },
  SCHEMA_INCOMPATIBLE: { kind: "fatal", status: 500, exit: 1, text: "the schema breaks compatibility" },
  NOT_AVRO: { kind: "poison", status: 400, exit: 1, text: "the record is not Confluent-framed Avro" },
  RECORD_UNDECODABLE: { kind: "poison", status: 400, exit: 1, text: "the record cannot be decoded" },
  RECORD_UNENCODABLE: { kind: "poison", status: 500, exit: 1, text: "the event does not fit its schema" },
  VALUE_OUT_OF_RANGE: { kind: "poison", status: 400, exit: 1, text: "a number is outside its bounds" },
  PROJECTION_FAILED: { kind: "poison", status: 500, exit: 1, text: "the processor's own code failed" },
  RECORD_TOO_LARGE: {
    kind: "poison",
    status: 413,
    exit: 1,
    text: "the record is larger than the broker takes",
  },
  GAP_FOUND: { kind: "fatal", status: 500, exit: 1, text: "records are gone that were never processed" },
  CONFIG_INVALID: { kind: "fatal", status: 500, exit: 2, text: "the configuration is not valid" },
  MIGRATION_CHANGED: { kind: "fatal", status: 500, exit: 1, text: "an applied migration was edited" },
  MIGRATION_FAILED: { kind: "fatal", status: 500, exit: 1, text: "a migration failed" },
  TOOL_MISSING: { kind: "fatal", status: 500, exit: 3, text: "a program that is needed is not installed" },
  STACK_FAILED: { kind: "fatal", status: 500, exit: 3, text: "a part of the local stack did not start" },
  KEY_UNAVAILABLE: { kind: "fatal", status: 500, exit: 3, text: "the key-encryption key cannot be read" },
  EVIDENCE_CORRUPT: {
    kind: "poison",
    status: 500,
    exit: 1,
    text: "the stored evidence does not match its digest",
  },
  AUDIT_BROKEN: { kind: "fatal", status: 500, exit: 1, text: "the audit trail does not verify" },
  SERVICE_NOT_ENDED: { kind: "fatal", status: 500, exit: 1, text: "a service did not end in time" },
  USAGE: { kind: "refused", status: 400, exit: 2, text: "the command was called wrongly" },
  INTERNAL: { kind: "fatal", status: 500, exit: 1, text: "an invariant is broken" },
} as const satisfies Record<string, FaultEntry>;

export type FaultCode = keyof typeof faultTable;

/**
 * The one error class of the rim. `code` says what, `kind` what happens to the work; `detail` names what to do.
 * Messages are lower case, without a full stop, and never hold a secret.
 */
export class Fault extends Error {
  readonly code: FaultCode;
  readonly kind: FaultKind;
  constructor(code: FaultCode, detail?: string, options?: { cause?: unknown }) {
    super(detail === undefined ? faultTable[code].text : `${faultTable[code].text}: ${detail}`, options);
    this.name = "Fault";
    this.code = code;
    this.kind = faultTable[code].kind;
  }
}
