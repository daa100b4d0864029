import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { fastify } from "fastify";
import { randomUUID } from "node:crypto";
import type { FaultCode } from "../../schemas/faults.ts";
import { Fault, faultTable } from "../../schemas/faults.ts";
import type { Authenticator, Caller, Role } from "./auth.ts";
import { parseJsonBody, whyUnreadable } from "./json-body.ts";
import type { Log } from "./log.ts";
import { maskText } from "./mask.ts";
import type { Metrics } from "./metrics.ts";

/** The server, its requests and replies, as rooms see them. */
export type HttpServer = FastifyInstance;
export type HttpRequest = FastifyRequest;
export type HttpReply = FastifyReply;

/** Who may call a route: the roles of which one is enough, or everybody. */
export type Access = readonly Role[] | "public";
/** `METHOD /path` → access. A route that is not in the table keeps the server from starting. */
export type AccessTable = Readonly<Record<string, Access>>;

/** A dependency's state, asked at each `/readyz`. A rejection counts as down. */
export type Probe = () => Promise<{ readonly state: "up" | "stale" | "down"; readonly detail?: string }>;

/** A body as received, and its JSON when the route takes JSON. */
export interface ReceivedBody {
  readonly raw: Buffer;
  /** Undefined on routes that parse for themselves. */
  readonly json: unknown;
}

declare module "fastify" {
  interface FastifyRequest {
    /** Set on every route that is not public. */
    caller: Caller | null;
  }
  interface FastifyContextConfig {
    /** The route takes the body's bytes and parses them itself. */
    rawBody?: boolean;
    access?: Access;
  }
}

export interface HttpServerOptions {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly authenticator: Authenticator;
  readonly access: AccessTable;
  readonly probes: Readonly<Record<string, Probe>>;
  /** Largest body; default 1 MiB. */
  readonly bodyLimitBytes?: number;
  /** Longest time to receive a request; default 10 s. */
  readonly requestTimeoutMs?: number;
  /**
   * Asked before a problem document is sent: a route whose callers take a status for something else answers by itself, and
   * returns true.
   */
  readonly answerFault?: (request: HttpRequest, reply: HttpReply, fault: Fault) => boolean;
  /** Longest wait for one probe of `/readyz`; default 1 s. */
  readonly probeTimeoutMs?: number;
  /** How long calls under way may take once the server is being closed; default 10 s. */
  readonly closeWithinMs?: number;
}

/** Header fields and bytes are bounded; Node's own limit of 16 KiB on header bytes stays. */
const headerMaxCount = 64;
/** A result holds a file before and after a change: some times the size of what agents usually write. */
export const defaultBodyLimitBytes = 4 * 1_048_576;
/** As long as a request may take to arrive; with it a process ends well within the half minute that schedulers give. */
const defaultCloseWithinMs = 10_000;

