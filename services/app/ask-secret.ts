import { closeSync, openSync } from "node:fs";
import { ReadStream, WriteStream } from "node:tty";
import { Fault } from "../../schemas/faults.ts";

const enter = new Set(["\r", "\n", "\u0004"]);
const interrupt = "\u0003";
const erase = new Set(["\u007f", "\b"]);

/**
 * Reads a line from the terminal without showing it. From the terminal and nothing else: an agent that runs as the same
 * user can pipe, but knows no passphrase to type.
 */
export function askSecret(prompt: string): Promise<string> {
  let fd: number;
  try {
    fd = openSync("/dev/tty", "r+");
  } catch (error) {
    throw new Fault(
      "ROLE_MISSING",
      "this needs a person's passphrase, and there is no terminal to type it; run it on one, or give --token-file",
      { cause: error },
    );
  }
  const input = new ReadStream(fd);
  const output = new WriteStream(fd);
  return new Promise((resolve, reject) => {
    let typed = "";
    function end(outcome: () => void): void {
      input.setRawMode(false);
      input.pause();
      output.write("\n", () => {
        input.destroy();
        output.destroy();
        try {
          closeSync(fd);
        } catch {
          // The streams closed it.
        }
        outcome();
      });
    }
    input.on("data", (chunk: Buffer) => {
      for (const one of chunk.toString("utf8")) {
        if (enter.has(one)) {
          end(() => resolve(typed));
          return;
        }
        if (one === interrupt) {
          end(() => reject(new Fault("USAGE", "stopped")));
          return;
        }
        typed = erase.has(one) ? [...typed].slice(0, -1).join("") : typed + one;
      }
    });
    input.setRawMode(true);
    output.write(`${prompt}: `);
  });
}
