import { Fault } from "../../schemas/faults.ts";

export type Way = "configured" | "docker" | "local";

/** Servers that the configuration names; all three or none. */
export interface NamedEndpoints {
  readonly kafkaBrokers?: readonly string[];
  readonly registryUrl?: string;
  readonly postgresUrl?: string;
}

export interface WayInput {
  readonly endpoints?: NamedEndpoints;
  /** The caller insists. */
  readonly forced?: "docker" | "local";
  /** Where this stack's data already is. */
  readonly remembered?: "docker" | "local";
  /** The engine's version, undefined when none answers. */
  readonly askDocker: () => Promise<string | undefined>;
}

export interface ChosenWay {
  readonly way: Way;
  /** Why, for people. */
  readonly reason: string;
}

const names = ["kafkaBrokers", "registryUrl", "postgresUrl"] as const;

const isNamed = (value: string | readonly string[] | undefined): boolean =>
  value !== undefined && value.length > 0;

/** Configured endpoints, else a Docker engine that answers, else local processes; data that is already there stays where it is. */
export const chooseWay = async (input: WayInput): Promise<ChosenWay> => {
  const endpoints = input.endpoints ?? {};
  const missing = names.filter((name) => !isNamed(endpoints[name]));
  if (missing.length === 0) return { way: "configured", reason: "the configuration names all three servers" };
  if (missing.length < names.length) {
    throw new Fault(
      "CONFIG_INVALID",
      `the configuration names some servers and not ${missing.join(", ")}: name all three, or none for a local stack`,
    );
  }
  if (input.forced === "local") return { way: "local", reason: "local processes were asked for" };
  if (input.forced === undefined && input.remembered === "local") {
    return { way: "local", reason: "this stack's data is with local processes" };
  }
  const engine = await input.askDocker();
  if (engine !== undefined) return { way: "docker", reason: `Docker engine ${engine} answers` };
  if (input.forced === "docker" || input.remembered === "docker") {
    const why = input.forced ? "a Docker engine was asked for" : "this stack's data is with a Docker engine";
    throw new Fault(
      "TOOL_MISSING",
      `${why} and none answers: start it, or give the data up with \`fabric down --wipe\``,
    );
  }
  return { way: "local", reason: "no Docker engine answers" };
};
