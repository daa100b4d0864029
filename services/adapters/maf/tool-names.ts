import { toToolName } from "../../platform/adapter-kit.ts";

/**
 * The fabric's name of a function tool. The framework has no tools of its own: whoever builds an agent says what each of
 * its functions is, and one that nobody named is `other.<name>`. Null when it cannot be named.
 */
export const toFabricTool = (name: string, declared: string | undefined): string | null =>
  declared ?? toToolName("other", [name]);
