import type { AskedCall, Classified, Classify } from "./classified.ts";
import type { Policy } from "./policy/policy.ts";

/** Agents repeat themselves within minutes; a generation is what is asked in that time. */
const generationMax = 512;
/** A longer call is seldom asked twice, and what is kept has to stay small. */
const keyMaxChars = 2_048;
/** A short text can name very much: what is kept has at most so many commands, paths and signals. */
const partsMax = 64;
/** What took longer is judged by its time too, each time anew. */
const rememberedMaxMs = 5;

/** What was classified lately, and before that. */
interface Memory {
  young: Map<string, Classified>;
  old: Map<string, Classified>;
}

/**
 * Remembers classifications by what is asked: the tool and its alias, its input and the folder, under one policy. Nothing else of a
 * request reaches `classify`, so nothing else can make a difference. Where links lead to elsewhere is never remembered.
 */
export function createRememberingClassify(classify: Classify, monotonicMs: () => number): Classify {
  const ofPolicy = new WeakMap<Policy, Memory>();
  return (request, policy, realPaths) => {
    if (realPaths !== undefined && realPaths.size > 0) return classify(request, policy, realPaths);
    const asked = toAsked(request);
    const key = JSON.stringify([
      asked.tool,
      asked.tool_alias ?? null,
      asked.working_directory ?? null,
      asked.input,
    ]);
    if (key.length > keyMaxChars) return classify(asked, policy);
    let memory = ofPolicy.get(policy);
    if (memory === undefined) ofPolicy.set(policy, (memory = { young: new Map(), old: new Map() }));
    const known = memory.young.get(key);
    if (known !== undefined) return known;
    let classified = memory.old.get(key);
    if (classified === undefined) {
      const startedMs = monotonicMs();
      classified = classify(asked, policy);
      if (monotonicMs() - startedMs > rememberedMaxMs || countParts(classified) > partsMax) return classified;
    }
    if (memory.young.size >= generationMax) {
      memory.old = memory.young;
      memory.young = new Map();
    }
    memory.young.set(key, classified);
    return classified;
  };
}

const countParts = ({ command, touched, signals }: Classified): number =>
  (command?.commands.length ?? 0) + touched.length + signals.length;

function toAsked({ tool, tool_alias: alias, input, working_directory: folder }: AskedCall): AskedCall {
  return {
    tool,
    input,
    ...(alias === undefined ? {} : { tool_alias: alias }),
    ...(folder === undefined ? {} : { working_directory: folder }),
  };
}
