import { writeFile } from "node:fs/promises";
import type { Bypass } from "../../platform/runtime-room.ts";
import { drive } from "./drive.ts";

const leaves = "typed.txt";

/** Starts the client's server and runs a command of a person's, as `!` in its terminal interface does. */
const program = `
import { spawn } from "node:child_process";
const [command] = process.argv.slice(2);
const server = spawn(command, ["serve", "--port", "0", "--hostname", "127.0.0.1"], { stdio: ["ignore", "pipe", "inherit"] });
const url = await new Promise((resolve, reject) => {
  let said = "";
  server.on("exit", () => reject(new Error("the server ended: " + said)));
  server.stdout.on("data", (chunk) => {
    said += chunk;
    const found = /https?:\\/\\/127\\.0\\.0\\.1:\\d+/.exec(said);
    if (found) resolve(found[0]);
  });
});
const post = async (path, body) => {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  console.log(path, response.status, text.slice(0, 2000));
  return text;
};
try {
  const { id } = JSON.parse(await post("/session", {}));
  await post("/session/" + id + "/shell", {
    agent: "build",
    model: { providerID: "scripted", modelID: "model" },
    command: "echo typed > ${leaves}",
  });
} finally {
  server.kill();
}
process.exit(0);
`;

/** A command of the person's own, for which the client calls no hook in front of tools. */
export const userShell: Bypass = {
  behaviour: "bypass_user_shell",
  turns: [],
  leaves,
  async start(run) {
    const start = await drive.prepare(run);
    const path = `${run.home}/user-shell.mjs`;
    await writeFile(path, program);
    return { ...start, argv: [process.execPath, path, run.program] };
  },
};
