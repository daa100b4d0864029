import { createHash } from "node:crypto";
import type { IncomingMessage, Server } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { JWTPayload } from "jose";
import { createRemoteJWKSet, jwtVerify } from "jose";

/**
 * A resource service as somebody else would write it: it knows the gate by its addresses and by the standards alone.
 * It checks a right's issue by itself, compares each bound with what it is about to do, and spends at the gate before it
 * acts. Whatever it cannot find out is a no.
 */
export interface SampleResource {
  readonly url: string;
  /** What was carried out, in order. */
  readonly done: readonly unknown[];
  close(): Promise<void>;
}

export interface SampleResourceOptions {
  readonly gateUrl: string;
  readonly tenantId: string;
  readonly tool: string;
  /** Its own token, with the role resource. */
  readonly bearer: string;
}

/** What an agent sends: the right, the frozen plan, and its own key for this use. */
export interface ActRequest {
  readonly token: string;
  readonly plan: Readonly<Record<string, unknown>>;
  readonly key: string;
}

/** Longest wait for the gate. */
const gateTimeoutMs = 2_000;

export const startSampleResource = async (options: SampleResourceOptions): Promise<SampleResource> => {
  const keys = createRemoteJWKSet(new URL("/.well-known/jwks.json", options.gateUrl), {
    timeoutDuration: 1_000,
  });
  const done: unknown[] = [];
  const results = new Map<string, number>();

  const act = async ({ token, plan, key }: ActRequest): Promise<{ status: number; body: object }> => {
    let claims: JWTPayload;
    try {
      ({ payload: claims } = await jwtVerify(token, keys, {
        algorithms: ["EdDSA"],
        typ: "fabric-capability+jwt",
        issuer: "fabric:gate",
        audience: "fabric-capability",
        requiredClaims: ["exp", "jti"],
      }));
    } catch (error) {
      return refuse((error as { code?: string }).code === "ERR_JWT_EXPIRED" ? "expired" : "token");
    }
    const resource = plan["resource"];
    if (claims["tenant"] !== options.tenantId) return refuse("tenant");
    if (claims["tool"] !== options.tool || plan["tool"] !== options.tool) return refuse("tool");
    if (claims["plan_digest"] !== digestOf(canonical(plan))) return refuse("plan_digest");
    if (typeof resource !== "string" || claims["resource_digest"] !== digestOf(resource))
      return refuse("resource");
    let answer: Response;
    try {
      answer = await fetch(`${options.gateUrl}/v1/capabilities/spend`, {
        method: "POST",
        headers: { authorization: `Bearer ${options.bearer}`, "content-type": "application/json" },
        body: JSON.stringify({
          token,
          tool: options.tool,
          resource,
          plan_digest: claims["plan_digest"],
          idempotency_key: key,
        }),
        signal: AbortSignal.timeout(gateTimeoutMs),
      });
    } catch {
      return refuse("gate_away");
    }
    const said = (await answer.json().catch(() => ({}))) as { differs?: string; spent?: boolean };
    if (!answer.ok || said.spent !== true) return refuse(said.differs ?? "gate_away");
    const place = `${String(claims.jti)}/${key}`;
    const before = results.get(place);
    if (before !== undefined) return { status: 200, body: { result: before, repeated: true } };
    results.set(place, done.push(plan["arguments"]));
    return { status: 200, body: { result: done.length, repeated: false } };
  };

  const server = createServer((request, response) => {
    readBody(request)
      .then((text) => act(JSON.parse(text) as ActRequest))
      .catch(() => refuse("request"))
      .then(({ status, body }) => response.writeHead(status).end(JSON.stringify(body)))
      .catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    done,
    close: () => closeServer(server),
  };
};

const refuse = (why: string): { status: number; body: object } => ({ status: 403, body: { refused: why } });

const readBody = async (request: IncomingMessage): Promise<string> => {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("utf8");
};

const closeServer = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });

const digestOf = (text: string): string =>
  `sha256:${createHash("sha256").update(text, "utf8").digest("hex")}`;

/** RFC 8785 for plans: keys sorted, nothing between. */
const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1));
  return `{${members.map(([name, one]) => `${JSON.stringify(name)}:${canonical(one)}`).join(",")}}`;
};
