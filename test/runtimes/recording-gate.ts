import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Adapter } from "../../schemas/adapter.ts";
import type { GateAnswer } from "../../schemas/gate.ts";
import { toHookReplyForm } from "../../services/platform/hook-reply-form.ts";

/** One payload as a client's hook sent it. */
export interface RecordedPayload {
  readonly payload: unknown;
  readonly isUnrecognized: boolean;
  /** Fields that the adapter has never seen (JSON pointers). */
  readonly unknownFields: readonly string[];
}
export interface RecordingGate {
  readonly url: string;
  readonly recorded: readonly RecordedPayload[];
  close(): void;
}

const allowed: GateAnswer = {
  decision: "allow",
  decision_id: "dec_recording",
  reason_code: "ALLOWED",
  message: "recorded",
  policy_revision: "recording",
  plan_digest: null,
  correlation_id: "cor_recording",
  constraints: {},
  matched_rules: [],
  labels: [],
  repeated: false,
};

/** A server in the gate's place that keeps every payload and allows every call that the adapter understands. */
export async function startRecordingGate(adapter: Adapter): Promise<RecordingGate> {
  const recorded: RecordedPayload[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const raw = Buffer.concat(chunks);
      const payload = JSON.parse(raw.toString("utf8")) as unknown;
      const translation = adapter.translate(payload, raw.length);
      const isUnrecognized = translation.kind === "unrecognized";
      recorded.push({
        payload,
        isUnrecognized,
        unknownFields: isUnrecognized ? [] : translation.unknownFields,
      });
      const answer = translation.kind === "gated" ? allowed : null;
      const { status, headers, body } = toHookReplyForm(
        adapter.toReply(translation, answer),
        request.headers.accept,
      );
      response.writeHead(status, headers).end(body ?? "");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    recorded,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
