import { DiagLogLevel, diag } from "@opentelemetry/api";
import { OTLPTraceExporter as GrpcExporter } from "@opentelemetry/exporter-trace-otlp-grpc";
import { OTLPTraceExporter as HttpExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import type { SpanExporter } from "@opentelemetry/sdk-trace-base";
import { Fault } from "../../../schemas/faults.ts";
import type { OutgoingSpan } from "./readable-span.ts";
import { toReadableSpan } from "./readable-span.ts";

/**
 * What became of one batch. COLLECTOR_UNAVAILABLE: it is away, busy, or does not let us in, so the same batch later.
 * COLLECTOR_REJECTED: it will never take this batch; something in it is wrong, or there is too much of it.
 */
export type SendOutcome = { readonly kind: "sent" } | { readonly kind: "failed"; readonly fault: Fault };

/** One connection to a collector. */
export interface SpanSender {
  send(spans: readonly OutgoingSpan[]): Promise<SendOutcome>;
  close(): Promise<void>;
}

export interface SenderOptions {
  readonly endpoint: string;
  readonly protocol: "http" | "grpc";
  readonly headers: Readonly<Record<string, string>>;
  readonly environment: string;
  readonly timeoutMs: number;
  /** Spans that the collector took and threw away, and why. They are not sent again: the protocol forbids it. */
  readonly onRejected: (spans: number, message: string) => void;
}

/** The SDK's exporter for the protocol. */
export function createSender(options: SenderOptions): SpanSender {
  const exporter = createExporter(options);
  const resource = resourceFromAttributes({
    "service.name": "policy-hook-fabric",
    "deployment.environment.name": options.environment,
  });
  hearPartialSuccess(options.onRejected);
  return {
    send: (spans) =>
      new Promise((resolve) => {
        exporter.export(
          spans.map((one) => toReadableSpan(one, resource)),
          ({ code, error }) =>
            resolve(
              code === 0 ? { kind: "sent" } : { kind: "failed", fault: toFailure(error, spans.length) },
            ),
        );
      }),
    close: () => exporter.shutdown(),
  };
}

function createExporter({ endpoint, protocol, headers, timeoutMs }: SenderOptions): SpanExporter {
  if (protocol === "http") {
    const url = new URL(endpoint);
    if (!url.pathname.endsWith("/v1/traces")) url.pathname = `${url.pathname.replace(/\/$/, "")}/v1/traces`;
    return new HttpExporter({ url: url.href, headers: { ...headers }, timeoutMillis: timeoutMs });
  }
  type Metadata = NonNullable<NonNullable<ConstructorParameters<typeof GrpcExporter>[0]>["metadata"]>;
  // The exporter copies what it is given entry by entry; of the class behind it it asks for nothing else.
  const metadata = { clone: () => ({ getMap: () => ({ ...headers }) }) } as unknown as Metadata;
  return new GrpcExporter({ url: endpoint, metadata, timeoutMillis: timeoutMs });
}

/** HTTP statuses and gRPC codes that say something of the batch, not of the collector or of our rights there. */
const refusedStatuses: ReadonlySet<number> = new Set([400, 413, 415, 422]);
const refusedCodes: ReadonlySet<number> = new Set([3, 11]);
/** RESOURCE_EXHAUSTED: the batch is too large, or the collector has no room for now; only one span tells which. */
const exhaustedCode = 8;

/** What a failure to send says of a batch of so many spans. */
export function toFailure(error: unknown, spanCount: number): Fault {
  const code = (error as { readonly code?: unknown } | undefined)?.code;
  const isRefused =
    code === exhaustedCode
      ? spanCount > 1
      : typeof code === "number" && (refusedStatuses.has(code) || refusedCodes.has(code));
  const text = error instanceof Error ? error.message : String(error);
  return new Fault(isRefused ? "COLLECTOR_REJECTED" : "COLLECTOR_UNAVAILABLE", text, { cause: error });
}

const partialSuccess = "Received Partial Success response:";

/** The SDK tells of a partial success in its own log and nowhere else. */
function hearPartialSuccess(onRejected: SenderOptions["onRejected"]): void {
  const hear = (message: string, ...rest: readonly unknown[]): void => {
    if (message !== partialSuccess) return;
    const [text] = rest;
    const told = (typeof text === "string" ? JSON.parse(text) : {}) as {
      readonly rejectedSpans?: number | string;
      readonly errorMessage?: string;
    };
    onRejected(Number(told.rejectedSpans ?? 0), told.errorMessage ?? "");
  };
  const silent = (): void => undefined;
  diag.setLogger(
    { error: silent, warn: hear, info: silent, debug: silent, verbose: silent },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}
