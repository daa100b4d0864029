import { open } from "node:fs/promises";
import type { DatasetWriter } from "./dataset-writer.ts";

/** Text is handed to the file in pieces of about this size. */
const heldChars = 1024 * 1024;

/** JSON lines, UTF-8. */
export async function openJsonlWriter(file: string): Promise<DatasetWriter> {
  const handle = await open(file, "wx", 0o600);
  let held: string[] = [];
  let chars = 0;
  async function flush(): Promise<void> {
    const text = held.join("");
    held = [];
    chars = 0;
    if (text !== "") await handle.writeFile(text);
  }
  return {
    async write(row) {
      const line = `${JSON.stringify(row)}\n`;
      held.push(line);
      chars += line.length;
      if (chars >= heldChars) await flush();
    },
    async finish() {
      await flush();
      await handle.close();
    },
    abandon: () => handle.close(),
  };
}
