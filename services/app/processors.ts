import { audit } from "../../processors/audit/audit.ts";
import { evaluation } from "../../processors/eval/eval.ts";
import type { Processor } from "../../processors/kit/processor.ts";
import { takeover } from "../../processors/takeover/takeover.ts";
import { trace } from "../../processors/trace/trace.ts";

/** The processors that ship; a new one is added here. */
export const processors: readonly Processor[] = [audit, evaluation, takeover, trace];
