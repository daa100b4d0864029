import type { ClientDrive } from "../../platform/runtime-room.ts";

/** The client knows this one from its own catalogue: to an unknown one it gives no tool for patches. */
const model = "gpt-5.5";

/** Given on the command line, so that the configuration with the hooks stays as it was installed. */
const settings = (modelUrl: string): readonly string[] => [
  `model="${model}"`,
  `model_provider="scripted"`,
  `model_providers.scripted={name="scripted",base_url="${modelUrl}/v1",wire_api="responses",env_key="SCRIPTED_API_KEY",request_max_retries=0,stream_max_retries=0}`,
  "check_for_update_on_startup=false",
  "features.multi_agent=true",
  "features.apps=false",
  "features.daemon_auto_start=false",
  "features.plugins=false",
  "analytics.enabled=false",
  "feedback.enabled=false",
  `otel.exporter="none"`,
  `otel.trace_exporter="none"`,
  `otel.metrics_exporter="none"`,
];

/** Runs the client headless, without its own sandbox, so that only the hook can stop a tool. */
export const drive: ClientDrive = {
  pins: { npm: ["@openai/codex@0.169.0"] },
  programIn: (dir) => `${dir}/node_modules/.bin/codex`,
  tools: {
    shell: (command) => ({ name: "exec_command", input: { cmd: command } }),
    write(path, content) {
      const added = content
        .replace(/\n$/, "")
        .split("\n")
        .map((line) => `+${line}\n`)
        .join("");
      return {
        name: "apply_patch",
        input: `*** Begin Patch\n*** Add File: ${path}\n${added}*** End Patch\n`,
      };
    },
    subagent: (prompt) => ({ name: "spawn_agent", namespace: "multi_agent_v1", input: { message: prompt } }),
  },
  prepare: ({ program, modelUrl, apiKey, prompt }) =>
    Promise.resolve({
      argv: [
        ...[program, "exec", "--skip-git-repo-check", "--json", "--sandbox", "danger-full-access"],
        ...settings(modelUrl).flatMap((one) => ["-c", one]),
        "-",
      ],
      env: { SCRIPTED_API_KEY: apiKey },
      stdin: prompt,
    }),
};
