import type { Server } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A span as it came over the wire, as far as tests look. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | null;
  readonly name: string;
}

/** How the collector answers one request. */
export interface CollectorAnswer {
  readonly status: number;
  readonly body?: Buffer;
}

/** An HTTP collector that keeps what it is sent; `answer` decides about each request. */
export interface OtlpCollector {
  readonly endpoint: string;
  readonly spans: ReceivedSpan[];
  readonly headers: Record<string, unknown>[];
  requests(): number;
  answer: (spans: readonly ReceivedSpan[]) => CollectorAnswer;
  close(): Promise<void>;
}

export async function startOtlpCollector(port = 0): Promise<OtlpCollector> {
  let requests = 0;
  const collector = {
    endpoint: "",
    spans: [] as ReceivedSpan[],
    headers: [] as Record<string, unknown>[],
    requests: () => requests,
    answer: (): CollectorAnswer => ({ status: 200 }),
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  } satisfies OtlpCollector as OtlpCollector & { endpoint: string };
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      requests += 1;
      collector.headers.push(request.headers);
      const spans = readSpans(Buffer.concat(chunks));
      const { status, body } = collector.answer(spans);
      if (status === 200) collector.spans.push(...spans);
      response.writeHead(status, { "content-type": "application/x-protobuf" }).end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  (collector as { endpoint: string }).endpoint =
    `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
  return collector;
}

/** An answer that says that `count` spans were thrown away. */
export function toPartialSuccess(count: number, message: string): Buffer {
  const text = Buffer.from(message);
  const inner = Buffer.concat([Buffer.from([0x08, count, 0x12, text.length]), text]);
  return Buffer.concat([Buffer.from([0x0a, inner.length]), inner]);
}

/** ExportTraceServiceRequest → resource_spans (1) → scope_spans (2) → spans (2): ids, parent (4) and name (5). */
function readSpans(bytes: Buffer): ReceivedSpan[] {
  return fieldsOf(bytes, 1)
    .flatMap((one) => fieldsOf(one, 2))
    .flatMap((one) => fieldsOf(one, 2))
    .map((span) => ({
      traceId: fieldsOf(span, 1)[0]?.toString("hex") ?? "",
      spanId: fieldsOf(span, 2)[0]?.toString("hex") ?? "",
      parentId: fieldsOf(span, 4)[0]?.toString("hex") ?? null,
      name: fieldsOf(span, 5)[0]?.toString() ?? "",
    }));
}

/** The length-delimited fields of a protobuf message with a number. */
function fieldsOf(bytes: Buffer, wanted: number): Buffer[] {
  const found: Buffer[] = [];
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let shift = 1; ; shift *= 128) {
      const byte = bytes.readUInt8(at);
      at += 1;
      value += (byte & 0x7f) * shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    switch (tag & 7) {
      case 0:
        varint();
        break;
      case 1:
        at += 8;
        break;
      case 5:
        at += 4;
        break;
      default: {
        const length = varint();
        if (tag >> 3 === wanted) found.push(bytes.subarray(at, at + length));
        at += length;
      }
    }
  }
  return found;
}
