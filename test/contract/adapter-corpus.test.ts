import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Adapter, Anchor, Observation, RuntimeReply, Translation } from "../../schemas/adapter.ts";
import type { GateAnswer } from "../../schemas/gate.ts";
import { gateRequestSchema } from "../../schemas/gate.ts";
import { capabilities as claudeCodeCapabilities } from "../../services/adapters/claude-code/capabilities.ts";
import { claudeCode } from "../../services/adapters/claude-code/claude-code.ts";
import { rules as claudeCodeRules } from "../../services/adapters/claude-code/events.ts";
import { capabilities as codexCapabilities } from "../../services/adapters/codex/capabilities.ts";
import { codex } from "../../services/adapters/codex/codex.ts";
import { rules as codexRules } from "../../services/adapters/codex/events.ts";
import { capabilities as hermesCapabilities } from "../../services/adapters/hermes/capabilities.ts";
import { events as hermesEvents } from "../../services/adapters/hermes/events.ts";
import { hermes } from "../../services/adapters/hermes/hermes.ts";
import { capabilities as mafCapabilities } from "../../services/adapters/maf/capabilities.ts";
import { events as mafEvents } from "../../services/adapters/maf/events.ts";
import { maf } from "../../services/adapters/maf/maf.ts";
import { capabilities as openclawCapabilities } from "../../services/adapters/openclaw/capabilities.ts";
import { events as openclawEvents } from "../../services/adapters/openclaw/events.ts";
import { openclaw } from "../../services/adapters/openclaw/openclaw.ts";
import { capabilities as opencodeCapabilities } from "../../services/adapters/opencode/capabilities.ts";
import { events as opencodeEvents } from "../../services/adapters/opencode/events.ts";
import { opencode } from "../../services/adapters/opencode/opencode.ts";
import type { RuntimeCapabilities } from "../../services/platform/runtime-capabilities.ts";

const corpus = fileURLToPath(new URL("../corpus", import.meta.url));
/** None where there is no such folder: not every runtime has recordings of whole sessions. */
const jsonFiles = (folder: string, ending = ".json"): string[] =>
  (existsSync(join(corpus, folder)) ? readdirSync(join(corpus, folder)) : [])
    .filter((name) => name.endsWith(ending))
    .sort();
const textOf = (path: string): string => readFileSync(join(corpus, path), "utf8");
const jsonOf = (path: string): unknown => JSON.parse(textOf(path)) as unknown;

interface ExpectedObservation {
  readonly type: string;
  readonly ids: Readonly<Record<string, string>>;
  /** Scopes, nearest first; their ids are those of `ids`. */
  readonly causes: readonly string[];
  readonly anchor?: string;
  readonly tool?: string;
  readonly summary: unknown;
}
interface Expected {
  readonly sameAs?: string;
  /** Where in the recording the payload is, as a JSON text. */
  readonly payloadAt?: string;
  readonly kind: string;
  readonly phase: string;
  readonly gate?: unknown;
  readonly observations: readonly ExpectedObservation[];
  readonly dropped: readonly string[];
}
interface ExpectedSession {
  readonly session: string;
  readonly events: readonly Readonly<Record<string, unknown>>[];
}

const idOf: Readonly<Record<Anchor["scope"], string>> = {
  session: "session",
  turn: "turn",
  call: "call",
  subagent: "agent",
};
const present = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value != null));
const toIds = ({ draft }: Observation): Record<string, unknown> =>
  present({
    session: draft.execution?.session_id,
    turn: draft.execution?.turn_id,
    call: draft.execution?.tool_call_id,
    agent: draft.agent_id,
  });
/** A scope's name when its id is the payload's own, else the whole anchor, which no expectation names. */
const toScope = (anchor: Anchor, ids: Record<string, unknown>): string =>
  ids[idOf[anchor.scope]] === anchor.id ? anchor.scope : `${anchor.scope}:${anchor.id}`;
const toPlain = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (_, item: unknown) => (typeof item === "bigint" ? Number(item) : item)),
  ) as unknown;

