import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";

/** A tool that the made-up model calls; an input that is a text is free-form. */
export interface ScriptedCall {
  readonly name: string;
  readonly namespace?: string;
  readonly input: unknown;
}
export interface ScriptedModel {
  readonly url: string;
  /** What the model was told of its calls, as one text. */
  told(): string;
  close(): void;
}

interface Body {
  readonly model: string;
  readonly input: readonly { readonly type?: string; readonly role?: string; readonly output?: unknown }[];
  readonly tools?: readonly unknown[];
}
let runs = 0;

/** A model on loopback that speaks OpenAI's Responses: each turn makes the next calls of its script, and then says `done`. */
export const startScriptedModel = async (
  script: readonly (readonly ScriptedCall[])[],
): Promise<ScriptedModel> => {
  const run = String((runs += 1));
  const outputs: string[] = [];
  const toItems = (body: Body): readonly object[] => {
    // A request without tools is an errand of the client's own. A turn is a run of calls that have their results.
    const kinds = body.input.map(({ type = "" }) => (/_call$/.test(type) ? "call" : "other"));
    const turn = kinds.filter((kind, at) => kind === "call" && kinds[at - 1] !== "call").length;
    const calls = body.tools?.length ? script[turn] : undefined;
    return calls === undefined
      ? [
          {
            type: "message",
            id: `msg_${run}_${String(turn)}`,
            role: "assistant",
            status: "completed",
            content: [{ type: "output_text", text: "done", annotations: [] }],
          },
        ]
      : calls.map(({ name, namespace, input }, at) => {
          const id = `${run}_${String(turn)}_${String(at)}`;
          const call = { id: `item_${id}`, call_id: `call_${id}`, name, status: "completed" };
          return typeof input === "string"
            ? { type: "custom_tool_call", ...call, input }
            : {
                type: "function_call",
                ...call,
                ...(namespace === undefined ? {} : { namespace }),
                arguments: JSON.stringify(input),
              };
        });
  };
  const server = createServer((request, response) => {
    void buffer(request).then((bytes) => {
      if (request.url?.endsWith("/responses") !== true) {
        response.writeHead(404, { "content-type": "application/json" }).end("{}");
        return;
      }
      const body = JSON.parse(bytes.toString("utf8")) as Body;
      for (const item of body.input) if (item.output !== undefined) outputs.push(JSON.stringify(item.output));
      const output = toItems(body);
      const whole = {
        id: `resp_${run}`,
        object: "response",
        created_at: 0,
        model: body.model,
        status: "completed",
        output,
        usage: {
          input_tokens: 100,
          input_tokens_details: { cached_tokens: 0 },
          output_tokens: 20,
          output_tokens_details: { reasoning_tokens: 0 },
          total_tokens: 120,
        },
      };
      const events: readonly { readonly type: string }[] = [
        { type: "response.created", ...{ response: { ...whole, status: "in_progress", output: [] } } },
        ...output.flatMap((item, index) => [
          { type: "response.output_item.added", output_index: index, item },
          { type: "response.output_item.done", output_index: index, item },
        ]),
        { type: "response.completed", ...{ response: whole } },
      ];
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const event of events) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${String(port)}`,
    told: () => outputs.join("\n"),
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
};
