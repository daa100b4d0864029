// The Node form of hook.sh, for machines without curl: the same arguments, files beside it, replies and spool.
//
//   node hook.mjs gate|observe HASH [FOLDER]
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { request } from "node:http";
import { basename, dirname } from "node:path";
import { fileURLToPath } from "node:url";

const [mode, hash = "", given] = process.argv.slice(2);
const dir = given ?? dirname(fileURLToPath(import.meta.url));
const spool = `${dir}/spool`;
const spoolMaxFiles = 500;
const spoolMaxBytes = 16 * 2 ** 20;
const drainMaxFiles = 20;
const leftBehindMs = 120_000;
const shimForm = "text/x-fabric-hook";
const ticketLine = "fabric 0 ticket\n";
const pollMs = 1_000;
/** An answer holds a changed input at most. */
const answerMaxBytes = 16 * 2 ** 20;

function refuse(why) {
  process.stderr.write(
    `GATE_UNREACHABLE: ${why}; nothing was allowed, try again, or ask a person to look at the policy gate\n`,
  );
  process.exitCode = 2;
}

function readSettings() {
  try {
    const [url, token, deadlines] = ["url", "token", "deadlines"].map((name) =>
      readFileSync(`${dir}/${name}`, "utf8").trim(),
    );
    const [gateS, observeS, waitS = 0] = deadlines.split(" ").map(Number);
    if (!/^https?:\/\//.test(url) || token === "" || !(gateS > 0) || !(observeS > 0)) return null;
    return { url, token, gateS, observeS, waitS };
  } catch {
    return null;
  }
}

/** Everything on standard input. */
async function readBody() {
  const chunks = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** The gate's text, or null when it did not answer in time. */
async function send({ url, token }, seconds, body, form = shimForm) {
  const ask = url.startsWith("https:") ? (await import("node:https")).request : request;
  return new Promise((resolve) => {
    const asked = ask(
      url,
      {
        method: "POST",
        agent: false,
        headers: {
          authorization: `Bearer ${token}`,
          "x-fabric-hooks": hash,
          "content-type": "application/json",
          "content-length": body.length,
          accept: form,
        },
      },
      (response) => {
        const chunks = [];
        let bytes = 0;
        response.on("data", (chunk) => {
          bytes += chunk.length;
          if (bytes > answerMaxBytes) asked.destroy(new Error("too long"));
          else chunks.push(chunk);
        });
        response.on("error", () => resolve(null));
        // The gate answers a hook with 200 whatever it says.
        const isWhole = () => response.complete && response.statusCode === 200;
        response.on("end", () => resolve(isWhole() ? Buffer.concat(chunks).toString("utf8") : null));
      },
    );
    const deadline = setTimeout(() => asked.destroy(new Error("late")), seconds * 1000);
    asked.on("error", () => resolve(null));
    asked.on("close", () => clearTimeout(deadline));
    asked.end(body);
  });
}

/** Prints a reply of the form `fabric CODE`, text; false for everything else: that is no answer of the gate. */
function answer(reply) {
  const [, code, text] = /^fabric ([02])(?: ticket)?\n([^]*)$/.exec(reply ?? "") ?? [];
  if (code === "0") process.stdout.write(text);
  else if (code === "2" && text.trim() !== "") {
    process.stderr.write(text);
    process.exitCode = 2;
  } else return false;
  return true;
}

/** The same is asked again while its ticket is open. A poll that fails decides nothing: the ticket stays the answer. */
async function askAndWait(settings, body) {
  const { gateS, waitS } = settings;
  if (!(waitS > 0)) return send(settings, gateS, body);
  const ask = () => send(settings, gateS, body, `${shimForm}; wait=1`);
  let reply = await ask();
  const untilMs = Date.now() + waitS * 1000;
  while (reply?.startsWith(ticketLine) && Date.now() < untilMs) {
    await new Promise((resolve) => setTimeout(resolve, pollMs));
    const again = await ask();
    if (/^fabric [02]/.test(again ?? "")) reply = again;
  }
  return reply;
}

async function gate() {
  const settings = readSettings();
  if (settings === null) return refuse(`the hook's settings in ${dir} cannot be read`);
  if (!(await deliverFirst(settings)))
    return refuse(`reports of earlier calls in ${spool} could not be delivered`);
  const reply = await askAndWait(settings, await readBody());
  if (reply === null) return refuse("the policy gate did not answer");
  if (!answer(reply)) refuse("what answered is not the policy gate");
}

/** Whether the gate took what was told. One that does not know who speaks took nothing: a token is renewed, a report is not. */
const isTaken = (reply) => /^fabric (?!2\n(?:TOKEN|ROLE|TENANT)_)/.test(reply ?? "");

const waiting = () =>
  readdirSync(spool)
    .filter((name) => name.endsWith(".json"))
    .sort();

function keep(file) {
  const files = waiting();
  const bytes = [...files, basename(file)].reduce((sum, name) => sum + statSync(`${spool}/${name}`).size, 0);
  if (files.length >= spoolMaxFiles || bytes > spoolMaxBytes) {
    rmSync(file);
    writeFileSync(`${spool}/lost`, "lost\n", { flag: "a", mode: 0o600 });
    return;
  }
  renameSync(file, `${spool}/${Math.floor(Date.now() / 1000)}-${process.pid}.json`);
}

/** What a hook that was killed was about to send, and its mark. */
function adoptLeft() {
  for (const name of readdirSync(spool)) {
    const path = `${spool}/${name}`;
    if (!name.startsWith(".") || Date.now() - statSync(path).mtimeMs < leftBehindMs) continue;
    if (name === ".draining") rmSync(path, { recursive: true });
    else if (name.startsWith(".new-")) renameSync(path, `${spool}/0-${name.slice(5)}.json`);
  }
}

/** What came back from earlier calls may bear on the next one: it is told before that is asked; false: it could not be. */
async function deliverFirst(settings) {
  for (let patience = 3; existsSync(spool) && waiting().length > 0;) {
    const drained = await drain(settings);
    if (drained === "stuck" || (drained === "busy" && patience === 0)) return waiting().length === 0;
    if (drained !== "busy") continue;
    patience -= 1;
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
  return true;
}

/** `busy`: another hook is at it; `stuck`: the gate takes nothing. */
async function drain(settings) {
  try {
    adoptLeft();
  } catch {
    // Another hook was quicker.
  }
  const files = waiting().slice(0, drainMaxFiles);
  if (files.length === 0) return "done";
  try {
    mkdirSync(`${spool}/.draining`);
  } catch {
    return "busy";
  }
  try {
    for (const name of files) {
      const reply = await send(settings, settings.observeS, readFileSync(`${spool}/${name}`));
      if (!isTaken(reply)) return "stuck";
      rmSync(`${spool}/${name}`);
    }
    return "done";
  } finally {
    rmSync(`${spool}/.draining`, { recursive: true });
  }
}

async function observe() {
  const body = await readBody();
  mkdirSync(spool, { recursive: true, mode: 0o700 });
  // On disk before it is sent, so that a hook that is killed loses nothing.
  const file = `${spool}/.new-${process.pid}`;
  writeFileSync(file, body, { mode: 0o600 });
  const settings = readSettings();
  const reply = settings && (await send(settings, settings.observeS, body));
  if (!isTaken(reply)) return keep(file);
  rmSync(file);
  answer(reply);
  process.exitCode = 0;
  await drain(settings);
}

try {
  if (mode === "gate") await gate();
  else if (mode === "observe") await observe();
  else refuse(`the hook was called as \`${mode}\`, which is neither gate nor observe`);
} catch (error) {
  if (mode === "observe") process.exitCode = 0;
  else refuse(`the hook failed (${error.code ?? error.name})`);
}
