import { Fault } from "../../schemas/faults.ts";
import { dockerKill, dockerStart, dockerStop } from "./docker.ts";
import type { PartName } from "./parts.ts";
import { signalRecorded, waitForEnd } from "./process-record.ts";
import { ensurePart, pidOf, recordFileOf, stopPart } from "./run-part.ts";
import type { StackHandle, UpOptions } from "./stack-handle.ts";
import { loadState } from "./state.ts";
import { openWorkshop, stackDirOf, withStack } from "./workshop.ts";
import type { Workshop } from "./workshop.ts";

const reopen = async (options: UpOptions): Promise<Workshop> => {
  const state = await loadState(stackDirOf(options));
  if (!state) throw new Fault("STACK_FAILED", "the stack was taken down: bring it up again");
  return openWorkshop(options, state);
};

export const partControls = (
  options: UpOptions,
  pids: Partial<Record<PartName, number>>,
): Pick<StackHandle, "stopPart" | "start" | "restart" | "kill"> => {
  const start = async (workshop: Workshop, part: PartName): Promise<void> => {
    if (workshop.state.way === "docker") {
      await dockerStart(await workshop.docker(), part);
      return;
    }
    const parts = await workshop.local();
    await ensurePart(workshop.host, parts[part]);
    const pid = await pidOf(parts[part]);
    if (pid !== undefined) pids[part] = pid;
  };
  const stop = async (workshop: Workshop, part: PartName): Promise<void> => {
    if (workshop.state.way === "docker") await dockerStop(await workshop.docker(), part);
    else await stopPart(workshop.host, (await workshop.local())[part]);
  };
  return {
    start: (part) => withStack(options, async () => start(await reopen(options), part)),
    stopPart: (part) => withStack(options, async () => stop(await reopen(options), part)),
    restart: (part) =>
      withStack(options, async () => {
        const workshop = await reopen(options);
        await stop(workshop, part);
        await start(workshop, part);
      }),
    kill: async (part, signal = "SIGKILL") => {
      const workshop = await reopen(options);
      if (workshop.state.way === "docker") {
        await dockerKill(await workshop.docker(), part, signal);
        return;
      }
      const signalled = await signalRecorded(recordFileOf((await workshop.local())[part]), signal);
      if (signalled && signal === "SIGKILL") await waitForEnd(signalled, 10_000);
    },
  };
};
