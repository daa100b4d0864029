import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../services/stack/ports.ts";
import { eventually } from "../harness/eventually.ts";
import { projectDir } from "../harness/stack.ts";

/** The backend that the spans are proven against. */
const version = "1.76.0";
const module = "github.com/jaegertracing/jaeger/cmd/jaeger";
/** Set it to share one build among checkouts. */
const buildDir = process.env["FABRIC_TEST_JAEGER_DIR"] ?? join(projectDir, ".fabric", `jaeger-${version}`);

/** A Jaeger that keeps spans in memory, on free ports of this machine. */
export interface Jaeger {
  readonly otlpHttpPort: number;
  readonly otlpGrpcPort: number;
  /** The spans of a trace as its query API has them; empty when it does not know the trace. */
  readTrace(traceId: string): Promise<readonly JaegerSpan[]>;
  stop(): Promise<void>;
}

export interface JaegerSpan {
  readonly spanId: string;
  readonly parentId: string | null;
  /** Spans of other messages and of clients, as trace and span. */
  readonly links: readonly string[];
  readonly name: string;
  readonly tags: Readonly<Record<string, unknown>>;
  readonly warnings: readonly string[];
}

/** Builds it once, which takes minutes; says what is missing. */
export async function buildJaeger(progress: (line: string) => void): Promise<string> {
  const binary = join(buildDir, "jaeger");
  if (existsSync(binary)) return binary;
  await mkdir(buildDir, { recursive: true });
  const work = join(buildDir, "module");
  await rm(work, { recursive: true, force: true });
  await mkdir(work, { recursive: true });
  progress(`building Jaeger ${version} with Go, once; this takes minutes`);
  await go(work, ["mod", "init", "fabric.invalid/jaeger"]);
  await go(work, ["get", "-tool", `${module}@v${version}`]);
  await go(work, ["build", "-o", "jaeger", module]);
  await rename(join(work, "jaeger"), binary);
  return binary;
}

async function go(cwd: string, args: readonly string[]): Promise<void> {
  const child = spawn("go", args, { cwd, stdio: ["ignore", "ignore", "pipe"] });
  const said: Buffer[] = [];
  child.stderr.on("data", (chunk: Buffer) => said.push(chunk));
  const code = await new Promise<number>((resolve, reject) => {
    child.once("error", () =>
      reject(
        new Error("Go is missing: install it from https://go.dev/dl, it builds the Jaeger of this test"),
      ),
    );
    child.once("close", (exit) => resolve(exit ?? 1));
  });
  if (code !== 0)
    throw new Error(`go ${args.join(" ")} failed:\n${Buffer.concat(said).toString().slice(-4_000)}`);
}

export async function startJaeger(binary: string): Promise<Jaeger> {
  const ports = {
    http: await freePort(),
    grpc: await freePort(),
    query: await freePort(),
    queryGrpc: await freePort(),
  };
  const dir = await mkdtemp(join(tmpdir(), "fabric-jaeger-"));
  const config = join(dir, "config.yaml");
  await writeFile(config, toConfig(ports));
  const child = spawn(binary, ["--config", config], { stdio: ["ignore", "ignore", "pipe"] });
  const said: Buffer[] = [];
  child.stderr.on("data", (chunk: Buffer) => said.push(chunk));
  const api = `http://127.0.0.1:${String(ports.query)}/api`;
  await eventually(
    async () => {
      if (child.exitCode !== null)
        throw new Error(`Jaeger ended: ${Buffer.concat(said).toString().slice(-2_000)}`);
      return (await fetch(`${api}/services`)).ok;
    },
    Boolean,
    { deadlineMs: 60_000, pollMs: 100, what: "Jaeger's query API" },
  );
  return {
    otlpHttpPort: ports.http,
    otlpGrpcPort: ports.grpc,
    async readTrace(traceId) {
      const response = await fetch(`${api}/traces/${traceId}`);
      if (response.status === 404) return [];
      if (!response.ok)
        throw new Error(`Jaeger answers ${String(response.status)}: ${await response.text()}`);
      const body = (await response.json()) as {
        readonly data: readonly { readonly spans: readonly RawSpan[] }[];
      };
      return body.data.flatMap(({ spans }) => spans.map(toSpan));
    },
    async stop() {
      await end(child);
      await rm(dir, { recursive: true, force: true });
    },
  };
}

interface RawSpan {
  readonly spanID: string;
  readonly operationName: string;
  readonly references: readonly {
    readonly refType: string;
    readonly traceID: string;
    readonly spanID: string;
  }[];
  readonly traceID: string;
  readonly tags: readonly { readonly key: string; readonly value: unknown }[];
  readonly warnings: readonly string[] | null;
}

function toSpan(raw: RawSpan): JaegerSpan {
  const parent = raw.references.find((one) => one.refType === "CHILD_OF" && one.traceID === raw.traceID);
  return {
    spanId: raw.spanID,
    parentId: parent?.spanID ?? null,
    links: raw.references
      .filter((one) => one.refType === "FOLLOWS_FROM")
      .map((one) => `${one.traceID}/${one.spanID}`),
    name: raw.operationName,
    tags: Object.fromEntries(raw.tags.map(({ key, value }) => [key, value])),
    warnings: raw.warnings ?? [],
  };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, "close");
  child.kill("SIGTERM");
  const force = setTimeout(() => child.kill("SIGKILL"), 5_000);
  await closed;
  clearTimeout(force);
}

function toConfig(ports: Readonly<Record<"http" | "grpc" | "query" | "queryGrpc", number>>): string {
  return `service:
  extensions: [jaeger_storage, jaeger_query]
  pipelines:
    traces:
      receivers: [otlp]
      exporters: [jaeger_storage_exporter]
  telemetry:
    metrics:
      level: none
    logs:
      level: error
extensions:
  jaeger_query:
    storage:
      traces: memory
    http:
      endpoint: 127.0.0.1:${String(ports.query)}
    grpc:
      endpoint: 127.0.0.1:${String(ports.queryGrpc)}
  jaeger_storage:
    backends:
      memory:
        memory:
          max_traces: 10000
receivers:
  otlp:
    protocols:
      http:
        endpoint: 127.0.0.1:${String(ports.http)}
      grpc:
        endpoint: 127.0.0.1:${String(ports.grpc)}
exporters:
  jaeger_storage_exporter:
    trace_storage: memory
`;
}
