import type { RuntimeReply } from "../../schemas/adapter.ts";

/**
 * What a command hook's shim asks for with `accept`: a first line `fabric 0` or `fabric 2`, which is the exit code, then the
 * text for standard output, or for standard error where the code is 2. A shell reads it without a JSON parser, and an answer
 * without that line is none. A shim that may wait says so, and reads `fabric 0 ticket` where a person has to agree first.
 */
const shimForm = "text/x-fabric-hook";
const waitingShimForm = `${shimForm}; wait=1`;

/** A reply as it leaves over HTTP; a null body is an empty one. */
export interface HookReplyForm {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

/** A runtime's reply as HTTP hooks read it, or as a command hook's shim prints it: `accept` says which. */
export function toHookReplyForm(reply: RuntimeReply, accept: string | undefined): HookReplyForm {
  const { status, body, exitCode, stdout, stderr } = reply;
  if (accept === shimForm || accept === waitingShimForm) {
    const ticket = accept === waitingShimForm && reply.isTicket === true ? " ticket" : "";
    return {
      status,
      headers: { "content-type": `${shimForm}; charset=utf-8` },
      body: `fabric ${String(exitCode)}${ticket}\n${exitCode === 0 ? stdout : stderr}`,
    };
  }
  const code = { "x-fabric-exit-code": String(exitCode) };
  if (body === null || body === undefined) return { status, headers: code, body: null };
  return {
    status,
    headers: { ...code, "content-type": "application/json; charset=utf-8" },
    body: JSON.stringify(body),
  };
}
