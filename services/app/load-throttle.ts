import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Fault } from "../../schemas/faults.ts";
import { parseThrottle } from "../gate/throttle/throttle-rules.ts";
import type { ThrottleRule } from "../gate/throttle/throttle-rules.ts";
import type { Config } from "../platform/config.ts";
import type { Place } from "./place.ts";

/** The limits on observing events, from the configured place or the package's own. Throws CONFIG_INVALID with every problem. */
export async function loadThrottle(config: Config, place: Place): Promise<readonly ThrottleRule[]> {
  const file = config.gate.throttleFile ?? join(place.packageDir, "deploy", "throttle.yaml");
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    throw new Fault("CONFIG_INVALID", `\`${file}\` cannot be read`, { cause: error });
  });
  const parsed = parseThrottle(file, text);
  if (!parsed.ok) throw new Fault("CONFIG_INVALID", parsed.problems);
  return parsed.rules;
}
