import { Fault } from "../../schemas/faults.ts";
import type { ClientProgram, ConsentState, InstallTarget, RuntimeRoom } from "../platform/runtime-room.ts";
import { readText } from "./config-files.ts";
import { hasSameContent } from "./same-content.ts";

/** What stands on disk, and what the client says of it. */
export interface Inspection {
  /** Of all our parts the worst: `trusted` is as installed, where the client keeps no consent of its own. */
  readonly state: ConsentState;
  readonly findings: readonly string[];
  /** Ways past the hooks that the configuration opens. */
  readonly openings: readonly string[];
}

/** Compares the files with what this version would install, and asks the client about its consent. */
export async function inspectInstall(
  room: RuntimeRoom,
  target: InstallTarget,
  program: ClientProgram,
): Promise<Inspection> {
  const texts = new Map<string, string | null>();
  const findings: string[] = [];
  let state: ConsentState = "trusted";
  for (const edit of room.setup.edits(target)) {
    const text = await readText(edit.path);
    texts.set(edit.path, text);
    const found = stateOf(edit.path, text, edit);
    if (found.state === "trusted") continue;
    findings.push(found.why);
    if (state !== "missing") state = found.state;
  }
  if (state === "trusted" && room.setup.consent !== undefined) {
    state = await room.setup.consent.state(program, target);
    if (state !== "trusted" && state !== "managed") {
      findings.push(`the client itself calls the hooks ${state}, so it skips them`);
    }
  }
  for (const path of otherPaths(room, target, texts)) texts.set(path, await readText(path));
  const openings = room.setup.findOpenings((path) => texts.get(path) ?? null, target);
  return { state, findings, openings };
}

function stateOf(
  path: string,
  text: string | null,
  edit: { toInstalled(before: string | null): string; toRemoved(text: string): string | null },
): { readonly state: ConsentState; readonly why: string } {
  if (text === null) return { state: "missing", why: `${path} does not exist` };
  try {
    if (hasSameContent(edit.toInstalled(text), text)) return { state: "trusted", why: "" };
    return edit.toRemoved(text) === text
      ? { state: "missing", why: `nothing of ours is in ${path}` }
      : { state: "modified", why: `our part of ${path} is not as it was installed` };
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return { state: "modified", why: error.message };
  }
}

/** Files that the room looks at for openings, beside those that it edits. */
function otherPaths(
  room: RuntimeRoom,
  target: InstallTarget,
  known: ReadonlyMap<string, string | null>,
): readonly string[] {
  const wanted = new Set<string>();
  room.setup.findOpenings((path) => {
    if (!known.has(path)) wanted.add(path);
    return known.get(path) ?? null;
  }, target);
  return [...wanted];
}
