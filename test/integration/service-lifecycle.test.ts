import { connect } from "node:net";
import type { Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../harness/eventually.ts";
import { ownRequest } from "../harness/gate-rig.ts";
import type { OtlpCollector } from "../harness/otlp-collector.ts";
import { startOtlpCollector } from "../harness/otlp-collector.ts";
import type { ServiceProcess, ServiceRig } from "../harness/service-rig.ts";
import { openServiceRig } from "../harness/service-rig.ts";

/** Kubernetes gives a pod this long before it kills it. */
const graceMs = 30_000;
const callers = 4;

const processorNames = ["audit", "breaker", "cost", "eval", "takeover", "trace"] as const;
/**
 * Every role of `fabric serve`, in two halves that are ended in turn; a gate in each, so that callers have one while the
 * other is started again.
 */
const halves: readonly (readonly (readonly string[])[])[] = [
  [["gate"], ["relay"], ["desk"], ["exporter"]],
  [["gate"], ["sealer"], ["cost-watch"], processorNames.flatMap((name) => ["processor", name])],
];

let rig: ServiceRig;
let collector: OtlpCollector;
let settings: Readonly<Record<string, string>>;
beforeAll(async () => {
  [rig, collector] = await Promise.all([openServiceRig(), startOtlpCollector()]);
  settings = { FABRIC_OTLP_ENDPOINT: collector.endpoint, FABRIC_OTLP_HOLD_MS: "0" };
});
afterAll(async () => {
  await rig.close();
  await collector.close();
});

/** What a gate answers that is short of time or of its database, as on a machine under load: asked again, the call is decided. */
const refusedForNow = new Set(["GATE_TIMEOUT", "GATE_UNAVAILABLE"]);

/** Agents that go on asking; whoever finds a gate gone asks the same call of the other one. */
class Callers {
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
  start(): void {
    this.#work = Array.from({ length: callers }, (_, caller) => this.#ask(caller));
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

const count = async (text: string, values: readonly unknown[] = []): Promise<number> =>
  Number((await rig.sql.query<{ n: bigint }>(text, values)).rows[0]?.n);

/** Every processor has read every log to its end, and what the gate decided stands in the trail once. */
async function untilAllIsProjected(): Promise<void> {
  await eventually(
    () => count("SELECT count(*) AS n FROM outbox.events"),
    (n) => n === 0,
    {
      what: "an empty outbox",
      deadlineMs: 60_000,
    },
  );
  for (const name of processorNames) {
    await eventually(
      async () => {
        const marks = await rig.sql.query<{ topic: string; next_offset: bigint }>(
          "SELECT topic, next_offset FROM host.watermarks WHERE processor = $1",
          [name],
        );
        const behind: string[] = [];
        for (const { topic, next_offset: next } of marks.rows) {
          const [end] = await rig.admin.fetchTopicOffsets(topic);
          if (BigInt(end?.high ?? "0") > next)
            behind.push(`${topic}: ${String(next)} of ${end?.high ?? "?"}`);
        }
        return marks.rows.length === 0 ? ["no watermark"] : behind;
      },
      (behind) => behind.length === 0,
      { what: `${name} at the end of its logs`, deadlineMs: 60_000, pollMs: 200 },
    );
  }
}

const url = (one: ServiceProcess, role: string): URL => new URL(role === "desk" ? one.deskUrl : one.gateUrl);

/** Opens a connection and sends a request's head and a part of its body. */
async function halfRequest(address: URL, token: string, body: string): Promise<Socket> {
  const socket = connect(Number(address.port), address.hostname);
  socket.on("error", () => undefined);
  await new Promise((resolve) => socket.once("connect", resolve));
  socket.write(
    `POST /v1/gate/decide HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: ${String(body.length)}\r\n\r\n${body.slice(0, 10)}`,
  );
  return socket;
}

const untilRefused = async (address: URL): Promise<unknown> =>
  eventually(
    () =>
      fetch(new URL("/healthz", address)).then(
        () => false,
        (error: { cause?: { code?: string } }) => error.cause?.code === "ECONNREFUSED",
      ),
    Boolean,
    { what: "a server that takes no more calls", deadlineMs: 30_000 },
  );

describe("every service of `fabric serve`", () => {
  it("ends in good order on SIGTERM and comes back after SIGKILL, with no hand, while calls come in: nothing is lost, nothing counts twice", async () => {
    const running = await Promise.all(
      halves.map((half) => Promise.all(half.map((role) => rig.start(role, settings)))),
    );
    await Promise.all(running.flat().map((one) => one.untilReady()));
    const traffic = new Callers(
      () => running.flatMap(([gate]) => (gate === undefined ? [] : [gate])),
      await rig.token(),
    );
    traffic.start();
    const progress = async (): Promise<void> => {
      const before = traffic.answered.size;
      await eventually(
        () => traffic.answered.size,
        (now) => now > before + callers,
        { what: "calls that go on", deadlineMs: 60_000 },
      );
    };
    const ends: Record<string, unknown> = {};
    const wanted: Record<string, unknown> = {};
    try {
      for (const signal of ["SIGTERM", "SIGKILL"] as const) {
        for (const [index, half] of halves.entries()) {
          await progress();
          traffic.mayBreak = signal === "SIGKILL";
          const last = running[index] ?? [];
          for (const [place, end] of (await Promise.all(last.map((one) => one.end(signal)))).entries()) {
            const name = `${signal} ${half[place]?.join(" ") ?? ""} of half ${String(index)}`;
            ends[name] = { code: end.code, by: end.signal, inTime: end.tookMs < graceMs };
            wanted[name] = {
              code: signal === "SIGTERM" ? 0 : null,
              by: signal === "SIGTERM" ? null : signal,
              inTime: true,
            };
          }
          running[index] = await Promise.all(half.map((role) => rig.start(role, settings)));
          await Promise.all(running[index].map((one) => one.untilReady()));
          traffic.mayBreak = false;
        }
      }
      await progress();
    } finally {
      await traffic.stop();
    }
    expect(ends).toEqual(wanted);
    expect(traffic.broken).toEqual([]);

    await untilAllIsProjected();
    // A machine under load may refuse a call for its time, and the call is asked again: each ruling stands in the trail once.
    const decided = await count("SELECT count(*) AS n FROM gate.decisions");
    const trail = (what: string, types: readonly string[]): Promise<number> =>
      count(`SELECT count(${what}) AS n FROM audit.trail WHERE event_type = ANY ($1)`, [types]);
    expect(await trail("*", ["agent.tool.requested"])).toBe(decided);
    expect(await trail("*", ["agent.tool.authorized", "agent.tool.denied"])).toBe(decided);
    expect(await trail("DISTINCT tool_call_id", ["agent.tool.requested"])).toBe(traffic.answered.size);
    expect(await count("SELECT count(*) AS n FROM host.letters")).toBe(0);
    expect(await count("SELECT count(*) AS n FROM host.watermarks WHERE stopped_cause IS NOT NULL")).toBe(0);
  }, 900_000);
});

describe("a service that is asked to end", () => {
  for (const role of ["gate", "desk"] as const) {
    it(`answers the call that is under way, and takes no new one: ${role}`, async () => {
      const one = await rig.start([role], settings);
      await one.untilReady();
      const body = JSON.stringify(ownRequest("shell.run", { command: "ls" }));
      const socket = await halfRequest(url(one, role), await rig.token(), body);
      let answer = "";
      socket.on("data", (chunk: Buffer) => (answer += chunk.toString()));
      // A whole call after it: the half one's head was read by then.
      await fetch(new URL("/healthz", url(one, role)));
      one.signal("SIGTERM");
      await untilRefused(url(one, role));
      socket.write(body.slice(10));
      const end = await one.ended;
      expect(end).toMatchObject({ code: 0, signal: null });
      // The desk knows no such route: what counts is that it says so.
      expect(answer).toMatch(role === "gate" ? /^HTTP\/1\.1 200 .*"decision":"allow"/s : /^HTTP\/1\.1 404 /);
    });

    it(`is not held up by a caller that never ends its call: ${role}`, async () => {
      const one = await rig.start([role], settings);
      await one.untilReady();
      const socket = await halfRequest(url(one, role), await rig.token(), "x".repeat(100));
      await fetch(new URL("/healthz", url(one, role)));
      const end = await one.end("SIGTERM");
      expect([end.code, end.tookMs < graceMs]).toEqual([0, true]);
      socket.destroy();
    });
  }
});
