import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createRequire, register } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Processor } from "../../processors/kit/processor.ts";
import type { Adapter } from "../../schemas/adapter.ts";
import { Fault } from "../../schemas/faults.ts";

/** SHA-256 of a version's file, so that a run goes on with the same code or not at all. */
export async function digestOfVersion(file: string): Promise<string> {
  try {
    return createHash("sha256")
      .update(await readFile(file))
      .digest("hex");
  } catch (error) {
    throw new Fault("USAGE", `\`${file}\` cannot be read`, { cause: error });
  }
}

/**
 * The processor `name` of a file: an export that is one, else what an exported function makes of `settings`. The file's own
 * code runs: only in a process that may do no more than it should.
 */
export async function loadProcessorVersion(
  file: string,
  name: string,
  settings: unknown,
): Promise<Processor> {
  const exported = Object.values(await loadModule(file));
  const isWanted = (value: unknown): value is Processor =>
    isRecord(value) && value["name"] === name && isFunction(value["project"]) && isFunction(value["apply"]);
  const ready = exported.find(isWanted);
  if (ready !== undefined) return ready;
  for (const make of exported.filter(isFunction)) {
    try {
      const made: unknown = make(settings);
      if (isWanted(made)) return made;
    } catch {
      // Another function of the file, which wants other settings.
    }
  }
  throw new Fault("USAGE", `\`${file}\` exports no processor \`${name}\`, and no function that makes one`);
}

/** The adapter of `runtime` that a file exports. */
export async function loadAdapterVersion(file: string, runtime: string): Promise<Adapter> {
  const found = Object.values(await loadModule(file)).find(
    (value): value is Adapter & Record<string, unknown> =>
      isRecord(value) && value["runtime"] === runtime && isFunction(value["translate"]),
  );
  if (found === undefined) throw new Fault("USAGE", `\`${file}\` exports no adapter of \`${runtime}\``);
  return found;
}

async function loadModule(file: string): Promise<Record<string, unknown>> {
  const url = pathToFileURL(resolve(file)).href;
  if (file.endsWith(".ts")) readTypeScript();
  try {
    return (await import(/* @vite-ignore */ url)) as Record<string, unknown>;
  } catch (error) {
    throw new Fault(
      "USAGE",
      `\`${file}\` cannot be loaded: ${error instanceof Error ? error.message : String(error)}`,
      {
        cause: error,
      },
    );
  }
}

let readsTypeScript = "typescript" in process.features && process.features.typescript !== false;

/** Node reads TypeScript by itself from 22.18 on; before, the compiler of a clone of the project does it. */
function readTypeScript(): void {
  if (readsTypeScript) return;
  let typescript: string;
  try {
    typescript = createRequire(import.meta.url).resolve("typescript");
  } catch (error) {
    throw new Fault(
      "USAGE",
      "this Node reads no TypeScript: name the compiled .js file, or use Node 22.18 or newer",
      {
        cause: error,
      },
    );
  }
  register(`data:text/javascript,${encodeURIComponent(hook)}`, { data: { typescript } });
  readsTypeScript = true;
}

const hook = `
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
let ts;
export function initialize({ typescript }) { ts = createRequire(typescript)(typescript); }
export async function load(url, context, next) {
  if (!url.startsWith("file:") || !url.endsWith(".ts")) return next(url, context);
  const source = await readFile(new URL(url), "utf8");
  const { outputText } = ts.transpileModule(source, { compilerOptions: { module: 99, target: 9, verbatimModuleSyntax: true } });
  return { format: "module", shortCircuit: true, source: outputText };
}`;

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;

const isFunction = (value: unknown): value is (...args: unknown[]) => unknown => typeof value === "function";
