import { writeFile } from "node:fs/promises";
import type { ClientStart, DriveRun } from "../../platform/runtime-room.ts";

/** Starts the client's gateway on a free port, then one turn of its agent through it: only there are child agents. */
const program = `
import { spawn } from "node:child_process";
import { connect, createServer } from "node:net";
const [client, prompt] = process.argv.slice(2);
const free = createServer();
await new Promise((resolve) => free.listen(0, "127.0.0.1", resolve));
const port = String(free.address().port);
await new Promise((resolve) => free.close(resolve));
const env = { ...process.env, OPENCLAW_GATEWAY_PORT: port };
const start = (args) => spawn("node", [client, ...args], { env, stdio: ["ignore", "inherit", "inherit"] });
const gateway = start(["gateway", "run", "--port", port]);
let isGone = false;
gateway.on("exit", () => (isGone = true));
const answers = () =>
  new Promise((resolve) => {
    const socket = connect(Number(port), "127.0.0.1", () => resolve(true));
    socket.on("error", () => resolve(false));
    socket.on("connect", () => socket.destroy());
  });
while (!isGone && !(await answers())) await new Promise((resolve) => setTimeout(resolve, 200));
const agent = start(["agent", "--agent", "main", "--json", "--message", prompt]);
const code = await new Promise((resolve) => agent.on("exit", resolve));
gateway.kill();
process.exit(code ?? 1);
`;

/** The same run as `start`, through a gateway of its own. */
export async function toGatewayStart(start: ClientStart, run: DriveRun): Promise<ClientStart> {
  const path = `${run.home}/gateway-run.mjs`;
  await writeFile(path, program);
  return { ...start, argv: ["node", path, run.program, run.prompt] };
}
