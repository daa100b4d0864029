// Asks the gate from inside a runtime. Dependency-free and small: it runs in somebody else's process. Whatever goes wrong
// in front of a tool is a no, and nothing here throws. `fabric.json` beside the plugin says where the gate is.
import { createHash, randomBytes } from "node:crypto";
import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";

const defaults = {
  deadline_ms: 2_000,
  observe_deadline_ms: 3_000,
  spool_max_bytes: 4 * 1024 * 1024,
  approval_wait_ms: 0,
  approval_poll_ms: 1_000,
};
/** An answer holds a changed input at most. */
const answerMaxBytes = 16 * 1024 * 1024;
/** Reports that wait for an earlier one; past it they go to the spool. */
const waitingMax = 512;
/** A process that took the spool and is this long silent is gone; another one delivers what it left. */
const leftBehindMs = 60_000;
/** The gate answers a hook in its own form, also where it does not know who speaks: nothing was taken then. */
const notKnown = /"reason":"(?:TOKEN|ROLE|TENANT)_/;
const ownFiles = /\.(?:m?js|json|ya?ml|py)$/;

/** A no that says what is wrong and what to do. */
const refusal = (code, what) => ({
  decision: "deny",
  // Ours, and no word of the gate.
  isOwn: true,
  reason: `${code}: ${what}; the call did not run. Try again later, or ask whoever runs the policy gate`,
});

