import { setTimeout as wait } from "node:timers/promises";
import { randomBytes } from "node:crypto";
import type { GateAnswer } from "../../../schemas/gate.ts";
import { ownRequest } from "../../harness/gate-rig.ts";

/** One thing that an agent wants done, from its question to its effect. */
interface Intent {
  readonly id: string;
  readonly session: string;
  readonly content: string;
}
/** What is between an intent and its effect: each question over the network may get no answer. */
export interface GateTrafficOptions {
  /** The gate as callers reach it, asked for anew each time. */
  readonly gateUrl: () => string;
  readonly runtimeToken: string;
  readonly resourceToken: string;
  readonly callers: number;
  readonly intentsPerSecond: number;
  /** The resource as callers reach it: carries the effect out, or says that nothing is known. */
  readonly resource: (ask: EffectRequest) => Promise<"done" | "refused" | "unknown">;
  /**
   * What a caller does about an effect whose outcome is unknown: asks again under the same key, or, planted, takes a new
   * right and does it again.
   */
  readonly onUnknown?: "same-key" | "new-right" | undefined;
  /** Each so-manieth intent carries more than a group's statement takes; default none. */
  readonly largeEvery?: number;
}
export interface EffectRequest {
  readonly intent: string;
  readonly key: string;
  readonly capabilityId: string;
  readonly planDigest: string;
}

const requestTimeoutMs = 1_500;
const retryMs = 100;
/** Refusals that say nothing of the call: the same one is asked again. */
const saysNothing: ReadonlySet<string> = new Set(["GATE_TIMEOUT", "GATE_UNAVAILABLE", "OVERLOADED"]);
const sessions = 6;
/** More than the gate puts into a group's statement. */
const largeBytes = 80_000;

/** Callers that ask the gate, take the right to a resource, and begin the next; each ends only when its effect is known. */
export class GateTraffic {
  /** Intent → monotonic milliseconds of its end. */
  readonly ended = new Map<string, number>();
  readonly begun = new Set<string>();
  /** Answers that told a caller to go on: intent → right. */
  readonly allowed = new Map<string, string>();
  /** Answers that said that the call was decided before. */
  repeated = 0;
  readonly #options: GateTrafficOptions;
  readonly #running = new Set<Promise<void>>();
  readonly #startedMs = Date.now();
  #stopping = false;
  #abandoned = false;

  constructor(options: GateTrafficOptions) {
    this.#options = options;
  }

  start(): void {
    for (let caller = 0; caller < this.#options.callers; caller += 1) this.#follow(this.#loop());
  }
  /** Begins so many at once. */
  burst(count: number): void {
    for (let one = 0; one < count; one += 1) this.#follow(this.#carryOut());
  }
  /** Begins nothing more and waits for what is begun; false when the deadline came first. */
  async stop(deadlineMs: number): Promise<boolean> {
    this.#stopping = true;
    const ended = await Promise.race([
      Promise.all(this.#running).then(() => true),
      wait(deadlineMs, false, { ref: false }),
    ]);
    this.#abandoned = true;
    return ended;
  }
  pending(): string[] {
    return [...this.begun].filter((id) => !this.ended.has(id));
  }

  #follow(work: Promise<void>): void {
    const kept = work.finally(() => this.#running.delete(kept));
    kept.catch(() => undefined);
    this.#running.add(kept);
  }
  async #loop(): Promise<void> {
    while (!this.#stopping) {
      await this.#carryOut();
      const aheadMs =
        (this.begun.size / this.#options.intentsPerSecond) * 1_000 - (Date.now() - this.#startedMs);
      if (aheadMs > 0) await wait(Math.min(aheadMs, 500));
    }
  }

  async #carryOut(): Promise<void> {
    const { onUnknown = "same-key", resource } = this.#options;
    const id = `i-${randomBytes(6).toString("hex")}`;
    const { largeEvery = 0 } = this.#options;
    const isLarge = largeEvery > 0 && this.begun.size % largeEvery === 0;
    const session = `s-${String(this.begun.size % sessions)}`;
    const intent = { id, session, content: "x".repeat(isLarge ? largeBytes : 1) };
    this.begun.add(id);
    let attempt = 1;
    let right = await this.#decide(intent, attempt);
    while (!this.#abandoned) {
      const outcome = await resource({ intent: id, key: `${id}/${String(attempt)}`, ...right });
      if (outcome === "done") break;
      if (outcome === "refused") throw new Error(`the effect of ${id} was refused`);
      if (onUnknown === "new-right") {
        attempt += 1;
        right = await this.#decide(intent, attempt);
      }
      await wait(retryMs);
    }
    if (!this.#abandoned) this.ended.set(id, performance.now());
  }

  /** Asks until there is an answer: the same call, so that it is the same decision. */
  async #decide(
    { id, session, content }: Intent,
    attempt: number,
  ): Promise<{ capabilityId: string; planDigest: string }> {
    const request = ownRequest(
      "file.write",
      { file_path: `/work-place/${id}.txt`, content },
      { session_id: session, tool_call_id: `${id}/${String(attempt)}` },
    );
    while (!this.#abandoned) {
      const { gateUrl, runtimeToken } = this.#options;
      const answer = (await ask(`${gateUrl()}/v1/gate/decide`, runtimeToken, request)) as GateAnswer | null;
      if (answer?.decision === "allow" && answer.capability !== undefined && answer.plan_digest !== null) {
        this.allowed.set(`${id}/${String(attempt)}`, answer.capability.id);
        if (answer.repeated) this.repeated += 1;
        return { capabilityId: answer.capability.id, planDigest: answer.plan_digest };
      }
      if (answer !== null && !saysNothing.has(answer.reason_code))
        throw new Error(`${id} was answered ${answer.decision}: ${answer.reason_code}`);
      await wait(retryMs);
    }
    throw new Error("given up");
  }
}

/** The answer's body; null when there was none. */
export async function ask(url: string, token: string, body: unknown): Promise<unknown> {
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(requestTimeoutMs),
    });
    const read: unknown = await response.json();
    return response.ok ? read : null;
  } catch {
    return null;
  }
}
