import { mkdir, readFile, writeFile } from "node:fs/promises";
import { isJsonObject } from "../../platform/payload-fields.ts";
import type { ClientDrive, ClientStart, DriveRun } from "../../platform/runtime-room.ts";
import { toGatewayStart } from "./gateway-run.ts";

const nodeIn = (dir: string): string => `${dir}/node/node_modules/node/bin`;

const readConfig = async (path: string): Promise<Record<string, unknown>> => {
  const text = await readFile(path, "utf8").catch(() => "{}");
  const parsed = JSON.parse(text) as unknown;
  return isJsonObject(parsed) ? parsed : {};
};

/** Lays the scripted model beside what is there, and starts the embedded agent. */
async function prepare(run: DriveRun): Promise<ClientStart> {
  const { program, home, workspace, modelUrl, apiKey, prompt } = run;
  const folder = `${home}/.openclaw`;
  const path = `${folder}/openclaw.json`;
  await mkdir(folder, { recursive: true });
  const model = {
    ...{ id: "model", name: "Scripted", reasoning: false, input: ["text"] },
    ...{ contextWindow: 120_000, maxTokens: 4_096 },
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  };
  await writeFile(
    path,
    JSON.stringify({
      ...(await readConfig(path)),
      models: {
        mode: "replace",
        catalogRefresh: { enabled: false },
        providers: {
          scripted: {
            baseUrl: `${modelUrl}/v1`,
            apiKey,
            api: "openai-completions",
            models: [model],
          },
        },
      },
      agents: { defaults: { model: { primary: "scripted/model" }, workspace, skipBootstrap: true } },
      tools: { exec: { host: "gateway", security: "full", ask: "off" } },
      gateway: { mode: "local", bind: "loopback", auth: { mode: "token", token: "made-up-token" } },
      logging: { file: `${home}/openclaw.log` },
      telemetry: { enabled: false },
      update: { checkOnStart: false, auto: { enabled: false } },
    }),
  );
  return {
    argv: ["node", program, "agent", "--local", "--agent", "main", "--json", "--message", prompt],
    env: {
      OPENCLAW_HOME: home,
      OPENCLAW_CONFIG_PATH: path,
      OPENCLAW_STATE_DIR: `${home}/state`,
      OPENCLAW_DISABLE_BONJOUR: "1",
      OPENCLAW_NO_AUTO_UPDATE: "1",
      OPENCLAW_NO_RESPAWN: "1",
      OPENCLAW_OFFLINE: "1",
      CLAWHUB_DISABLE_TELEMETRY: "1",
      DO_NOT_TRACK: "1",
    },
    stdin: "",
  };
}

/** Runs the embedded agent headless; for child agents a gateway of its own. */
export const drive: ClientDrive = {
  pins: { npm: ["openclaw@2026.9.6"], node: "24.21.0" },
  programIn: (dir) => `${dir}/node_modules/openclaw/openclaw.mjs`,
  // The client needs a newer Node than this product.
  pathIn: nodeIn,
  tools: {
    shell: (command) => ({ name: "exec", input: { command } }),
    write: (path, content) => ({ name: "write", input: { path, content } }),
    // The client offers most of its tools through a search; this one only in a gateway.
    subagent: (prompt) => ({
      name: "tool_call",
      input: { id: "sessions_spawn", args: { task: prompt } },
    }),
  },
  prepare,
  prepareForSubagent: async (run) => toGatewayStart(await prepare(run), run),
};
