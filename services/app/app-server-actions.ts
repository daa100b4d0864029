import { readFileSync } from "node:fs";
import { startProxy } from "../adapters/codex/app-server/proxy.ts";
import type { Actions, Common } from "../cli/actions.ts";
import type { Config } from "../platform/config.ts";
import { requireSetting } from "../platform/config.ts";

/** `fabric app-server`: the proxy on this process' own standard input and output. */
export function appServerActions(configOf: (common: Common) => Promise<Config>): Pick<Actions, "appServer"> {
  return {
    async appServer(common, { argv, sandbox, gateUrl, tokenFile }) {
      // Whoever names both needs no other setting.
      const config = gateUrl === undefined || tokenFile === undefined ? await configOf(common) : null;
      const url = gateUrl ?? requireSetting(config?.gate.url, "FABRIC_GATE_URL", "or give --gate-url");
      const file =
        tokenFile ?? requireSetting(config?.tokenFile, "FABRIC_TOKEN_FILE", "or give --token-file");
      const proxy = startProxy({
        argv,
        gateUrl: url.replace(/\/$/, ""),
        // Read at each call: it is renewed.
        token: () => readFileSync(file, "utf8").trim(),
        pins: { sandbox },
        client: { input: process.stdin, output: process.stdout },
      });
      common.signal.addEventListener("abort", () => proxy.stop(), { once: true });
      const code = await proxy.ended;
      // Standard output is the wire: nothing else is written to it.
      return { text: "", exit: code === 0 ? 0 : 1 };
    },
  };
}
