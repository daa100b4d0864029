import { ownRequest } from "./gate-rig.ts";
import type { ServiceProcess } from "./service-rig.ts";

/** What a gate answers that is short of time or of its database, as on a machine under load: asked again, the call is decided. */
const refusedForNow = new Set(["GATE_TIMEOUT", "GATE_UNAVAILABLE"]);

/** Agents that go on asking; whoever finds a gate gone asks the same call of the other one. */
export class ServiceCallers {
  readonly answered = new Map<string, string>();
  /** Calls that a gate took and did not answer as it should. */
  readonly broken: string[] = [];
  #running = true;
  #work: Promise<void>[] = [];
  readonly #gates: () => readonly ServiceProcess[];
  readonly #token: string;
  /** While a gate is killed, connections may break; never while one ends in good order. */
  mayBreak = false;

  constructor(gates: () => readonly ServiceProcess[], token: string) {
    this.#gates = gates;
    this.#token = token;
  }
  start(count: number): void {
    this.#work = Array.from({ length: count }, (_, caller) => this.#ask(caller));
  }
  async stop(): Promise<void> {
    this.#running = false;
    await Promise.all(this.#work);
  }
  async #ask(caller: number): Promise<void> {
    for (let turn = 0; this.#running; turn += 1) {
      const id = `call-${String(caller)}-${String(turn)}`;
      const command = turn % 3 === 0 ? "git push --force origin main" : "ls";
      const body = ownRequest(
        "shell.run",
        { command },
        { session_id: `s-${String(caller)}`, tool_call_id: id },
      );
      for (let attempt = caller; !this.answered.has(id); attempt += 1) await this.#askOnce(id, body, attempt);
    }
  }
  async #askOnce(id: string, body: object, attempt: number): Promise<void> {
    const gates = this.#gates();
    const gate = gates[attempt % gates.length];
    if (gate === undefined) return;
    const mayBreak = this.mayBreak;
    try {
      const response = await fetch(`${gate.gateUrl}/v1/gate/decide`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${this.#token}`,
          "content-type": "application/json",
          connection: "close",
        },
        body: JSON.stringify(body),
      });
      const answer = (await response.json()) as { readonly decision?: string; readonly reason_code?: string };
      if (response.status === 200 && ["ALLOWED", "STATIC_DENY"].includes(answer.reason_code ?? "")) {
        this.answered.set(id, answer.decision ?? "");
      } else if (!refusedForNow.has(answer.reason_code ?? ""))
        this.broken.push(`${id}: ${String(response.status)} ${JSON.stringify(answer)}`);
    } catch (error) {
      const cause = (error as { readonly cause?: { readonly code?: string } }).cause?.code ?? String(error);
      // Nobody listens there any more, or the system had the connection and the gate had not: the call was never taken.
      // One that was taken is answered ("answers the call that is under way").
      if (cause === "ECONNREFUSED" || cause === "ECONNRESET" || mayBreak || this.mayBreak) return;
      this.broken.push(`${id}: ${cause}`);
    }
  }
}
