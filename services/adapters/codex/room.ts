import type { Bypass, RuntimeRoom } from "../../platform/runtime-room.ts";
import { capabilities } from "./capabilities.ts";
import { codex } from "./codex.ts";
import { drive } from "./drive.ts";
import { records } from "./records.ts";
import { setup } from "./setup.ts";
import { untrustedHook, untrustedHookLimit } from "./untrusted-hook.ts";

/** Opens a shell that stays, then types into it: what is typed sends no event. */
const typing: Bypass = {
  behaviour: "bypass_write_stdin",
  turns: [
    { name: "exec_command", input: { cmd: "bash", tty: true, yield_time_ms: 500 } },
    (told) => ({
      name: "write_stdin",
      input: {
        session_id: Number(/session ID (\d+)/.exec(told.at(-1)?.text ?? "")?.[1] ?? 0),
        chars: "echo typed > typed.txt\n",
        yield_time_ms: 1_000,
      },
    }),
  ],
  leaves: "typed.txt",
};

/** Codex, whole. */
export const room: RuntimeRoom = {
  adapter: codex,
  capabilities,
  setup,
  drive,
  records,
  limits: { [untrustedHook.behaviour]: untrustedHookLimit },
  bypasses: [typing, untrustedHook],
};
