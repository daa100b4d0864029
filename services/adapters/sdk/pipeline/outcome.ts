import type { Json, JsonObject } from "../json.ts";
import type { Blocker } from "../registry/hook-points.ts";

/** How a call ended. `text` is what goes back to the loop, for the model to read. */
export type ToolOutcome =
  | {
      readonly status: "succeeded";
      readonly input: JsonObject;
      readonly output: Json;
      readonly text: string;
      readonly context: readonly string[];
      /** Handlers that put another result in place of the tool's. */
      readonly replacedBy: readonly string[];
    }
  /** It ran, and a handler withheld what came of it. */
  | {
      readonly status: "withheld";
      readonly input: JsonObject;
      readonly by: string;
      readonly text: string;
      readonly context: readonly string[];
    }
  | {
      readonly status: "failed";
      readonly input: JsonObject;
      readonly error: string;
      readonly text: string;
      readonly context: readonly string[];
    }
  /** It was started, and nobody knows what came of it: not to be made again without looking. */
  | {
      readonly status: "unknown";
      readonly input: JsonObject;
      readonly text: string;
      readonly context: readonly string[];
    }
  /** The body was never entered. */
  | {
      readonly status: "blocked";
      readonly by: Blocker;
      readonly handler?: string;
      readonly reasonCode: string;
      readonly message: string;
      /** The ticket of a person's decision that is still open. */
      readonly approvalId?: string;
      readonly text: string;
      readonly context: readonly string[];
    };
export type BlockedOutcome = Extract<ToolOutcome, { status: "blocked" }>;

/** A refusal as the model reads it. */
export function toBlocked(
  by: Blocker,
  reasonCode: string,
  message: string,
  rest: { readonly handler?: string; readonly approvalId?: string } = {},
): BlockedOutcome {
  return {
    status: "blocked",
    by,
    reasonCode,
    message,
    text: `${reasonCode}: ${message}`,
    context: [],
    ...rest,
  };
}

/** A result as the model reads it. */
export function toText(output: Json): string {
  return typeof output === "string" ? output : JSON.stringify(output);
}