const toComparable = (translation: Translation): unknown => {
  if (translation.kind === "unrecognized")
    return { kind: translation.kind, draft: toPlain(translation.draft) };
  const request = translation.kind === "gated" ? translation.request : undefined;
  return {
    kind: translation.kind,
    phase: translation.call.phase,
    ...(request === undefined
      ? {}
      : {
          gate: present({
            tool: request.tool,
            alias: request.tool_alias,
            phase: request.phase,
            call: request.tool_call_id,
            working_directory: request.working_directory,
            permission_mode: request.permission_mode,
            user_dialog: request.user_dialog,
          }),
        }),
    observations: translation.observations.map((one) => {
      const ids = toIds(one);
      return {
        type: one.draft.type,
        ids,
        causes: one.causes.map((cause) => toScope(cause, ids)),
        ...(one.anchor === undefined ? {} : { anchor: toScope(one.anchor, ids) }),
        ...(one.draft.subject?.tool == null ? {} : { tool: one.draft.subject.tool }),
        summary: toPlain(one.draft.redacted_summary),
      };
    }),
    dropped: [...translation.dropped].sort(),
    unknownFields: translation.unknownFields,
  };
};

/** The events of an ordered session, each with the row of its cause, as the gate would look it up. */
const toRows = (adapter: Adapter, lines: readonly string[]): unknown[] => {
  const rows: unknown[] = [];
  const anchors = new Map<string, number>();
  const keyOf = (anchor: Anchor): string => `${anchor.scope}/${anchor.id}`;
  lines.forEach((text, line) => {
    const translation = adapter.translate(JSON.parse(text), Buffer.byteLength(text));
    if (translation.kind === "unrecognized") throw new Error(`line ${String(line)} is not recognized`);
    for (const one of translation.observations) {
      const known = one.causes.map((cause) => anchors.get(keyOf(cause))).find((row) => row !== undefined);
      const { session, ...ids } = toIds(one);
      rows.push({ session, line, type: one.draft.type, cause: known ?? null, ...ids });
      if (one.anchor !== undefined) anchors.set(keyOf(one.anchor), rows.length - 1);
    }
  });
  return rows;
};

const gateAnswer: GateAnswer = {
  decision: "deny",
  decision_id: "dec_1",
  reason_code: "STATIC_DENY",
  message: "no",
  policy_revision: "policy@2026-11-30.1",
  plan_digest: null,
  correlation_id: "cor_1",
  constraints: {},
  matched_rules: [],
  labels: [],
  repeated: false,
};
interface ExpectedReply {
  readonly given: {
    readonly payload?: string;
    readonly answer?: Partial<GateAnswer> | null;
    readonly event?: string | null;
    readonly reason?: string;
  };
  readonly reply: unknown;
}

interface Runtime {
  readonly adapter: Adapter;
  readonly capabilities: RuntimeCapabilities;
  readonly events: readonly string[];
  /** Where payloads name their event. */
  readonly eventField: string;
  /** Recordings in front of a side effect begin with it. */
  readonly gated: string;
  /** Fields that such a payload cannot be judged without, by their place in it. */
  readonly bearing: readonly string[];
  /** The first that is there. */
  readonly inputAt: readonly string[];
  /** Whether a reply stops the tool. */
  readonly isNo: (reply: RuntimeReply) => boolean;
}

/** Command hooks of one family. */
const commandHooks = {
  eventField: "hook_event_name",
  gated: "PreToolUse",
  bearing: ["session_id", "tool_name", "tool_input", "tool_use_id", "cwd"],
  inputAt: ["tool_input"],
  isNo: ({ exitCode }: RuntimeReply) => exitCode === 2,
};
/** Plugins of ours: only an explicit yes is one. */
const pluginHooks = {
  eventField: "hook",
  isNo: ({ body }: RuntimeReply) => (body as { decision?: unknown }).decision === "deny",
};
const runtimes: readonly Runtime[] = [
  {
    adapter: claudeCode,
    capabilities: claudeCodeCapabilities,
    events: [...claudeCodeRules.keys()],
    ...commandHooks,
  },
  { adapter: codex, capabilities: codexCapabilities, events: [...codexRules.keys()], ...commandHooks },
  {
    adapter: opencode,
    capabilities: opencodeCapabilities,
    events: [...opencodeEvents.keys()],
    ...pluginHooks,
    gated: "tool.execute.before",
    bearing: ["input/sessionID", "input/tool", "input/callID", "output/args", "place/directory"],
    inputAt: ["output/args"],
  },
  {
    adapter: openclaw,
    capabilities: openclawCapabilities,
    events: [...openclawEvents.keys()],
    ...pluginHooks,
    gated: "before_tool_call",
    bearing: ["ctx/sessionId", "event/toolName", "event/toolCallId", "event/params", "place/directory"],
    inputAt: ["event/params"],
  },
  {
    adapter: hermes,
    capabilities: hermesCapabilities,
    events: [...hermesEvents.keys()],
    ...pluginHooks,
    gated: "pre_tool_call",
    bearing: ["place/session", "place/call", "payload/tool_name", "payload/args", "place/directory"],
    inputAt: ["payload/args", "tool_input"],
  },
  {
    adapter: maf,
    capabilities: mafCapabilities,
    events: [...mafEvents.keys()],
    ...pluginHooks,
    gated: "function.before",
    bearing: ["place/session", "place/call", "place/tool_name", "payload/arguments", "place/directory"],
    inputAt: ["payload/arguments", "payload/tool_call/args"],
  },
];