/** Waits, or until the signal. */
const pause = (ms, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
const isText = (value) => typeof value === "string" && value !== "";
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** The gate names what it sends: a page that happens to read like an answer is none. */
const isJson = ({ headers }) => /^application\/(?:problem\+)?json\b/i.test(headers.get("content-type") ?? "");

/** The body, as far as an answer goes: what has no end is not kept until the deadline. */
async function toText(response) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    // Leaving the loop ends the connection.
    if (bytes > answerMaxBytes) return "";
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/**
 * What became of a report. `again`: a server that is ill, one that is not the gate, or a token that is renewed, which a report
 * is not. A body that is refused is refused again.
 */
function fateOf({ status, text }) {
  if (!text.startsWith("{")) return "again";
  if (status === 200) return notKnown.test(text) ? "again" : "taken";
  return status >= 400 && status < 500 && ![401, 403, 408, 429].includes(status) ? "refused" : "again";
}

/** A report as a text; null: it is no JSON. */
function toLine(payload) {
  try {
    return JSON.stringify(payload);
  } catch {
    return null;
  }
}

/** Only what is understood whole is an answer. */
function toAnswer(body) {
  if (isObject(body)) {
    if (body.decision === "allow") return { decision: "allow" };
    if (body.decision === "modify" && isObject(body.input)) return { decision: "modify", input: body.input };
    if (body.decision === "deny" && isText(body.reason)) return { decision: "deny", reason: body.reason };
    if (body.decision === "confirm" && isText(body.reason) && isText(body.what))
      return { decision: "confirm", reason: body.reason, what: body.what };
    if (body.decision === "ask" && isText(body.reason) && isText(body.approval_id)) return body;
  }
  return refusal("GATE_UNREACHABLE", "the policy gate's answer is not understood");
}

/** What is installed, as this process loaded it: its own files and their configuration. */
function toDigest(folder) {
  const hash = createHash("sha256");
  for (const name of readdirSync(folder).sort())
    if (ownFiles.test(name))
      hash.update(`${name}\0`).update(
        createHash("sha256")
          .update(readFileSync(join(folder, name)))
          .digest(),
      );
  return `sha256:${hash.digest("hex")}`;
}

function readConfiguration(folder) {
  try {
    const read = JSON.parse(readFileSync(join(folder, "fabric.json"), "utf8"));
    if (!isText(read.gate_url) || !isText(read.token_file))
      return { problem: "fabric.json names no gate_url and token_file" };
    const configuration = { ...defaults, ...read };
    if (!(configuration.deadline_ms > 0)) return { problem: "fabric.json has no usable deadline_ms" };
    return { configuration };
  } catch (error) {
    return { problem: `fabric.json cannot be read (${error.code ?? "no JSON"})` };
  }
}

/** Opens the way to the gate for the plugin in `folder`. Never throws: a plugin that fails to load would guard nothing. */
export function openGate({ runtime, version, folder }) {
  const { configuration, problem } = readConfiguration(folder);
  let digest = "unknown";
  try {
    digest = toDigest(folder);
  } catch {
    // The heartbeat then says so.
  }
  const instance = `${runtime}-${process.pid}-${randomBytes(6).toString("hex")}`;
  const spool = configuration?.spool_file;
  let tail = Promise.resolve();
  let results = tail;
  let waiting = 0;
  let drains = 0;
  let lost = 0;

  async function post(body, limitMs) {
    // Read each time: tokens end and are renewed.
    const token = readFileSync(configuration.token_file, "utf8").trim();
    const response = await fetch(new URL(`/v1/hooks/${runtime}`, configuration.gate_url), {
      method: "POST",
      redirect: "error",
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        "x-fabric-hooks": String(configuration.configuration_hash ?? digest),
      },
      body,
      signal: AbortSignal.timeout(limitMs),
    });
    return { status: response.status, text: isJson(response) ? await toText(response) : "" };
  }

  async function askOnce(payload) {
    if (configuration === undefined) return refusal("HOOK_MISCONFIGURED", problem);
    try {
      // What came back from earlier calls may bear on this one: it is told before this is asked, or nothing is.
      await results;
      if (hasSpooled() && !(await drain()))
        return refusal("GATE_UNREACHABLE", "results of earlier calls could not be reported");
      const { status, text } = await post(JSON.stringify(payload), configuration.deadline_ms);
      return status === 200 ? toAnswer(JSON.parse(text)) : toAnswer(null);
    } catch {
      return refusal("GATE_UNREACHABLE", "the policy gate did not answer");
    }
  }

  async function askInTime(payload) {
    const limitMs = configuration?.deadline_ms ?? defaults.deadline_ms;
    let timer;
    const late = new Promise((resolve) => {
      timer = setTimeout(
        () => resolve(refusal("GATE_UNREACHABLE", `the policy gate did not answer in ${limitMs} ms`)),
        limitMs,
      );
    });
    try {
      return await Promise.race([askOnce(payload), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Resolves to one of allow, modify, deny, ask; `confirm` where the payload said that there is a dialog. Never rejects. In
   * time, but for an open ticket: the same call is asked again until a person decided or the configured wait is over. What
   * comes back then is the ticket.
   */
  async function ask(payload, signal) {
    let answer = await askInTime(payload);
    const untilMs = Date.now() + (configuration?.approval_wait_ms ?? 0);
    while (answer.decision === "ask" && Date.now() < untilMs && signal?.aborted !== true) {
      await pause(Math.min(configuration.approval_poll_ms, untilMs - Date.now()), signal);
      const again = await askInTime(payload);
      // A gate that is away decides nothing: the ticket stays open.
      if (again.isOwn !== true) answer = again;
    }
    return answer;
  }

  /** Reports what happened, in order, without throwing. Resolves when it is reported or in the spool. */
  function tell(payload) {
    if (configuration === undefined) return Promise.resolve();
    // As it is now: the client may change its objects while the report waits.
    const body = toLine(payload);
    if (body === null) {
      lost += 1;
      return Promise.resolve();
    }
    if (waiting >= waitingMax) {
      keep(body);
      return Promise.resolve();
    }
    waiting += 1;
    tail = tail.then(() => deliver(body)).finally(() => (waiting -= 1));
    return tail;
  }

  /** Reports what a call came to, while the client goes on: the next call is not asked for before it was told. */
  function tellResult(payload) {
    results = Promise.all([results, tell(payload)]);
  }

  async function deliver(body) {
    try {
      const fate = fateOf(await post(body, configuration.observe_deadline_ms));
      if (fate === "again") keep(body);
      else if (fate === "refused") lost += 1;
    } catch {
      keep(body);
    }
  }

  function spooledBytes() {
    try {
      return spool === undefined ? 0 : statSync(spool).size;
    } catch {
      return 0;
    }
  }

  /** Files of processes that ended while they delivered. */
  function leftBehind() {
    try {
      const folder = dirname(spool);
      return readdirSync(folder)
        .filter((name) => name.startsWith(`${basename(spool)}.`))
        .map((name) => join(folder, name))
        .filter((path) => Date.now() - statSync(path).mtimeMs > leftBehindMs);
    } catch {
      return [];
    }
  }

  const hasSpooled = () => spool !== undefined && (spooledBytes() > 0 || leftBehind().length > 0);

  function keep(body) {
    try {
      const line = `${body}\n`;
      if (spool === undefined || spooledBytes() + Buffer.byteLength(line) > configuration.spool_max_bytes) {
        lost += 1;
        return;
      }
      mkdirSync(dirname(spool), { recursive: true, mode: 0o700 });
      appendFileSync(spool, line, { mode: 0o600 });
    } catch {
      lost += 1;
    }
  }

  /** Takes a file out of everybody else's sight, so that two processes do not send the same; false: another one has it. */
  function take(path, taken) {
    try {
      renameSync(path, taken);
      // The age of a taken file is how long its process is silent.
      utimesSync(taken, new Date(), new Date());
      return true;
    } catch (error) {
      if (error.code === "ENOENT") return false;
      throw error;
    }
  }

  /** Sends what the spool holds, and what others left; false: some of it is still there. */
  async function drain() {
    let isWhole = true;
    for (const path of [...leftBehind(), spool])
      isWhole = (await drainFile(path, `${spool}.${instance}.${(drains += 1)}`)) && isWhole;
    return isWhole;
  }

  async function drainFile(path, taken) {
    if (!take(path, taken)) return true;
    const lines = readFileSync(taken, "utf8").split("\n").filter(isText);
    let sent = 0;
    try {
      for (const line of lines) {
        const fate = fateOf(await post(line, configuration.deadline_ms));
        if (fate === "again") break;
        if (fate === "refused") lost += 1;
        sent += 1;
      }
    } catch {
      // The rest goes back.
    }
    for (const line of lines.slice(sent)) appendFileSync(spool, `${line}\n`, { mode: 0o600 });
    rmSync(taken, { force: true });
    return sent === lines.length;
  }

  return {
    instance,
    configuration: configuration ?? defaults,
    ask,
    tell,
    tellResult,
    /** What proves that these hooks are loaded here. */
    plugin: () => ({
      version,
      configuration: String(configuration?.configuration_hash ?? "unknown"),
      files: digest,
      lost,
      ...(problem === undefined ? {} : { problem }),
    }),
  };
}
