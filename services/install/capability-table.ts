import type { Cell, EventCapability, RuntimeCapabilities } from "../platform/runtime-capabilities.ts";

const marks: Readonly<Record<string, string>> = { observed: "", documented: "°", unknown: "" };
/** `yes`, `no`, `if` …; a ° says that it is written somewhere and was not tried. */
const toWord = ({ value, evidence }: Cell<string>): string =>
  `${value === "unknown" ? "?" : value === "conditional" ? "if" : value === "no_action" ? "-" : value}${marks[evidence] ?? ""}`;

export const capabilityHeaders = [
  "EVENT",
  "MOMENT",
  "BLOCK",
  "MODIFY",
  "ASK",
  "CONTEXT",
  "RESULT",
  "AWAITED",
  "CRASH",
  "TIMEOUT",
  "GARBAGE",
] as const;

const toRow = (name: string, event: EventCapability): readonly string[] => [
  name,
  event.moment.replace("_effect", ""),
  ...[event.canBlock, event.canModify, event.canAsk, event.canAddContext, event.canReplaceResult].map(toWord),
  ...[event.awaited, event.onCrash, event.onTimeout, event.onGarbage].map(toWord),
];

/** A runtime's matrix as rows, event by event. */
export const toCapabilityRows = (capabilities: RuntimeCapabilities): readonly (readonly string[])[] =>
  Object.entries(capabilities.events).map(([name, event]) => toRow(name, event));

/** The conditions that stand behind the words, one a line. */
export const toCapabilityNotes = (capabilities: RuntimeCapabilities): readonly string[] =>
  Object.entries(capabilities.events).flatMap(([name, event]) =>
    Object.entries(event).flatMap(([key, cell]: [string, unknown]) => {
      const { note } = (typeof cell === "object" && cell !== null ? cell : {}) as { readonly note?: string };
      return note === undefined ? [] : [`${name}, ${key}: ${note}`];
    }),
  );
