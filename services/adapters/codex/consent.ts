import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { z } from "zod";
import { Fault } from "../../../schemas/faults.ts";
import type { ClientProgram, ConsentItem, ConsentState, InstallTarget } from "../../platform/runtime-room.ts";

const deadlineMs = 20_000;
const killGraceMs = 2_000;

const hooksSchema = z.object({
  data: z.array(
    z.object({
      hooks: z.array(
        z.looseObject({
          key: z.string(),
          currentHash: z.string(),
          trustStatus: z.string(),
          eventName: z.string().optional(),
          command: z.string().nullish(),
        }),
      ),
    }),
  ),
});
type ListedHook = z.output<typeof hooksSchema>["data"][number]["hooks"][number];
type Call = (method: string, params: unknown) => Promise<unknown>;

/** Calls that nothing of these needs: they ask the network at each start. */
const quiet = ["apps", "plugins", "daemon_auto_start"].flatMap((name) => ["-c", `features.${name}=false`]);

/** Speaks with the client's own server, as its terminal interface does, and ends it. */
async function withServer<T>(program: ClientProgram, use: (call: Call) => Promise<T>): Promise<T> {
  const [command = "", ...args] = program.argv;
  const server = spawn(command, [...args, "app-server", ...quiet], {
    cwd: program.workingDirectory,
    env: program.env,
    stdio: ["pipe", "pipe", "ignore"],
    detached: true,
  });
  const waiting = new Map<number, (message: { result?: unknown; error?: unknown }) => void>();
  const gone = new Promise<never>((_resolve, reject) => {
    const fail = (why: string): void =>
      reject(
        new Fault(
          "TOOL_MISSING",
          `\`${command} app-server\` ${why}, so its trust can be neither read nor given`,
        ),
      );
    server.on("error", () => fail("did not start"));
    server.on("exit", () => fail("ended"));
    setTimeout(fail, deadlineMs, "did not answer").unref();
  });
  gone.catch(() => undefined);
  createInterface({ input: server.stdout }).on("line", (line) => {
    const message = JSON.parse(line) as { id?: number; method?: string; result?: unknown; error?: unknown };
    if (message.method === undefined && message.id !== undefined) waiting.get(message.id)?.(message);
  });
  server.stdin.on("error", () => undefined);
  const send = (message: object): unknown => server.stdin.write(`${JSON.stringify(message)}\n`);
  let lastId = 0;
  const call: Call = async (method, params) => {
    lastId += 1;
    const id = lastId;
    const answered = new Promise<{ result?: unknown; error?: unknown }>((resolve) =>
      waiting.set(id, resolve),
    );
    send({ id, method, params });
    const { result, error } = await Promise.race([answered, gone]);
    if (error === undefined) return result;
    throw new Fault("TOOL_MISSING", `\`${command} app-server\` refused ${method}: ${JSON.stringify(error)}`);
  };
  try {
    await call("initialize", {
      clientInfo: { name: "policy-hook-fabric", title: "policy-hook-fabric", version: "1" },
      capabilities: { experimentalApi: true },
    });
    send({ method: "initialized" });
    return await use(call);
  } finally {
    const ended = new Promise((resolve) => server.once("exit", resolve));
    if (server.pid !== undefined && server.exitCode === null) {
      const kill = (signal: NodeJS.Signals): void => {
        try {
          process.kill(-(server.pid ?? 0), signal);
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
        }
      };
      kill("SIGTERM");
      const late = setTimeout(kill, killGraceMs, "SIGKILL");
      await ended;
      clearTimeout(late);
    }
  }
}

async function listOurs(
  call: Call,
  program: ClientProgram,
  target: InstallTarget,
): Promise<readonly ListedHook[]> {
  const listed = hooksSchema.parse(await call("hooks/list", { cwds: [program.workingDirectory] }));
  return listed.data
    .flatMap(({ hooks }) => hooks)
    .filter(({ command }) => command?.includes(target.fabricDir) === true);
}

/** What the client asks about: each command of ours with its hash. */
export function showConsent(program: ClientProgram, target: InstallTarget): Promise<readonly ConsentItem[]> {
  return withServer(program, async (call) =>
    (await listOurs(call, program, target)).map(({ command, currentHash, eventName, key }) => ({
      what: `${eventName ?? key}: ${command ?? ""}`,
      hash: currentHash,
    })),
  );
}

/** Stores the current hash of our hooks, and of no others, as trusted. */
export function giveConsent(program: ClientProgram, target: InstallTarget): Promise<void> {
  return withServer(program, async (call) => {
    const ours = await listOurs(call, program, target);
    const trusted = ours.map(({ key, currentHash }) => [key, { trusted_hash: currentHash, enabled: true }]);
    await call("config/batchWrite", {
      edits: [
        {
          keyPath: "hooks.state",
          mergeStrategy: "upsert",
          value: Object.fromEntries(trusted) as object,
        },
      ],
      reloadUserConfig: true,
    });
  });
}

const states: readonly ConsentState[] = ["missing", "modified", "untrusted", "trusted", "managed"];
const isState = (text: string): text is ConsentState => states.some((one) => one === text);

/** The worst of our hooks' states, as the client itself tells them. */
export function readConsent(program: ClientProgram, target: InstallTarget): Promise<ConsentState> {
  return withServer(program, async (call) => {
    const found = (await listOurs(call, program, target)).map(({ trustStatus }) => trustStatus);
    if (found.length === 0) return "missing";
    return (
      states.find((state) => found.some((one) => (isState(one) ? one : "untrusted") === state)) ?? "missing"
    );
  });
}
