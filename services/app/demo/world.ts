import { readFile } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";
import { Fault } from "../../../schemas/faults.ts";
import type { Common } from "../../cli/actions.ts";
import { style } from "../../cli/screen.ts";
import type { Config } from "../../platform/config.ts";
import { requireSetting } from "../../platform/config.ts";
import type { Database } from "../../platform/postgres.ts";
import type { LocalFiles, Place } from "../place.ts";

/** What the story claimed, what was measured, and whether it held. */
export interface Claim {
  readonly claim: string;
  readonly measured: string;
  readonly held: boolean;
}

/** A gate's answer over HTTP. */
export interface HookAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** What every step of the story works with: the running system, seen from outside. */
export interface World {
  readonly place: Place;
  readonly common: Common;
  readonly config: Config;
  readonly files: LocalFiles;
  /** As the stack's superuser: the story looks at tables that no single role may read. */
  readonly sql: Database;
  say(text: string): void;
  show(label: string, value: string): void;
  claim(claim: string, held: boolean, measured: string): void;
  postHook(runtime: string, payload: unknown): Promise<HookAnswer>;
  decide(request: unknown): Promise<HookAnswer>;
  /** Any other route of the gate; with the agent's own token when none is given. */
  ask(method: "GET" | "POST", path: string, body?: unknown, bearer?: string): Promise<HookAnswer>;
  /** Reads until `accept` holds; false at the deadline. */
  until<T>(
    read: () => Promise<T>,
    accept: (value: T) => boolean,
    deadlineMs?: number,
  ): Promise<{ value: T; held: boolean }>;
  count(text: string, values?: readonly unknown[]): Promise<number>;
}

/** Longest wait of a step for the system to catch up; far above what is ever needed. */
const catchUpMs = 30_000;

export async function createWorld(
  place: Place,
  files: LocalFiles,
  common: Common,
  config: Config,
  sql: Database,
  claims: Claim[],
): Promise<World> {
  const { screen } = common;
  const token = (await readFile(files.tokenFile, "utf8")).trim();
  const gateUrl = requireSetting(config.gate.url, "FABRIC_GATE_URL", "the story talks to the gate there");

  const ask: World["ask"] = async (method, path, body, bearer = token) => {
    common.signal.throwIfAborted();
    try {
      const response = await fetch(gateUrl + path, {
        method,
        headers: {
          authorization: `Bearer ${bearer}`,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(10_000),
      });
      const text = await response.text();
      return { status: response.status, body: text === "" ? null : (JSON.parse(text) as unknown) };
    } catch (error) {
      throw new Fault("STACK_FAILED", `the gate at ${gateUrl} does not answer`, { cause: error });
    }
  };

  return {
    place,
    common,
    config,
    files,
    sql,
    say: (text) => screen.line(text),
    show: (label, value) => screen.line(`   ${style(screen, "dim", label.padEnd(10))} ${value}`),
    claim(claim, held, measured) {
      claims.push({ claim, measured, held });
      const mark = held ? style(screen, "green", "✓ held") : style(screen, "red", "✗ FAILED");
      screen.line(`   ${mark}  ${claim} (${measured})`);
    },
    postHook: (runtime, payload) => ask("POST", `/v1/hooks/${runtime}`, payload),
    decide: (request) => ask("POST", "/v1/gate/decide", request),
    ask,
    async until(read, accept, deadlineMs = catchUpMs) {
      const end = Date.now() + deadlineMs;
      for (;;) {
        common.signal.throwIfAborted();
        const value = await read();
        if (accept(value)) return { value, held: true };
        if (Date.now() > end) return { value, held: false };
        await wait(50);
      }
    },
    async count(text, values) {
      const { rows } = await sql.query<{ count: bigint | number }>(text, values);
      return Number(rows[0]?.count ?? 0);
    },
  };
}
