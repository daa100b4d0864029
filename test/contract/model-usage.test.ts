import { readFileSync, readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Adapter } from "../../schemas/adapter.ts";
import { claudeCode } from "../../services/adapters/claude-code/claude-code.ts";
import { codexAppServer } from "../../services/adapters/codex/app-server/app-server.ts";
import { codex } from "../../services/adapters/codex/codex.ts";
import { hermes } from "../../services/adapters/hermes/hermes.ts";
import { maf } from "../../services/adapters/maf/maf.ts";
import { openclaw } from "../../services/adapters/openclaw/openclaw.ts";
import { opencode } from "../../services/adapters/opencode/opencode.ts";
import { replayRecording } from "../harness/app-server-recordings.ts";
import { projectDir } from "../harness/stack.ts";

/**
 * One convention for all: `input_tokens` is the whole input, what was read from a cache and written to one included;
 * `output_tokens` is the whole output, reasoning included. The same model call in each runtime's own counting: 50 tokens fresh,
 * 40 read from the cache, 10 written to it; 30 out, of which 5 were reasoning.
 */

type Payload = Record<string, unknown>;
const corpus = `${projectDir}/test/corpus/hooks`;
const read = (path: string): Payload => JSON.parse(readFileSync(`${corpus}/${path}`, "utf8")) as Payload;
/** The payload with the object at a JSON pointer laid over. */
function withAt(payload: Payload, pointer: string, over: Payload): Payload {
  const [key = "", ...rest] = pointer.slice(1).split("/");
  const inner = (payload[key] ?? {}) as Payload;
  return {
    ...payload,
    [key]: rest.length === 0 ? { ...inner, ...over } : withAt(inner, `/${rest.join("/")}`, over),
  };
}
const usageOf = (adapter: Adapter, payload: unknown): Payload[] => {
  const translation = adapter.translate(payload, 1);
  if (translation.kind === "unrecognized")
    throw new Error(JSON.stringify(translation.draft.redacted_summary));
  return translation.observations
    .filter(({ draft }) => draft.type === "agent.model.completed")
    .map(({ draft }) => draft.redacted_summary as unknown as Payload);
};
const whole = {
  input_tokens: 100n,
  cached_input_tokens: 40n,
  cache_write_tokens: 10n,
  output_tokens: 30n,
};

const counted: readonly [string, Adapter, string, string, Payload, bigint | null][] = [
  [
    "Codex hooks",
    codex,
    "codex/PostModelRequest.json",
    "/token_usage",
    {
      input_tokens: 100,
      cached_input_tokens: 40,
      cache_write_input_tokens: 10,
      output_tokens: 30,
      reasoning_output_tokens: 5,
    },
    5n,
  ],
  [
    "Hermes",
    hermes,
    "hermes/post_api_request.json",
    "/payload/usage",
    {
      input_tokens: 50,
      prompt_tokens: 100,
      cache_read_tokens: 40,
      cache_write_tokens: 10,
      output_tokens: 30,
      reasoning_tokens: 5,
    },
    5n,
  ],
  [
    "OpenCode",
    opencode,
    "opencode/event.message.updated.assistant.json",
    "/input/event/properties/info/tokens",
    { total: 130, input: 50, output: 25, reasoning: 5, cache: { read: 40, write: 10 } },
    5n,
  ],
  [
    // It tells of no reasoning: that is in its output.
    "OpenClaw",
    openclaw,
    "openclaw/model_call_ended.json",
    "/message/usage",
    { input: 50, output: 30, cacheRead: 40, cacheWrite: 10, totalTokens: 130 },
    null,
  ],
  [
    "MAF",
    maf,
    "maf/chat.after.json",
    "/payload/usage_details",
    {
      input_token_count: 100,
      cache_read_input_token_count: 40,
      cache_creation_input_token_count: 10,
      output_token_count: 30,
      reasoning_output_token_count: 5,
    },
    5n,
  ],
];

describe("what a model call used", () => {
  it.each(counted)(
    "%s: says it in one convention, whatever its own is",
    (_, adapter, file, at, usage, reasoning) => {
      expect(usageOf(adapter, withAt(read(file), at, usage))).toEqual([
        expect.objectContaining({ ...whole, reasoning_tokens: reasoning }),
      ]);
    },
  );

  it("Codex App Server: says it in that convention too", () => {
    const told = replayRecording("a_cmd_accept").find(
      ({ payload }) => payload["method"] === "thread/tokenUsage/updated",
    );
    const last = {
      totalTokens: 130,
      inputTokens: 100,
      cachedInputTokens: 40,
      cacheWriteInputTokens: 10,
      outputTokens: 30,
      reasoningOutputTokens: 5,
    };
    const payload = withAt({ ...told?.payload }, "/params/tokenUsage/last", last);
    expect(usageOf(codexAppServer, payload)).toEqual([
      expect.objectContaining({ ...whole, reasoning_tokens: 5n }),
    ]);
  });

  it("Claude Code tells of no model call in any recorded hook", () => {
    const files = readdirSync(`${corpus}/claude-code`).filter((name) => /^[A-Z].*\.json$/.test(name));
    expect(files.length).toBeGreaterThan(30);
    for (const file of files) expect(usageOf(claudeCode, read(`claude-code/${file}`)), file).toEqual([]);
  });
});
