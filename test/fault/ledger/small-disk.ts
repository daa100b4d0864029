import { execFile } from "node:child_process";
import { mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** A small file system of its own, in memory, that can be filled. */
export interface SmallDisk {
  /** Takes every byte that is left; gives how many. */
  fill(): Promise<number>;
  free(): Promise<void>;
  close(): Promise<void>;
}

/** Mounts it; null where one may not. What an earlier run left there goes. */
export async function mountSmallDisk(folder: string, megabytes: number): Promise<SmallDisk | null> {
  await unmount(folder);
  await mkdir(folder, { recursive: true });
  try {
    await run("mount", ["-t", "tmpfs", "-o", `size=${String(megabytes)}m,mode=0755`, "tmpfs", folder]);
  } catch {
    return null;
  }
  const filler = join(folder, "filler");
  return {
    async fill() {
      const file = await open(filler, "a");
      let bytes = 0;
      try {
        for (const chunk of [Buffer.alloc(1024 * 1024, 1), Buffer.alloc(4096, 1)]) {
          for (;;) {
            const wrote = await file.write(chunk).then(
              ({ bytesWritten }) => bytesWritten,
              (error: NodeJS.ErrnoException) => {
                if (error.code === "ENOSPC") return 0;
                throw error;
              },
            );
            bytes += wrote;
            if (wrote < chunk.length) break;
          }
        }
      } finally {
        await file.close();
      }
      return bytes;
    },
    free: () => rm(filler, { force: true }),
    close: () => unmount(folder),
  };
}

const unmount = async (folder: string): Promise<void> => {
  await run("umount", [folder]).catch(() => undefined);
};
