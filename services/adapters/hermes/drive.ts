import { mkdir, readFile, writeFile } from "node:fs/promises";
import { parse, stringify } from "yaml";
import { isJsonObject } from "../../platform/payload-fields.ts";
import type { ClientDrive } from "../../platform/runtime-room.ts";

const version = "0.19.0";
/** Runs one prompt headless. The client's own guard is off, so that only the hook can stop a command. */
export const drive: ClientDrive = {
  pins: { pip: [`hermes-agent==${version}`] },
  programIn: (dir) => `${dir}/bin/hermes`,
  pathIn: (dir) => `${dir}/bin`,
  tools: {
    shell: (command) => ({ name: "terminal", input: { command } }),
    write: (path, content) => ({ name: "write_file", input: { path, content } }),
    subagent: (prompt) => ({ name: "delegate_task", input: { goal: prompt, context: "none" } }),
  },
  async prepare({ program, home, modelUrl, apiKey, prompt }) {
    const folder = `${home}/.hermes`;
    await mkdir(folder, { recursive: true });
    const path = `${folder}/config.yaml`;
    const before: unknown = parse(await readFile(path, "utf8").catch(() => "{}"));
    await writeFile(
      path,
      stringify({
        ...(isJsonObject(before) ? before : {}),
        model: {
          default: "scripted",
          provider: "custom",
          context_length: 200_000,
          base_url: `${modelUrl}/v1`,
          api_key: apiKey,
        },
        approvals: { mode: "off" },
      }),
    );
    // A fresh answer to its look for updates, so that it does not ask the package index.
    const checked = { ts: 4_102_444_800, behind: 0, rev: null, ver: version };
    await writeFile(`${folder}/.update_check`, JSON.stringify(checked));
    return {
      argv: [program, "chat", "-Q", "-q", prompt],
      env: {
        OPENAI_BASE_URL: `${modelUrl}/v1`,
        OPENAI_API_KEY: apiKey,
        HERMES_DISABLE_TELEMETRY: "1",
        TIRITH_ENABLED: "false",
        DO_NOT_TRACK: "1",
        NO_PROXY: "*",
      },
      stdin: "",
    };
  },
};
