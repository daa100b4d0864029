import type { ChildProcess } from "node:child_process";
import { fork } from "node:child_process";
import { join } from "node:path";
import { z } from "zod";
import type { Processor } from "../../processors/kit/processor.ts";
import { Fault } from "../../schemas/faults.ts";
import type { Report } from "../cli/report.ts";
import { createLog } from "../platform/log.ts";
import type { PlainTranslation } from "../replay/compare-translations.ts";
import { translatePlainly } from "../replay/compare-translations.ts";
import type { RunningRun } from "../replay/open-runs.ts";
import { thisMachine } from "../stack/machine.ts";
import { loadCostFiles, processorsWith } from "./load-processors.ts";
import { loadAdapterVersion, loadProcessorVersion } from "./load-version.ts";
import type { Place } from "./place.ts";
import { runShadow } from "./run-shadow.ts";
import type { RunPlace, VersionFacts, VersionQuestion } from "./shadow-job.ts";
import { shadowOrderSchema, toRangeMessage, versionFactsSchema } from "./shadow-job.ts";

const saidSchema = z.union([
  z.object({ facts: versionFactsSchema }),
  z.object({ translations: z.array(z.record(z.string(), z.unknown())) }),
  z.object({ reasons: z.array(z.string()) }),
]);
const reportEveryMs = 500;
/** How long a process that was asked to stop may take before it is killed. */
const stopMs = 15_000;
/** A version's code is only loaded and asked something. */
const answerMs = 120_000;

/** The code of a run: the version that ships, or that of a file. */
export async function loadProcessorOfRun(question: VersionQuestion): Promise<Processor> {
  const cost = await loadCostFiles(question.pricesDir, question.budgetsFile);
  const { processor, versionFile } = question;
  if (versionFile !== null)
    return loadProcessorVersion(versionFile, processor, processor === "cost" ? cost : undefined);
  // A shadow of the breaker counts, and trips nothing: what it would hold is long over.
  const all = processorsWith(cost, { usual: [], byTenant: new Map() });
  const found = all.find(({ name }) => name === processor);
  if (found === undefined)
    throw new Fault(
      "USAGE",
      `there is no processor \`${processor}\`; ${all.map(({ name }) => name).join(", ")} are`,
    );
  return found;
}

/** What a processor says of itself. */
export const factsOf = ({ version, topics }: Processor): VersionFacts => ({ version, topics: [...topics] });

/**
 * Runs versions in processes of their own, whose environment holds nothing of ours: what a version's code finds there is
 * the one login of its run.
 */
export function processesOfRuns(place: Place): RunPlace {
  const open = (): Child =>
    new Child(join(place.packageDir, "dist", "services", "app", "main.js"), place.packageDir);
  async function ask<K extends keyof Answers>(order: object, name: K): Promise<Pick<Answers, K>> {
    const child = open();
    const timer = setTimeout(() => child.kill(), answerMs);
    try {
      child.send(order);
      return await Promise.race([child.answer(name), child.failed]);
    } finally {
      clearTimeout(timer);
      await child.stop();
    }
  }
  return {
    facts: async (question) => (await ask({ kind: "facts", question }, "facts")).facts,
    translate: async (runtime, versionFile, bodies) =>
      (await ask({ kind: "translate", runtime, versionFile, bodies }, "translations")).translations,
    start(job) {
      const child = open();
      child.send({ kind: "job", job: { ...job, ranges: toRangeMessage(job.ranges) } });
      return Promise.resolve({
        extend: (ranges) => {
          child.send({ kind: "extend", ranges: toRangeMessage(ranges) });
        },
        reasons: () => child.reasons,
        failed: child.failed,
        stop: () => child.stop(),
      });
    },
  };
}

interface Answers {
  readonly facts: VersionFacts;
  readonly translations: readonly PlainTranslation[];
}

class Child {
  readonly #process: ChildProcess;
  readonly #ended: Promise<void>;
  readonly failed: Promise<never>;
  reasons: readonly string[] = [];
  #said = "";
  #stopping = false;

  constructor(main: string, cwd: string) {
    this.#process = fork(main, ["replay", "run"], {
      cwd,
      env: { PATH: thisMachine().env["PATH"] ?? "", NO_COLOR: "1" },
      execArgv: [],
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    this.#process.stderr?.on("data", (chunk: Buffer) => {
      this.#said = (this.#said + chunk.toString("utf8")).slice(-4_000);
    });
    this.#ended = new Promise((resolve) => this.#process.once("close", () => resolve()));
    this.#process.on("message", (message) => {
      const said = saidSchema.safeParse(message);
      if (said.success && "reasons" in said.data) this.reasons = said.data.reasons;
    });
    this.failed = this.#ended.then(() => {
      if (this.#stopping) return new Promise<never>(() => undefined);
      throw new Fault(
        "INTERNAL",
        `the process of the run ended: ${this.#said.trim().split("\n").at(-1) ?? ""}`,
      );
    });
    // Whoever waits for it hears of it; when nobody does, it is no unhandled rejection.
    this.failed.catch(() => undefined);
  }

  answer<K extends keyof Answers>(name: K): Promise<Pick<Answers, K>> {
    return new Promise((resolve) => {
      this.#process.on("message", (message) => {
        const said = saidSchema.safeParse(message);
        if (said.success && name in said.data) resolve(said.data as unknown as Pick<Answers, K>);
      });
    });
  }

  send(order: object): void {
    if (this.#process.connected) this.#process.send(order);
  }

  kill(): void {
    this.#process.kill("SIGKILL");
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    this.send({ kind: "stop" });
    const timer = setTimeout(() => this.kill(), stopMs);
    await this.#ended;
    clearTimeout(timer);
  }
}

/** `fabric replay run`: the process of one run. It lives no longer than who started it. */
export async function shadowProcess(signal: AbortSignal): Promise<Report> {
  if (process.send === undefined)
    throw new Fault("USAGE", "this command is started by `fabric replay start`, and by nobody else");
  const log = createLog({ service: "replay", level: "error" });
  const say = (message: z.input<typeof saidSchema>): void => {
    if (process.connected) process.send?.(message);
  };
  let running: RunningRun | null = null;
  const timer = setInterval(() => {
    if (running !== null) say({ reasons: [...running.reasons()] });
  }, reportEveryMs);
  try {
    await new Promise<void>((resolve, reject) => {
      const fail = (error: unknown): void =>
        reject(error instanceof Error ? error : new Error(String(error)));
      signal.addEventListener("abort", () => resolve(), { once: true });
      process.once("disconnect", () => resolve());
      process.on("message", (message) => {
        const parsed = shadowOrderSchema.safeParse(message);
        if (!parsed.success) return fail(parsed.error);
        const order = parsed.data;
        if (order.kind === "stop") resolve();
        else if (order.kind === "extend") running?.extend(order.ranges);
        else if (order.kind === "facts")
          loadProcessorOfRun(order.question).then((processor) => say({ facts: factsOf(processor) }), fail);
        else if (order.kind === "translate")
          loadAdapterVersion(order.versionFile, order.runtime).then(
            (adapter) => say({ translations: order.bodies.map((body) => translatePlainly(adapter, body)) }),
            fail,
          );
        else {
          loadProcessorOfRun(order.job).then((processor) => {
            running = runShadow(order.job, processor, log);
          }, fail);
        }
      });
    });
  } finally {
    clearInterval(timer);
    await (running as RunningRun | null)?.stop();
    if (process.connected) process.disconnect();
  }
  return { text: "" };
}
