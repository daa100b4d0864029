import { z } from "zod";
import type { FaultCode } from "../../schemas/faults.ts";
import { Fault, faultTable } from "../../schemas/faults.ts";
import type { Config } from "../platform/config.ts";
import { requireSetting } from "../platform/config.ts";

/** One request to the running gate, or to another server that answers like it. */
export interface GateCall {
  readonly method: "GET" | "POST" | "DELETE";
  /** With its query. */
  readonly path: string;
  readonly token: string;
  readonly body?: unknown;
  /** What a person may do when the role is missing. */
  readonly roleHint?: string;
  readonly timeoutMs?: number;
}

const problemSchema = z.object({ code: z.string(), detail: z.string() });
const defaultTimeoutMs = 10_000;

/** Asks the gate over HTTP; a problem document is thrown as the fault that it names. */
export async function callGate(config: Config, call: GateCall): Promise<unknown> {
  const url = requireSetting(config.gate.url, "FABRIC_GATE_URL", "that is where the gate listens");
  return callAt({ url, name: "gate", unreachable: "GATE_UNREACHABLE" }, call);
}

/** Asks the desk in the same way. */
export async function callDesk(config: Config, call: GateCall): Promise<unknown> {
  const url = requireSetting(config.desk.url, "FABRIC_DESK_URL", "that is where the desk listens");
  return callAt({ url, name: "desk", unreachable: "DESK_UNREACHABLE" }, call);
}

interface Server {
  readonly url: string;
  readonly name: string;
  readonly unreachable: FaultCode;
}

async function callAt({ url, name, unreachable }: Server, call: GateCall): Promise<unknown> {
  let response: Response;
  let body: unknown;
  try {
    response = await fetch(`${url}${call.path}`, {
      method: call.method,
      headers: {
        authorization: `Bearer ${call.token}`,
        ...(call.body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
      signal: AbortSignal.timeout(call.timeoutMs ?? defaultTimeoutMs),
    });
    const text = await response.text();
    body = text === "" ? null : (JSON.parse(text) as unknown);
  } catch (error) {
    throw new Fault(unreachable, `no answer from ${url}; start it with \`fabric up\``, {
      cause: error,
    });
  }
  if (response.ok) return body;
  const problem = problemSchema.safeParse(body);
  if (!problem.success) throw new Fault("REQUEST_INVALID", `the ${name} answered ${String(response.status)}`);
  const { code, detail } = problem.data;
  if (!isFaultCode(code)) throw new Fault("REQUEST_INVALID", `${code}: ${detail}`);
  // A server says text and detail in one; the fault adds the text itself.
  const said = detail.startsWith(`${faultTable[code].text}: `)
    ? detail.slice(faultTable[code].text.length + 2)
    : undefined;
  throw new Fault(code, code === "ROLE_MISSING" ? (call.roleHint ?? said) : said);
}

function isFaultCode(code: string): code is FaultCode {
  return Object.hasOwn(faultTable, code);
}
