import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Adapter, Translation } from "../../schemas/adapter.ts";
import type { DecisionName, GateAnswer, ReasonCode } from "../../schemas/gate.ts";
import { toHookReplyForm } from "../platform/hook-reply-form.ts";

/** Words in a command by which a canary is known; each is answered here, everything else by the real gate. */
export const canaryWord = (kind: "deny" | "modify" | "approve"): string => `fabric-canary-${kind}`;
/** What the changed call of the canary `modify` runs. */
export const changedCommand = "echo changed > changed.txt";

export interface CanaryGate {
  readonly url: string;
  /** Phases of payloads that the real gate took. */
  readonly taken: readonly string[];
  /** Configuration hashes that came with them. */
  readonly hashes: ReadonlySet<string>;
  close(): void;
}

const forwardTimeoutMs = 10_000;

/** A gate of the doctor's own in front of the real one, so that a canary's answer is the same under any policy. */
export async function startCanaryGate(adapter: Adapter, gateUrl: string): Promise<CanaryGate> {
  const taken: string[] = [];
  const hashes = new Set<string>();
  let asked = 0;

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const raw = Buffer.concat(chunks);
    const hash = request.headers["x-fabric-hooks"];
    if (typeof hash === "string") hashes.add(hash);
    const translation = adapter.translate(JSON.parse(raw.toString("utf8")), raw.length);
    const answer = answerOf(translation);
    if (answer !== null) {
      const { status, headers, body } = toHookReplyForm(
        adapter.toReply(translation, answer),
        request.headers.accept,
      );
      response.writeHead(status, headers).end(body ?? "");
      return;
    }
    const { authorization = "", accept = "application/json" } = request.headers;
    const forwarded = await fetch(`${gateUrl}${request.url ?? ""}`, {
      method: "POST",
      headers: { authorization, accept, "content-type": "application/json", "x-fabric-hooks": String(hash) },
      body: raw,
      signal: AbortSignal.timeout(forwardTimeoutMs),
    });
    const text = await forwarded.text();
    if (forwarded.ok) taken.push(translation.call.phase ?? "unknown");
    const type = forwarded.headers.get("content-type") ?? "text/plain";
    response.writeHead(forwarded.status, { "content-type": type }).end(text);
  }

  function answerOf(translation: Translation): GateAnswer | null {
    if (translation.kind !== "gated") return null;
    const { input } = translation.request;
    const command = JSON.stringify(input);
    if (command.includes(canaryWord("deny")))
      return toAnswer("deny", "STATIC_DENY", "a canary of the doctor's");
    if (command.includes(canaryWord("modify"))) {
      return {
        ...toAnswer("modify", "REWRITTEN", "a canary of the doctor's"),
        modified_input: { ...input, command: changedCommand },
      };
    }
    if (!command.includes(canaryWord("approve"))) return null;
    asked += 1;
    return asked === 1
      ? toAnswer("require_approval", "APPROVAL_REQUIRED", "a canary of the doctor's: ask the same again")
      : toAnswer("allow", "APPROVED", "a canary of the doctor's");
  }

  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    taken,
    hashes,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

const toAnswer = (decision: DecisionName, reason: ReasonCode, message: string): GateAnswer => ({
  decision,
  decision_id: "dec_canary",
  reason_code: reason,
  message,
  policy_revision: "canary",
  plan_digest: null,
  correlation_id: "cor_canary",
  constraints: {},
  matched_rules: [],
  labels: [],
  repeated: false,
});
