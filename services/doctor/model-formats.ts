import type { ScriptedCall, ToldResult } from "../platform/runtime-room.ts";

type Fields = Readonly<Record<string, unknown>>;

/** A call with the id that the client and its hooks see. */
export interface IdentifiedCall extends ScriptedCall {
  readonly id: string;
}
/** What the model says in one turn: calls, or a text. */
export interface ModelReply {
  readonly id: string;
  readonly createdS: number;
  readonly calls: readonly IdentifiedCall[] | null;
  readonly text: string;
}
/** Server-sent events (name or null, data), or one JSON document. */
export type WireReply =
  | { readonly kind: "json"; readonly body: unknown }
  | { readonly kind: "events"; readonly events: readonly (readonly [string | null, unknown])[] };

/** One wire format of model providers: how a request is read, and how a reply is written. */
export interface ModelFormat {
  readonly suffix: string;
  readonly idPrefix: string;
  history(body: Fields): readonly { readonly role: string; readonly text: string }[];
  toldResults(body: Fields): readonly ToldResult[];
  write(body: Fields, reply: ModelReply): WireReply;
}

const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null;
const listOf = (value: unknown): readonly Fields[] =>
  (Array.isArray(value) ? (value as unknown[]) : []).filter(isFields);
const wordOf = (value: unknown): string => (typeof value === "string" ? value : "");
const textOf = (content: unknown): string =>
  typeof content === "string"
    ? content
    : listOf(content)
        .map((part) => wordOf(part["text"]))
        .join("\n");
const asText = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

const inputTokens = 100;
const outputTokens = 20;
const totalTokens = inputTokens + outputTokens;

const anthropicMessages: ModelFormat = {
  suffix: "/messages",
  idPrefix: "toolu_",
  history: (body) =>
    listOf(body["messages"]).map(({ role, content }) => ({ role: wordOf(role), text: textOf(content) })),
  toldResults: (body) =>
    listOf(body["messages"])
      .flatMap(({ content }) => listOf(content))
      .filter(({ type }) => type === "tool_result")
      .map(({ tool_use_id: id, content }) => ({ id: wordOf(id), text: textOf(content) })),
  write(body, reply) {
    const content = reply.calls?.map(({ id, name, input }) => ({ type: "tool_use", id, name, input })) ?? [
      { type: "text", text: reply.text },
    ];
    const stop = { stop_reason: reply.calls === null ? "end_turn" : "tool_use", stop_sequence: null };
    const message = {
      id: `msg_${reply.id}`,
      type: "message",
      role: "assistant",
      model: body["model"],
      usage: {
        input_tokens: inputTokens,
        output_tokens: outputTokens,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
      },
    };
    if (body["stream"] !== true) return { kind: "json", body: { ...message, content, ...stop } };
    const blocks = content.flatMap((block, index): (readonly [string, unknown])[] => {
      const [empty, delta] =
        "text" in block
          ? [
              { ...block, text: "" },
              { type: "text_delta", text: block.text },
            ]
          : [
              { ...block, input: {} },
              { type: "input_json_delta", partial_json: asText(block.input) },
            ];
      return [
        ["content_block_start", { type: "content_block_start", index, content_block: empty }],
        ["content_block_delta", { type: "content_block_delta", index, delta }],
        ["content_block_stop", { type: "content_block_stop", index }],
      ];
    });
    const started = { ...message, content: [], stop_reason: null, stop_sequence: null };
    return {
      kind: "events",
      events: [
        ["message_start", { type: "message_start", message: started }],
        ...blocks,
        ["message_delta", { type: "message_delta", delta: stop, usage: { output_tokens: outputTokens } }],
        ["message_stop", { type: "message_stop" }],
      ],
    };
  },
};

const responseItems = (body: Fields): readonly Fields[] =>
  typeof body["input"] === "string"
    ? [{ role: "user", content: body["input"] }]
    : listOf([body["input"]].flat());

