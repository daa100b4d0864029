import { Fault } from "../../schemas/faults.ts";
import { isJsonObject } from "./payload-fields.ts";

/** A handler as clients with `{ hooks: { Event: [{ matcher?, hooks: [handler] }] } }` write it. */
export type HookHandler = Readonly<Record<string, unknown>>;
type Settings = Readonly<Record<string, unknown>>;

const indentOf = (text: string): string => /\n([ \t]+)"/.exec(text)?.[1] ?? "  ";

/** The settings of a text; an absent or empty file is `{}`. Throws CONFIG_INVALID for what is no JSON object. */
export function parseSettings(text: string | null, path: string): Settings {
  if (text === null || text.trim() === "") return {};
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw new Fault("CONFIG_INVALID", `\`${path}\` is not JSON, so its client ignores it; mend it first`, {
      cause: error,
    });
  }
  if (isJsonObject(parsed)) return parsed;
  throw new Fault("CONFIG_INVALID", `\`${path}\` holds no JSON object; mend it first`);
}

const print = (settings: Settings, before: string | null): string =>
  `${JSON.stringify(settings, null, indentOf(before ?? ""))}\n`;

function eventsOf(settings: Settings, path: string): Readonly<Record<string, unknown>> {
  const hooks = settings["hooks"];
  if (hooks === undefined) return {};
  if (isJsonObject(hooks)) return hooks;
  throw new Fault(
    "CONFIG_INVALID",
    `\`hooks\` of \`${path}\` is no object, so its client ignores it; mend it first`,
  );
}

/** Every handler of the settings with its event; what has another form is left out. */
export function listHandlers(
  settings: Settings,
): readonly { readonly event: string; readonly handler: HookHandler }[] {
  const hooks = settings["hooks"];
  if (!isJsonObject(hooks)) return [];
  return Object.entries(hooks).flatMap(([event, groups]) =>
    (Array.isArray(groups) ? (groups as unknown[]) : []).flatMap((group) =>
      isJsonObject(group) && Array.isArray(group["hooks"])
        ? (group["hooks"] as unknown[]).filter(isJsonObject).map((handler) => ({ event, handler }))
        : [],
    ),
  );
}

/** Without the handlers that are ours; groups, events and `hooks` that this empties go too. */
function withoutOurs(settings: Settings, path: string, isOurs: (handler: HookHandler) => boolean): Settings {
  if (!listHandlers(settings).some(({ handler }) => isOurs(handler))) {
    eventsOf(settings, path);
    return settings;
  }
  const events = Object.entries(eventsOf(settings, path)).flatMap(([event, groups]): [string, unknown][] => {
    if (!Array.isArray(groups)) return [[event, groups]];
    const kept = (groups as unknown[]).flatMap((group): unknown[] => {
      if (!isJsonObject(group) || !Array.isArray(group["hooks"])) return [group];
      const all = group["hooks"] as unknown[];
      const others = all.filter((one) => !isJsonObject(one) || !isOurs(one));
      if (others.length === all.length) return [group];
      return others.length === 0 ? [] : [{ ...group, hooks: others }];
    });
    return kept.length === 0 && groups.length > 0 ? [] : [[event, kept]];
  });
  const { hooks: _hooks, ...rest } = settings;
  return events.length === 0 ? rest : { ...settings, hooks: Object.fromEntries(events) };
}

export interface HookSettingsEdit {
  readonly path: string;
  readonly isOurs: (handler: HookHandler) => boolean;
  readonly handlers: Readonly<Record<string, HookHandler>>;
}

/** The text with our handlers after everybody else's, once each. */
export function toSettingsWithHooks(
  before: string | null,
  { path, isOurs, handlers }: HookSettingsEdit,
): string {
  const settings = withoutOurs(parseSettings(before, path), path, isOurs);
  const events: Record<string, unknown> = { ...eventsOf(settings, path) };
  for (const [event, handler] of Object.entries(handlers)) {
    const groups = events[event] ?? [];
    if (!Array.isArray(groups)) {
      throw new Fault("CONFIG_INVALID", `\`hooks.${event}\` of \`${path}\` is no list; mend it first`);
    }
    events[event] = [...(groups as unknown[]), { hooks: [handler] }];
  }
  return print({ ...settings, hooks: events }, before);
}

/** The text without our handlers; null when nothing else is in it. */
export function toSettingsWithoutHooks(
  text: string,
  { path, isOurs }: Omit<HookSettingsEdit, "handlers">,
): string | null {
  const parsed = parseSettings(text, path);
  const settings = withoutOurs(parsed, path, isOurs);
  if (settings === parsed) return text;
  return Object.keys(settings).length === 0 ? null : print(settings, text);
}
