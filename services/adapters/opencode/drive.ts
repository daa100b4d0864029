import { mkdir, writeFile } from "node:fs/promises";
import type { ClientDrive } from "../../platform/runtime-room.ts";

/** Runs the client headless, with the scripted model as its one provider and without a look at the network. */
export const drive: ClientDrive = {
  pins: { npm: ["opencode-ai@1.18.33"] },
  programIn: (dir) => `${dir}/node_modules/.bin/opencode`,
  tools: {
    shell: (command) => ({ name: "bash", input: { command, description: "Run a command" } }),
    write: (path, content, workspace) => ({
      name: "write",
      input: { filePath: `${workspace}/${path}`, content },
    }),
    subagent: (prompt) => ({
      name: "task",
      input: { description: "Delegate", prompt, subagent_type: "general" },
    }),
  },
  async prepare({ program, home, modelUrl, apiKey, prompt }) {
    const config = `${home}/opencode-model.json`;
    const model = { name: "Scripted", tool_call: true, limit: { context: 128_000, output: 4_096 } };
    await writeFile(
      config,
      JSON.stringify({
        model: "scripted/model",
        small_model: "scripted/model",
        enabled_providers: ["scripted"],
        provider: {
          scripted: {
            npm: "@ai-sdk/openai-compatible",
            name: "Scripted",
            options: { baseURL: `${modelUrl}/v1`, apiKey },
            models: { model },
          },
        },
        autoupdate: false,
        share: "disabled",
      }),
    );
    // Otherwise the client asks a registry for this package before it loads any plugin: over a minute without a network.
    const folder = `${home}/.config/opencode`;
    await mkdir(`${folder}/node_modules`, { recursive: true });
    const dependencies = { "@opencode-ai/plugin": "*" };
    await writeFile(`${folder}/package-lock.json`, JSON.stringify({ packages: { "": { dependencies } } }));
    return {
      argv: [program, "run", "--print-logs", "--log-level", "WARN", prompt],
      env: {
        OPENCODE_CONFIG: config,
        OPENCODE_DISABLE_AUTOUPDATE: "1",
        OPENCODE_DISABLE_CLAUDE_CODE: "1",
        OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
        OPENCODE_DISABLE_MODELS_FETCH: "1",
        OPENCODE_DISABLE_SHARE: "1",
      },
      stdin: "",
    };
  },
};
