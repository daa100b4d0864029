import { randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { ScriptedCall, ToldResult } from "../platform/runtime-room.ts";
import type { IdentifiedCall, ModelFormat, ModelReply } from "./model-formats.ts";
import { modelFormats } from "./model-formats.ts";

/** One turn of the scripted model: calls of one reply, or a text. */
export interface ScriptedTurn {
  /** A call may depend on what the model was told so far. */
  readonly calls?: readonly (ScriptedCall | ((told: readonly ToldResult[]) => ScriptedCall))[];
  readonly text?: string;
  /** The reply waits for it. */
  readonly before?: () => Promise<unknown>;
}
/** Turns of each conversation; after the last one the model says `done`. */
export type ModelScript = Readonly<Record<string, readonly ScriptedTurn[]>>;

/** One request of the client: what it was answered, and every tool result in it. */
export interface ModelRequest {
  readonly atMs: number;
  readonly conversation: string | null;
  readonly turn: number;
  readonly calls: readonly IdentifiedCall[];
  readonly told: readonly ToldResult[];
}
export interface ScriptedModel {
  readonly url: string;
  readonly requests: readonly ModelRequest[];
  close(): void;
}

/** The words that tell the model which conversation of the script this is. */
export const promptFor = (conversation: string): string => `Please do the task [script:${conversation}]`;

interface Heard {
  readonly role: string;
  readonly text: string;
}

/**
 * Which conversation a request continues, and how many replies it has had: so the server keeps no state, and a request that
 * is sent again gets the same reply. A Responses client may send only what is new, and name the reply that it continues.
 */
function locate(
  history: readonly Heard[],
  previousId: unknown,
): { conversation: string | null; turn: number } {
  for (let start = history.length - 1; start >= 0; start -= 1) {
    const heard = history[start];
    if (heard?.role !== "user") continue;
    const mark = [...heard.text.matchAll(/\[script:([\w.-]+)\]/g)].pop()?.[1];
    if (mark === undefined) continue;
    const roles = history.slice(start).map(({ role }) => role);
    const turn = roles.filter((role, at) => role === "assistant" && roles[at - 1] !== "assistant").length;
    return { conversation: mark, turn };
  }
  const [, conversation, turn] = /^resp_[^_]+_(.+)_(\d+)$/.exec(String(previousId)) ?? [];
  return { conversation: conversation ?? null, turn: Number(turn ?? -1) + 1 };
}

async function readJson(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8")) as Readonly<Record<string, unknown>>;
  } catch {
    return {};
  }
}

const sendJson = (response: ServerResponse, body: unknown, status = 200): void => {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
};

/** A model on loopback that says what the script says, in the three wire formats that clients speak. */
export async function startScriptedModel(script: ModelScript): Promise<ScriptedModel> {
  // Ids are unique across runs, as a provider's are.
  const run = randomBytes(4).toString("hex");
  const requests: ModelRequest[] = [];

  async function answer(
    format: ModelFormat,
    body: Readonly<Record<string, unknown>>,
    response: ServerResponse,
  ): Promise<void> {
    const { conversation, turn } = locate(format.history(body), body["previous_response_id"]);
    // A request without tools is the client's own errand (a title, a summary): it gets words, never calls.
    const hasTools = Array.isArray(body["tools"]) && body["tools"].length > 0;
    const planned = hasTools && conversation !== null ? script[conversation]?.[turn] : undefined;
    const place = `${run}_${conversation ?? "none"}_${String(turn)}`;
    const told = format.toldResults(body);
    const calls =
      planned?.calls?.map((one, index) => ({
        ...(typeof one === "function" ? one(told) : one),
        id: `${format.idPrefix}${place}_${String(index)}`,
      })) ?? null;
    requests.push({
      atMs: Date.now(),
      conversation,
      turn,
      calls: calls ?? [],
      told,
    });
    await planned?.before?.();
    const reply: ModelReply = {
      id: place,
      createdS: Math.floor(Date.now() / 1000),
      calls,
      text: planned?.text ?? "done",
    };
    const written = format.write(body, reply);
    if (written.kind === "json") {
      sendJson(response, written.body);
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    for (const [name, data] of written.events) {
      const text = typeof data === "string" ? data : JSON.stringify(data);
      response.write(`${name === null ? "" : `event: ${name}\n`}data: ${text}\n\n`);
    }
    response.end();
  }

  const server = createServer((request, response) => {
    readJson(request)
      .then(async (body) => {
        const path = (request.url ?? "").split("?")[0] ?? "";
        const format = modelFormats.find(({ suffix }) => path.endsWith(suffix));
        if (format !== undefined) return answer(format, body, response);
        if (path.endsWith("/count_tokens")) sendJson(response, { input_tokens: 100 });
        else if (path.endsWith("/models"))
          sendJson(response, { object: "list", data: [{ id: "model", object: "model" }] });
        else
          sendJson(response, { error: { type: "not_found_error", message: `no such route: ${path}` } }, 404);
        return undefined;
      })
      .catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    requests,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
