import type { AddressInfo } from "node:net";
import type { IncomingMessage, Server } from "node:http";
import { createServer } from "node:http";
import { ask } from "./gate-traffic.ts";
import type { EffectRequest } from "./gate-traffic.ts";

/**
 * A resource that spends the right at the gate before it acts, under the caller's key, and answers the same key with what
 * it did before. It counts what it did per intent.
 */
export interface SampleEffects {
  readonly port: number;
  /** Intent → times that it was carried out. */
  readonly done: ReadonlyMap<string, number>;
  close(): Promise<void>;
}

export async function startSampleEffects(options: {
  readonly gateUrl: () => string;
  readonly resourceToken: string;
}): Promise<SampleEffects> {
  const done = new Map<string, number>();
  const results = new Set<string>();

  const act = async ({ intent, key, capabilityId, planDigest }: EffectRequest): Promise<number> => {
    const said = (await ask(`${options.gateUrl()}/v1/capabilities/spend`, options.resourceToken, {
      capability_id: capabilityId,
      plan_digest: planDigest,
      tool: "file.write",
      resource: `/work-place/${intent}.txt`,
      idempotency_key: key,
    })) as { spent?: boolean } | null;
    // No word of the gate: nothing is done, and the same use may be asked for again.
    if (said === null) return 503;
    if (said.spent !== true) return 403;
    const place = `${capabilityId}/${key}`;
    if (!results.has(place)) {
      results.add(place);
      done.set(intent, (done.get(intent) ?? 0) + 1);
    }
    return 200;
  };
  const server: Server = createServer((request, response) => {
    readBody(request)
      .then((text) => act(JSON.parse(text) as EffectRequest))
      .catch(() => 500)
      .then((status) => response.writeHead(status).end("{}"))
      .catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    done,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Asks the resource at this address; whatever breaks on the way leaves the outcome unknown. */
export const askResource =
  (url: string) =>
  async (request: EffectRequest): Promise<"done" | "refused" | "unknown"> => {
    try {
      const response = await fetch(url, {
        method: "POST",
        body: JSON.stringify(request),
        signal: AbortSignal.timeout(1_500),
      });
      await response.text();
      return response.status === 200 ? "done" : response.status === 403 ? "refused" : "unknown";
    } catch {
      return "unknown";
    }
  };

const readBody = async (request: IncomingMessage): Promise<string> => {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("utf8");
};
