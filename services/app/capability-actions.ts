import { z } from "zod";
import { Fault } from "../../schemas/faults.ts";
import type { Actions, Common } from "../cli/actions.ts";
import { toTable } from "../cli/report.ts";
import type { Config } from "../platform/config.ts";
import { callGate } from "./gate-client.ts";
import { operatorToken } from "./operator-token.ts";

type CapabilityActions = Pick<Actions, "capabilitiesList" | "capabilitiesRevoke">;

const listSchema = z.object({
  capabilities: z.array(
    z.looseObject({
      id: z.string(),
      state: z.string(),
      tool: z.string(),
      resource: z.string().nullable(),
      session_id: z.string().nullable(),
      max_calls: z.number(),
      calls_used: z.number(),
      expires_at: z.string(),
      plan_digest: z.string(),
    }),
  ),
});
const revokedSchema = z.looseObject({ revoked: z.number() });

const hint =
  "this needs the role incident, which no agent's token has; `fabric tokens issue --role incident` makes such a token";
const resourceMaxChars = 50;

/** `fabric capabilities …`: over the gate's HTTP API, as a person. */
export function capabilityActions(configOf: (common: Common) => Promise<Config>): CapabilityActions {
  return {
    async capabilitiesList(common, { state, session, limit, tokenFile }) {
      const config = await configOf(common);
      const token = await operatorToken(config, common, {
        roles: ["incident", "auditor", "admin"],
        tokenFile,
      });
      const query = new URLSearchParams({
        limit: String(limit),
        ...(state === undefined ? {} : { state }),
        ...(session === undefined ? {} : { session }),
      });
      const path = `/v1/capabilities?${query.toString()}`;
      const listed = listSchema.parse(
        await callGate(config, { method: "GET", path, token, roleHint: hint }),
      ).capabilities;
      if (listed.length === 0) return { json: [], text: "there is no such right" };
      const table = toTable(
        ["CAPABILITY", "STATE", "USED", "EXPIRES", "SESSION", "TOOL", "RESOURCE"],
        listed.map((one) => [
          one.id,
          one.state,
          `${String(one.calls_used)}/${String(one.max_calls)}`,
          `${one.expires_at.slice(0, 19).replace("T", " ")}Z`,
          one.session_id ?? "",
          one.tool,
          cut(one.resource ?? ""),
        ]),
        common.screen.columns,
      );
      return { json: listed, text: table };
    },
    async capabilitiesRevoke(common, { id, plan, session, subject, reason, tokenFile }) {
      const named = [id, plan, session, subject].filter((one) => one !== undefined);
      if (named.length !== 1) {
        throw new Fault("USAGE", "name exactly one: a capability id, --plan, --session or --subject");
      }
      const config = await configOf(common);
      const token = await operatorToken(config, common, { roles: ["incident", "admin"], tokenFile });
      const path =
        id === undefined ? "/v1/capabilities/revoke" : `/v1/capabilities/${encodeURIComponent(id)}/revoke`;
      const body = {
        reason,
        ...(plan === undefined ? {} : { plan_digest: plan }),
        ...(session === undefined ? {} : { session_id: session }),
        ...(subject === undefined ? {} : { subject }),
      };
      const answer = await callGate(config, { method: "POST", path, token, body, roleHint: hint });
      const { revoked } = revokedSchema.parse(answer);
      const ended = `${String(revoked)} ${revoked === 1 ? "right" : "rights"} ended`;
      const text =
        plan === undefined ? ended : `${ended}; nobody may carry out this plan until the revocation ends`;
      return { json: answer, text: revoked === 0 && plan === undefined ? "nothing was alive to end" : text };
    },
  };
}

function cut(text: string): string {
  const line = text.replaceAll("\n", "⏎");
  return line.length > resourceMaxChars ? `${line.slice(0, resourceMaxChars - 1)}…` : line;
}