/**
 * Makes the server that all rooms use: bearer tokens with a role per route, problem details (RFC 9457) for every
 * error, `/healthz`, `/readyz`, `/metrics`, and a request log without bodies, headers or addresses.
 */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  const access: AccessTable = {
    "GET /healthz": "public",
    "GET /readyz": "public",
    "GET /metrics": "public",
    ...options.access,
  };
  const app = fastify({
    logger: false,
    bodyLimit: options.bodyLimitBytes ?? defaultBodyLimitBytes,
    requestTimeout: options.requestTimeoutMs ?? 10_000,
    // A caller's own id could be another tenant's, or a secret.
    genReqId: () => `req_${randomUUID()}`,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: 128 },
    forceCloseConnections: "idle",
    // A connection that was taken before the server is closed may bring its call after it: that one is answered too, since
    // for a hook everything but an answer is a no.
    return503OnClosing: false,
    frameworkErrors: (error, request, reply) => void sendProblem(request, reply, toFault(error)),
    clientErrorHandler: (_error, socket) => {
      if (socket.writable)
        socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    },
  });
  // One more than allowed: what comes on top is dropped by Node, and one too many is refused below.
  app.server.maxHeadersCount = headerMaxCount + 1;
  // Closing waits for calls under way; Node looks only every half minute for those that never arrive whole.
  let isClosing = false;
  app.addHook("onSend", (_request, reply, _payload, done) => {
    if (isClosing) reply.header("connection", "close");
    done();
  });
  app.addHook("preClose", (done) => {
    isClosing = true;
    const timer = setTimeout(() => {
      options.log.warn("calls that did not end in time are cut off");
      app.server.closeAllConnections();
    }, options.closeWithinMs ?? defaultCloseWithinMs);
    app.server.once("close", () => clearTimeout(timer));
    done();
  });
  app.decorateRequest("caller", null);

  app.addHook("onRoute", (route) => {
    for (const method of [route.method].flat()) {
      const entry = access[`${method} ${route.url}`];
      if (entry === undefined) {
        throw new Fault(
          "INTERNAL",
          `the route ${method} ${route.url} declares no role; add it to the access table`,
        );
      }
      route.config = { ...route.config, access: entry };
    }
  });
  app.addHook("onRequest", async (request, reply) => {
    const entry = request.routeOptions.config.access;
    reply.header("x-request-id", request.id);
    reply.header("cache-control", "no-store");
    if (request.raw.rawHeaders.length / 2 > headerMaxCount) {
      throw new Fault("REQUEST_INVALID", `it has more than ${String(headerMaxCount)} header fields`);
    }
    if (request.is404 || entry === "public") return;
    request.caller = await authenticate(options.authenticator, request.headers.authorization);
    const held = request.caller.roles;
    if (entry === undefined || !entry.some((role) => held.includes(role))) throw new Fault("ROLE_MISSING");
  });
  app.addHook("preParsing", (request, _reply, _payload, done) => {
    const { "content-type": type, "content-encoding": encoding } = request.headers;
    const why = whyUnreadable(type, encoding);
    done(why === null ? null : new Fault("MEDIA_TYPE_UNSUPPORTED", why));
  });

  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (request, body, done) => {
    const raw = body as Buffer;
    if (request.routeOptions.config.rawBody === true) {
      done(null, { raw, json: undefined } satisfies ReceivedBody);
      return;
    }
    try {
      done(null, { raw, json: parseJsonBody(raw) } satisfies ReceivedBody);
    } catch (error) {
      done(error as Error);
    }
  });

  app.setErrorHandler(async (error, request, reply) => {
    const fault = toFault(error);
    if (fault.code === "BODY_TOO_LARGE") {
      await drainBody(request);
      reply.header("connection", "close");
    }
    const isGone = hasHungUp(request, error);
    if (isGone) {
      options.log.debug({ requestId: request.id }, "the client hung up");
    } else if (faultTable[fault.code].status >= 500) {
      options.log.error(
        { requestId: request.id, code: fault.code, reason: maskText(messageChain(error)) },
        "request failed",
      );
    }
    if (!isGone && options.answerFault?.(request, reply, fault) === true) return reply;
    return sendProblem(request, reply, fault);
  });
  app.setNotFoundHandler((request, reply) => sendProblem(request, reply, new Fault("ROUTE_UNKNOWN")));

  const latency = options.metrics.histogram(
    "fabric_http_request_seconds",
    "time from the request's head to its answer",
    ["route", "status"],
  );
  app.addHook("onResponse", (request, reply, done) => {
    const route = request.is404 ? "unknown" : `${request.method} ${request.routeOptions.url ?? "unknown"}`;
    latency.observe(reply.elapsedTime / 1000, { route, status: reply.statusCode });
    options.log[reply.statusCode < 400 ? "debug" : "info"](
      {
        requestId: request.id,
        route,
        status: reply.statusCode,
        durationMs: Math.round(reply.elapsedTime * 1000) / 1000,
        ...(request.caller === null ? {} : { tenant: request.caller.tenantId }),
      },
      "request",
    );
    done();
  });

  app.get("/healthz", () => ({ status: "live" }));
  app.get("/metrics", async (_request, reply) =>
    reply.header("content-type", options.metrics.contentType).send(await options.metrics.render()),
  );
  app.get("/readyz", async (_request, reply) => {
    const states = await probeAll(options.probes, options.probeTimeoutMs ?? 1_000);
    const isReady = Object.values(states).every(({ state }) => state !== "down");
    return reply
      .code(isReady ? 200 : 503)
      .send({ status: isReady ? "ready" : "not ready", dependencies: states });
  });
  return app;
}

