import type { ChildProcess } from "node:child_process";
import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { projectDir } from "../../harness/stack.ts";
import type { ChildSettings, GapMessage } from "../processes/child.ts";

/** Longest time from a start to the gap: two cores may do much besides. */
const gapDeadlineMs = 60_000;

/** A service process that is killed and started again. */
export class KilledService {
  readonly #program: string;
  readonly #settings: ChildSettings;
  #child: ChildProcess | undefined;
  /** `program`: a file of `test/fault/processes`. */
  constructor(program: string, settings: ChildSettings) {
    this.#program = join(projectDir, "dist", "test", "fault", "processes", `${program}.js`);
    this.#settings = settings;
  }

  async start(gap?: ChildSettings["gap"]): Promise<void> {
    if (!existsSync(this.#program))
      throw new Error("run `make test-faults`: it compiles the processes of this test");
    const child = fork(this.#program, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    this.#child = child;
    const ready = once(child, "message");
    const ended = once(child, "exit").then(() => {
      throw new Error(`${this.#settings.name} ended while it started`);
    });
    ended.catch(() => undefined);
    child.send(gap === undefined ? this.#settings : { ...this.#settings, gap });
    await Promise.race([ready, ended]);
  }

  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Asks it to end in good order; its exit code. */
  end(): Promise<number | null> {
    return this.#end("SIGTERM");
  }

  async #end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return null;
    const ended = once(child, "exit") as Promise<[number | null]>;
    child.kill(signal);
    const [code] = await ended;
    return code;
  }

  /** Runs until the process stands in the gap, and kills it there; what it stood in the middle of. It is not started again. */
  async endIn(gap: GapMessage["gap"]): Promise<readonly string[]> {
    await this.kill();
    await this.start(gap);
    const child = this.#child;
    if (child === undefined) throw new Error("the process was not started");
    for (;;) {
      const [message] = (await once(child, "message", {
        signal: AbortSignal.timeout(gapDeadlineMs),
      })) as [Partial<GapMessage>];
      if (message.gap !== gap) continue;
      await this.kill();
      return message.about ?? [];
    }
  }

  /** The same, and starts it again. */
  async killIn(gap: GapMessage["gap"]): Promise<readonly string[]> {
    const about = await this.endIn(gap);
    await this.start();
    return about;
  }
}
