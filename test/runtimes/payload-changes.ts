/** A payload of a client's hook, under the name of its event. */
export interface NamedPayload {
  readonly event: string;
  readonly payload: unknown;
}
/** What changed in one event's payloads, field by field; a path is a JSON pointer, `[]` any place of a list. */
export interface EventChange {
  readonly event: string;
  readonly newFields: readonly string[];
  /** In every payload of before, in none of now. */
  readonly missingFields: readonly string[];
  readonly changedTypes: readonly string[];
}
export interface PayloadChanges {
  /** Events that were never recorded before. */
  readonly newEvents: readonly string[];
  /** Recorded before, not seen now: most often because nothing here brings them about. */
  readonly unseenEvents: readonly string[];
  readonly changes: readonly EventChange[];
}

/** The name of a payload's event, in each of the forms that clients and our plugins use. */
export function eventNameOf(payload: unknown): string | null {
  if (typeof payload !== "object" || payload === null) return null;
  const fields = payload as Readonly<Record<string, unknown>>;
  const name = fields["hook_event_name"] ?? fields["hook"];
  return typeof name === "string" ? name : null;
}

const typeOf = (value: unknown): string =>
  value === null ? "null" : Array.isArray(value) ? "list" : typeof value;

/** Fields whose names are data: the tool's own input and output, and maps by id. What is below them is not compared. */
const openNames = new Set([
  ...["tool_input", "tool_response", "arguments", "args", "params", "result", "metadata"],
  ...["env", "headers", "input_schema", "schema", "properties", "inputs"],
]);

/** What a plugin of ours adds to a payload: no word of the client's. */
const ownNames = new Set(["/place", "/plugin"]);

/** Path → types, of everything in a payload. */
function fieldsOf(payload: unknown): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  const waiting: { readonly path: string; readonly value: unknown; readonly isOpen: boolean }[] = [
    { path: "", value: payload, isOpen: false },
  ];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { path, value, isOpen } = next;
    if (ownNames.has(path)) continue;
    found.set(path, (found.get(path) ?? new Set<string>()).add(typeOf(value)));
    if (isOpen || typeof value !== "object" || value === null) continue;
    if (Array.isArray(value))
      for (const one of value as unknown[]) waiting.push({ path: `${path}/[]`, value: one, isOpen: false });
    else
      for (const [key, one] of Object.entries(value))
        waiting.push({ path: `${path}/${key}`, value: one, isOpen: openNames.has(key) });
  }
  return found;
}

interface EventFields {
  readonly types: Map<string, Set<string>>;
  /** In each payload. */
  readonly always: Set<string>;
}
function byEvent(payloads: readonly NamedPayload[]): Map<string, EventFields> {
  const events = new Map<string, EventFields>();
  for (const { event, payload } of payloads) {
    const fields = fieldsOf(payload);
    const known = events.get(event);
    if (known === undefined) {
      events.set(event, { types: fields, always: new Set(fields.keys()) });
      continue;
    }
    for (const path of known.always) if (!fields.has(path)) known.always.delete(path);
    for (const [path, types] of fields)
      known.types.set(path, new Set([...(known.types.get(path) ?? []), ...types]));
  }
  return events;
}

/** Whether a path lies below one of the others: a new object is one finding, not one for each of its fields. */
const isBelow = (path: string, others: ReadonlySet<string>): boolean =>
  [...others].some((other) => path.startsWith(`${other}/`));

/** Compares payloads of a client's new version with those of the corpus. */
export function comparePayloads(
  corpus: readonly NamedPayload[],
  recorded: readonly NamedPayload[],
): PayloadChanges {
  const [before, now] = [byEvent(corpus), byEvent(recorded)];
  const changes: EventChange[] = [];
  for (const [event, { types }] of now) {
    const known = before.get(event);
    if (known === undefined) continue;
    const added = new Set([...types.keys()].filter((path) => !known.types.has(path)));
    const gone = new Set([...known.always].filter((path) => !types.has(path)));
    const changedTypes = [...types].flatMap(([path, seen]) => {
      const expected = known.types.get(path);
      if (expected === undefined) return [];
      const strange = [...seen].filter((type) => !expected.has(type));
      return strange.length === 0
        ? []
        : [`${path}: ${[...expected].sort().join(" or ")}, now ${strange.sort().join(" or ")}`];
    });
    const top = (paths: Set<string>): string[] => [...paths].filter((path) => !isBelow(path, paths)).sort();
    const change = {
      event,
      newFields: top(added),
      missingFields: top(gone),
      changedTypes: changedTypes.sort(),
    };
    if (change.newFields.length + change.missingFields.length + change.changedTypes.length > 0)
      changes.push(change);
  }
  return {
    newEvents: [...now.keys()].filter((event) => !before.has(event)).sort(),
    unseenEvents: [...before.keys()].filter((event) => !now.has(event)).sort(),
    changes: changes.sort((a, b) => a.event.localeCompare(b.event)),
  };
}

/** The changes as lines of a report. */
export function renderChanges({ newEvents, unseenEvents, changes }: PayloadChanges): readonly string[] {
  const list = (title: string, items: readonly string[]): string[] =>
    items.length === 0 ? [] : [`  ${title}:`, ...items.map((item) => `    ${item}`)];
  return [
    ...(newEvents.length === 0 ? [] : [`new events: ${newEvents.join(", ")}`]),
    ...changes.flatMap(({ event, newFields, missingFields, changedTypes }) => [
      event,
      ...list("new fields", newFields),
      ...list("missing fields", missingFields),
      ...list("changed types", changedTypes),
    ]),
    ...(newEvents.length + changes.length === 0 ? ["nothing changed in what was seen"] : []),
    ...(unseenEvents.length === 0 ? [] : [`not seen in these scenarios: ${unseenEvents.join(", ")}`]),
  ];
}
