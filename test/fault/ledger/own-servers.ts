import { join } from "node:path";
import { downStack, upStack } from "../../../services/stack/stack.ts";
import type { StackHandle } from "../../../services/stack/stack.ts";
import { thisMachine } from "../../../services/stack/machine.ts";
import { projectDir } from "../../harness/stack.ts";
import type { SmallDisk } from "./small-disk.ts";
import { mountSmallDisk } from "./small-disk.ts";

/** Servers that nobody else uses, so that they may be killed; on small disks where one may mount. */
export interface OwnServers {
  readonly stack: StackHandle;
  /** Null: nothing could be mounted here. */
  readonly disks: { readonly kafka: SmallDisk; readonly postgres: SmallDisk } | null;
  close(): Promise<void>;
}

const name = "fault-servers";
const kafkaMegabytes = 192;
const postgresMegabytes = 512;

export async function startOwnServers(): Promise<OwnServers> {
  const machine = thisMachine();
  const place = { rootDir: projectDir, name, machine };
  await downStack({ ...place, wipe: true }).catch(() => undefined);
  const folder = (part: string): string => join(projectDir, ".fabric", name, part);
  const kafka = await mountSmallDisk(folder("kafka"), kafkaMegabytes);
  const postgres = await mountSmallDisk(folder("postgres"), postgresMegabytes);
  const unmount = async (): Promise<void> => {
    await Promise.all([kafka?.close(), postgres?.close()]);
  };
  try {
    const stack = await upStack({ ...place, detach: false });
    const isOnThem = stack.way === "local";
    return {
      stack,
      disks: isOnThem && kafka !== null && postgres !== null ? { kafka, postgres } : null,
      async close() {
        await stack.stop();
        await unmount();
        await downStack({ ...place, wipe: true });
      },
    };
  } catch (error) {
    await downStack(place).catch(() => undefined);
    await unmount();
    throw error;
  }
}