const openaiResponses: ModelFormat = {
  suffix: "/responses",
  idPrefix: "call_",
  history: (body) =>
    responseItems(body).map((item) =>
      /_call$|^reasoning$/.test(wordOf(item["type"]))
        ? { role: "assistant", text: "" }
        : { role: typeof item["role"] === "string" ? item["role"] : "tool", text: textOf(item["content"]) },
    ),
  toldResults: (body) =>
    responseItems(body)
      .filter((item) => /_call_output$/.test(wordOf(item["type"])))
      .map(({ call_id: id, output }) => ({
        id: wordOf(id),
        text: Array.isArray(output) ? textOf(output) : asText(output),
      })),
  write(body, reply) {
    const status = "completed";
    const output = reply.calls?.map(({ id, name, namespace, input }, index) => {
      const call = { id: `item_${reply.id}_${String(index)}`, call_id: id, name, status };
      return typeof input === "string"
        ? { type: "custom_tool_call", ...call, input }
        : {
            type: "function_call",
            ...call,
            ...(namespace === undefined ? {} : { namespace }),
            arguments: JSON.stringify(input),
          };
    }) ?? [
      {
        type: "message",
        id: `msg_${reply.id}`,
        role: "assistant",
        status,
        content: [{ type: "output_text", text: reply.text, annotations: [] }],
      },
    ];
    const response = {
      id: `resp_${reply.id}`,
      object: "response",
      created_at: reply.createdS,
      model: body["model"],
      status,
      output,
      parallel_tool_calls: true,
      tool_choice: "auto",
      tools: [],
      usage: {
        input_tokens: inputTokens,
        input_tokens_details: { cached_tokens: 0 },
        output_tokens: outputTokens,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: totalTokens,
      },
    };
    if (body["stream"] !== true) return { kind: "json", body: response };
    const parts = output.flatMap((item: Fields, outputIndex): Fields[] => {
      const full = wordOf(item["arguments"] ?? item["input"] ?? reply.text);
      const [event, key, at] =
        item["type"] === "function_call"
          ? ["function_call_arguments", "arguments", {}]
          : item["type"] === "custom_tool_call"
            ? ["custom_tool_call_input", "input", {}]
            : ["output_text", "text", { content_index: 0, logprobs: [] }];
      const where = { output_index: outputIndex, item_id: item["id"], ...at };
      const empty = key === "text" ? { content: [] } : { [key]: "" };
      return [
        {
          type: "response.output_item.added",
          output_index: outputIndex,
          item: { ...item, ...empty, status: "in_progress" },
        },
        { type: `response.${event}.delta`, ...where, delta: full },
        { type: `response.${event}.done`, ...where, [key]: full },
        { type: "response.output_item.done", output_index: outputIndex, item },
      ];
    });
    const all: Fields[] = [
      { type: "response.created", response: { ...response, status: "in_progress", output: [] } },
      ...parts,
      { type: "response.completed", response },
    ];
    return {
      kind: "events",
      events: all.map((event, number) => [wordOf(event["type"]), { ...event, sequence_number: number }]),
    };
  },
};

const openaiChat: ModelFormat = {
  suffix: "/chat/completions",
  idPrefix: "call_",
  history: (body) =>
    listOf(body["messages"]).map(({ role, content }) => ({ role: wordOf(role), text: textOf(content) })),
  toldResults: (body) =>
    listOf(body["messages"])
      .filter(({ role }) => role === "tool")
      .map(({ tool_call_id: id, content }) => ({ id: wordOf(id), text: textOf(content) })),
  write(body, reply) {
    const calls = reply.calls?.map(({ id, name, input }) => ({
      id,
      type: "function",
      function: { name, arguments: asText(input) },
    }));
    const finish = calls === undefined ? "stop" : "tool_calls";
    const base = { id: `chatcmpl-${reply.id}`, created: reply.createdS, model: body["model"] };
    const usage = {
      prompt_tokens: inputTokens,
      completion_tokens: outputTokens,
      total_tokens: totalTokens,
    };
    if (body["stream"] !== true) {
      const content = calls === undefined ? reply.text : null;
      const message = { role: "assistant", content, ...(calls === undefined ? {} : { tool_calls: calls }) };
      const choices = [{ index: 0, message, finish_reason: finish }];
      return { kind: "json", body: { ...base, object: "chat.completion", choices, usage } };
    }
    const chunk = (choices: readonly unknown[], extra = {}): readonly [null, unknown] => [
      null,
      { ...base, object: "chat.completion.chunk", choices, ...extra },
    ];
    const delta = (value: object, reason: string | null = null): readonly [null, unknown] =>
      chunk([{ index: 0, delta: value, finish_reason: reason }]);
    const deltas = calls?.map((call, index) => delta({ tool_calls: [{ index, ...call }] })) ?? [
      delta({ content: reply.text }),
    ];
    return {
      kind: "events",
      events: [
        delta({ role: "assistant", content: "" }),
        ...deltas,
        delta({}, finish),
        chunk([], { usage }),
        [null, "[DONE]"],
      ],
    };
  },
};

/** Anthropic Messages, OpenAI Responses, OpenAI Chat Completions. */
export const modelFormats: readonly ModelFormat[] = [anthropicMessages, openaiResponses, openaiChat];
