import { randomBytes } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { Fault } from "../../schemas/faults.ts";
import { readLoopbackUrl } from "../adapters/codex/app-server/loopback.ts";
import type { ProxyRules } from "../adapters/codex/app-server/proxy.ts";
import { startProxy } from "../adapters/codex/app-server/proxy.ts";
import type { ServerWire } from "../adapters/codex/app-server/server-wire.ts";
import { spawnServer } from "../adapters/codex/app-server/server-wire.ts";
import { startWebSocketProxy } from "../adapters/codex/app-server/ws-proxy.ts";
import { connectServer } from "../adapters/codex/app-server/ws-server-wire.ts";
import type { Actions, Common } from "../cli/actions.ts";
import type { Report } from "../cli/report.ts";
import type { Config } from "../platform/config.ts";
import { requireSetting } from "../platform/config.ts";
import { untilAborted } from "./until-aborted.ts";

type AppServerOptions = Parameters<Actions["appServer"]>[1];

/** A message holds a whole tool result at most. */
const frameMaxBytes = 16 * 1024 * 1024;
const clientTokenBytes = 32;
const othersBits = 0o077;
const readToken = (file: string): string => readFileSync(file, "utf8").trim();

/** `fabric app-server`: the proxy on this process' own standard input and output, or on a WebSocket. */
export function appServerActions(configOf: (common: Common) => Promise<Config>): Pick<Actions, "appServer"> {
  return {
    async appServer(common, options) {
      const { sandbox, gateUrl, tokenFile } = options;
      const openServer = toServer(options);
      // Whoever names both needs no other setting.
      const config = gateUrl === undefined || tokenFile === undefined ? await configOf(common) : null;
      const url = gateUrl ?? requireSetting(config?.gate.url, "FABRIC_GATE_URL", "or give --gate-url");
      const file =
        tokenFile ?? requireSetting(config?.tokenFile, "FABRIC_TOKEN_FILE", "or give --token-file");
      const rules: ProxyRules = {
        gateUrl: url.replace(/\/$/, ""),
        // Read at each call: it is renewed.
        token: () => readToken(file),
        pins: { sandbox },
      };
      if (options.listen !== undefined) return listen(common, options, options.listen, rules, openServer);
      const proxy = startProxy({
        ...rules,
        server: openServer(),
        client: { input: process.stdin, output: process.stdout },
      });
      common.signal.addEventListener("abort", () => proxy.stop(), { once: true });
      const code = await proxy.ended;
      // Standard output is the wire: nothing else is written to it.
      return { text: "", exit: code === 0 ? 0 : 1 };
    },
  };
}

/** One way to the server, and not two. */
function toServer({ argv, connect, connectTokenFile }: AppServerOptions): () => ServerWire {
  const [program, ...rest] = argv;
  if ((program === undefined) === (connect === undefined))
    throw new Fault("USAGE", "give the server's command line after `--`, or --connect, and not both");
  if (program !== undefined) return () => spawnServer({ argv: [program, ...rest] });
  const address = readLoopbackUrl(connect ?? "", "--connect");
  return () =>
    connectServer({
      url: address,
      frameMaxBytes,
      ...(connectTokenFile === undefined ? {} : { token: () => readToken(connectTokenFile) }),
    });
}

async function listen(
  common: Common,
  { clientTokenFile }: AppServerOptions,
  address: string,
  rules: ProxyRules,
  openServer: () => ServerWire,
): Promise<Report> {
  if (clientTokenFile === undefined)
    throw new Fault("USAGE", "a client of --listen has to show a token: give --client-token-file");
  const proxy = await startWebSocketProxy({
    ...rules,
    listen: readLoopbackUrl(address, "--listen"),
    clientToken: readOrMakeToken(clientTokenFile),
    openServer,
    frameMaxBytes,
  });
  common.screen.line(
    `clients come to ${proxy.url} with \`authorization: Bearer\` and what is in ${clientTokenFile}`,
  );
  await untilAborted(common.signal);
  await proxy.close();
  return { text: "" };
}

/** The client's token; a new one where there is no file. Throws CONFIG_INVALID when others may read it. */
function readOrMakeToken(file: string): string {
  try {
    writeFileSync(file, `${randomBytes(clientTokenBytes).toString("base64url")}\n`, {
      mode: 0o600,
      flag: "wx",
    });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST")
      throw new Fault("CONFIG_INVALID", `\`${file}\` cannot be written`, { cause: error });
  }
  const token = readToken(file);
  if (token === "" || (statSync(file).mode & othersBits) !== 0)
    throw new Fault(
      "CONFIG_INVALID",
      `\`${file}\` has to hold a token that nobody else may read; run chmod 600`,
    );
  return token;
}