async function authenticate(authenticator: Authenticator, header: string | undefined): Promise<Caller> {
  if (header === undefined || header === "") throw new Fault("TOKEN_MISSING");
  const match = /^Bearer +([A-Za-z0-9._~+/=-]{1,8192})$/i.exec(header);
  if (match?.[1] === undefined) throw new Fault("TOKEN_INVALID");
  return authenticator.authenticate(match[1]);
}

async function probeAll(
  probes: Readonly<Record<string, Probe>>,
  timeoutMs: number,
): Promise<Record<string, { state: string; detail?: string }>> {
  const entries = Object.entries(probes).map(async ([name, probe]): Promise<[string, { state: string }]> => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<{ state: "down"; detail: string }>((resolve) => {
      timer = setTimeout(() => resolve({ state: "down", detail: "no answer in time" }), timeoutMs);
    });
    // What failed is logged where it failed; here it could name hosts.
    const asked = probe().catch(() => ({ state: "down" as const }));
    const state = await Promise.race([asked, late]);
    clearTimeout(timer);
    return [name, state];
  });
  return Object.fromEntries(await Promise.all(entries));
}

const ofFastify: Readonly<Record<string, FaultCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: "BODY_TOO_LARGE",
  FST_ERR_CTP_INVALID_MEDIA_TYPE: "MEDIA_TYPE_UNSUPPORTED",
  FST_ERR_CTP_EMPTY_TYPE: "MEDIA_TYPE_UNSUPPORTED",
  FST_ERR_CTP_EMPTY_JSON_BODY: "BODY_NOT_JSON",
  FST_ERR_CTP_INVALID_JSON_BODY: "BODY_NOT_JSON",
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: "REQUEST_INVALID",
  FST_ERR_BAD_URL: "REQUEST_INVALID",
  FST_ERR_ASYNC_CONSTRAINT: "REQUEST_INVALID",
  FST_ERR_VALIDATION: "REQUEST_INVALID",
  FST_ERR_MAX_PARAM_LENGTH: "ROUTE_UNKNOWN",
};

/** Node ends a body that the client broke off with this error; nobody is there to hear an answer. */
function hasHungUp(request: HttpRequest, error: unknown): boolean {
  return request.raw.destroyed && (error as { code?: unknown }).code === "ECONNRESET";
}

function toFault(error: unknown): Fault {
  if (error instanceof Fault) return error;
  const code = (error as { code?: unknown }).code;
  const known = typeof code === "string" ? ofFastify[code] : undefined;
  return new Fault(known ?? "INTERNAL", undefined, { cause: error });
}

/** The rest of a refused body that is read: most clients read no answer before they have sent all. */
const drainMaxBytes = 16 * 1_048_576;
const drainMaxMs = 2_000;

/** Throws away the rest of a body, up to a bound: a connection that is closed over unread bytes is reset, and its answer lost. */
function drainBody({ raw }: HttpRequest): Promise<void> {
  if (raw.readableEnded || raw.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    let drained = 0;
    const timer = setTimeout(end, drainMaxMs);
    function onData(chunk: Buffer): void {
      drained += chunk.length;
      if (drained > drainMaxBytes) end();
    }
    function end(): void {
      clearTimeout(timer);
      raw.off("data", onData).off("end", end).off("close", end);
      resolve();
    }
    raw.on("data", onData).once("end", end).once("close", end).resume();
  });
}

/** Sends problem details. Of our own failures only the code's text leaves; what a caller did wrong is told. */
export function sendProblem(request: HttpRequest, reply: HttpReply, fault: Fault): HttpReply {
  const entry = faultTable[fault.code];
  if (entry.status === 401) reply.header("www-authenticate", 'Bearer realm="fabric"');
  if (entry.status === 503) reply.header("retry-after", "1");
  return reply
    .code(entry.status)
    .header("content-type", "application/problem+json; charset=utf-8")
    .send(
      JSON.stringify({
        type: `urn:fabric:problem:${fault.code}`,
        title: entry.text,
        status: entry.status,
        detail: entry.kind === "refused" ? maskText(fault.message) : entry.text,
        code: fault.code,
        instance: request.id,
      }),
    );
}

/** The messages of an error and its causes, for the log. */
function messageChain(error: unknown): string {
  const messages: string[] = [];
  for (let one: unknown = error; one instanceof Error && messages.length < 4; one = one.cause)
    messages.push(one.message);
  return messages.join(": caused by ");
}
