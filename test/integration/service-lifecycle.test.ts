import { connect } from "node:net";
import type { Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../harness/eventually.ts";
import { ownRequest } from "../harness/gate-rig.ts";
import type { OtlpCollector } from "../harness/otlp-collector.ts";
import { startOtlpCollector } from "../harness/otlp-collector.ts";
import { ServiceCallers } from "../harness/service-callers.ts";
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

const count = async (text: string, values: readonly unknown[] = []): Promise<number> =>
  Number((await rig.sql.query<{ n: bigint }>(text, values)).rows[0]?.n);

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
    const traffic = new ServiceCallers(
      () => running.flatMap(([gate]) => (gate === undefined ? [] : [gate])),
      await rig.token(),
    );
    traffic.start(callers);
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

    await rig.untilAllIsProjected(processorNames);
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
