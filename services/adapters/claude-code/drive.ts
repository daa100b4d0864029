import type { ClientDrive } from "../../platform/runtime-room.ts";

/** Runs the client headless. Its tools are allowed by its own settings, so that only the hook can stop them. */
export const drive: ClientDrive = {
  pins: { npm: ["@anthropic-ai/claude-code@2.1.328"] },
  programIn: (dir) => `${dir}/node_modules/.bin/claude`,
  tools: {
    shell: (command) => ({ name: "Bash", input: { command, description: "Run a command" } }),
    write: (path, content, workspace) => ({
      name: "Write",
      input: { file_path: `${workspace}/${path}`, content },
    }),
    subagent: (prompt) => ({
      name: "Agent",
      input: { description: "Delegate", prompt, subagent_type: "general-purpose", run_in_background: false },
    }),
  },
  prepare: ({ program, modelUrl, apiKey, prompt }) =>
    Promise.resolve({
      argv: [
        ...[program, "-p", "--output-format", "stream-json", "--verbose", "--include-hook-events"],
        ...["--allowedTools", "Bash", "Read", "Write", "Edit", "Agent"],
      ],
      env: {
        ANTHROPIC_BASE_URL: modelUrl,
        ANTHROPIC_API_KEY: apiKey,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        DISABLE_AUTOUPDATER: "1",
        DISABLE_ERROR_REPORTING: "1",
        DISABLE_TELEMETRY: "1",
      },
      stdin: prompt,
    }),
};
