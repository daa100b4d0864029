import type { RuntimeGuide } from "../../../platform/runtime-room.ts";
import { codexAppServer } from "./app-server.ts";
import { capabilities } from "./capabilities.ts";

/** Codex's App Server, behind the proxy: a client starts the proxy in the server's place. */
export const guide: RuntimeGuide = {
  adapter: codexAppServer,
  capabilities,
  configure: [
    "wherever a client starts `codex app-server`, let it start `fabric app-server -- codex app-server`;",
    "give --gate-url and --token-file (a token of the role runtime), or FABRIC_GATE_URL and FABRIC_TOKEN_FILE;",
    "--listen ws://127.0.0.1:PORT --client-token-file FILE takes a client over WebSocket instead;",
    "--sandbox keep leaves the client's sandbox on, and with it a second run outside of it that nobody is asked about.",
  ],
};