type Payload = Readonly<Record<string, unknown>>;
/** The value at a place such as `input/callID`. */
const valueAt = (payload: Payload, place: string): unknown =>
  place.split("/").reduce<unknown>((value, key) => (value as Payload | undefined)?.[key], payload);
/** The payload with another value there; undefined takes the field away. */
const withAt = (payload: Payload, place: string, value: unknown): Payload => {
  const [key = "", ...rest] = place.split("/");
  if (rest.length > 0)
    return { ...payload, [key]: withAt((payload[key] ?? {}) as Payload, rest.join("/"), value) };
  const { [key]: _, ...without } = payload;
  return value === undefined ? without : { ...without, [key]: value };
};
/** Every field of a payload with the fields of its containers, three deep. */
const placesOf = (payload: Payload, depth = 3): string[] =>
  Object.entries(payload).flatMap(([key, value]) => [
    key,
    ...(depth > 1 && typeof value === "object" && value !== null && !Array.isArray(value)
      ? placesOf(value as Payload, depth - 1).map((inner) => `${key}/${inner}`)
      : []),
  ]);

describe.each(runtimes)("recorded hooks of $adapter.runtime", (runtime) => {
  const { adapter, capabilities, events, eventField, inputAt } = runtime;
  const folder = `hooks/${adapter.runtime}`;
  const expectationOf = (name: string): Expected => {
    const expected = jsonOf(`${folder}/expected/${name}`) as Expected;
    return expected.sameAs === undefined ? expected : expectationOf(expected.sameAs);
  };
  const payloadOf = (name: string): unknown => {
    const recording = jsonOf(`${folder}/${name}`);
    return expectationOf(name).payloadAt === "/0/body"
      ? (JSON.parse((recording as { body: string }[])[0]?.body ?? "null") as unknown)
      : recording;
  };
  const translate = (payload: unknown): Translation =>
    adapter.translate(payload, Buffer.byteLength(JSON.stringify(payload)));

  it("have an expectation each, and no expectation without a recording", () => {
    expect(jsonFiles(`${folder}/expected`)).toEqual(jsonFiles(folder));
    expect(jsonFiles(`${folder}/expected/sessions`).map((name) => name.replace(".json", ".jsonl"))).toEqual(
      jsonFiles(`${folder}/sessions`, ".jsonl"),
    );
  });

  it("share an expectation only where the bytes are the same", () => {
    for (const name of jsonFiles(`${folder}/expected`)) {
      const { sameAs } = jsonOf(`${folder}/expected/${name}`) as Expected;
      if (sameAs !== undefined) expect(textOf(`${folder}/${name}`), name).toBe(textOf(`${folder}/${sameAs}`));
    }
  });

  it.each(jsonFiles(folder))("%s means what was written down by hand", (name) => {
    const { payloadAt: _, ...expected } = expectationOf(name);
    expect(toComparable(translate(payloadOf(name)))).toEqual({ unknownFields: [], ...expected });
  });

  it.each(jsonFiles(folder))("%s: the gate takes the question, with the tool's input unchanged", (name) => {
    const payload = payloadOf(name);
    const translation = translate(payload);
    if (translation.kind !== "gated") return;
    expect(gateRequestSchema.parse(translation.request)).toEqual(translation.request);
    const inputs = inputAt.map((place) => valueAt(payload as Payload, place));
    expect(translation.request.input).toBe(inputs.find((input) => input !== undefined));
  });

  it.each(jsonFiles(`${folder}/sessions`, ".jsonl"))(
    "%s: each event names the event that caused it",
    (name) => {
      const { session, events } = jsonOf(
        `${folder}/expected/sessions/${name.replace(".jsonl", ".json")}`,
      ) as ExpectedSession;
      const lines = textOf(`${folder}/sessions/${name}`).trim().split("\n");
      expect(toRows(adapter, lines)).toEqual(events.map((event) => ({ session, ...event })));
    },
  );

  it.each(jsonFiles(`replies/${adapter.runtime}`))("reply %s is the form that the client honours", (name) => {
    const { given, reply } = jsonOf(`replies/${adapter.runtime}/${name}`) as ExpectedReply;
    const made =
      given.payload === undefined
        ? adapter.toRefusal(given.event ?? null, given.reason ?? "")
        : adapter.toReply(
            translate(payloadOf(given.payload)),
            given.answer == null ? null : { ...gateAnswer, ...given.answer },
          );
    expect(made).toEqual(reply);
  });

  it("account for every field of every recorded payload, wherever a strange one is put", () => {
    for (const name of jsonFiles(folder)) {
      const payload = payloadOf(name) as Record<string, unknown>;
      const strange = translate({ ...payload, never_seen_before: 1 });
      expect(strange.kind, name).toBe(translate(payload).kind);
      expect(strange.kind === "unrecognized" ? [] : strange.unknownFields, name).toEqual([
        "/never_seen_before",
      ]);
    }
  });

  it("refuse a call when any field that bears it is gone or of another type", () => {
    for (const name of jsonFiles(folder).filter((file) => file.startsWith(runtime.gated))) {
      const payload = payloadOf(name) as Payload;
      for (const field of runtime.bearing) {
        for (const [value, problem] of [
          [undefined, "missing_field"],
          [7, "wrong_type"],
          [null, "wrong_type"],
          [["x"], "wrong_type"],
        ] as const) {
          const translation = translate(withAt(payload, field, value));
          expect(translation.kind, `${name} ${field}`).toBe("unrecognized");
          if (translation.kind !== "unrecognized") continue;
          expect(translation.draft.redacted_summary).toMatchObject({
            problem,
            field: `/${field}`,
            gating: true,
          });
          expect(runtime.isNo(adapter.toReply(translation, null))).toBe(true);
        }
      }
    }
  });

  it("never throw, whatever one field of a recorded payload becomes", () => {
    const payloads = jsonFiles(folder).map(payloadOf) as Record<string, unknown>[];
    const strange = fc.oneof(
      fc.jsonValue({ maxDepth: 4 }),
      fc.string({ unit: "binary" }),
      fc.constantFrom("\uD800", "\0", "", "x".repeat(100_000), Number.POSITIVE_INFINITY, -1, 1e300, 2 ** 53),
      fc.constant(JSON.parse('{"__proto__":{"polluted":true},"constructor":1}') as unknown),
    );
    fc.assert(
      fc.property(fc.constantFrom(...payloads), fc.nat(), strange, (payload, at, value) => {
        const places = [...placesOf(payload), "agent_id", "__proto__"];
        const place = places[at % places.length] ?? "";
        const mutated =
          place === "__proto__"
            ? (Object.fromEntries([...Object.entries(payload), [place, value]]) as unknown)
            : withAt(payload, place, value);
        const translation = adapter.translate(mutated, 10);
        if (translation.kind === "gated")
          expect(gateRequestSchema.safeParse(translation.request).success).toBe(true);
        expect(adapter.toReply(translation, null).status).toBe(200);
        expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
      }),
      { numRuns: 1500 },
    );
  });

  it("are described in the capability matrix, event by event", () => {
    expect(Object.keys(capabilities.events).sort()).toEqual([...events].sort());
    expect(capabilities.runtime).toBe(adapter.runtime);
  });

  it("have stable ids in the matrix that their payloads really carry", () => {
    for (const name of jsonFiles(folder)) {
      const payload = payloadOf(name) as Record<string, string>;
      const ids = capabilities.events[payload[eventField] ?? ""]?.stableIds ?? [];
      // Absent before a session's first prompt, and outside child agents.
      const optional = ["prompt_id", "agent_id", "place/turn"];
      for (const id of ids)
        if (!optional.includes(id)) expect(valueAt(payload, id), `${name} ${id}`).toBeTypeOf("string");
    }
  });
});
