import { z } from "zod";
import { Fault } from "../../schemas/faults.ts";
import type { Actions, Common, HoldTarget } from "../cli/actions.ts";
import { toTable } from "../cli/report.ts";
import type { Role } from "../platform/auth.ts";
import type { Config } from "../platform/config.ts";
import { callGate } from "./gate-client.ts";
import { operatorToken } from "./operator-token.ts";

type IncidentActions = Pick<
  Actions,
  "incidentsList" | "incidentsDeclare" | "incidentsLift" | "breakerStatus" | "breakerReset"
>;

const held = {
  id: z.string(),
  is_open: z.boolean(),
  tenant: z.string().nullable(),
  scope: z.string(),
  scope_id: z.string(),
  reason: z.string(),
};
const incidentSchema = z.looseObject({
  ...held,
  kind: z.string(),
  declared_by: z.string(),
  declared_at: z.string(),
  lifted_by: z.string().nullable(),
});
const tripSchema = z.looseObject({
  ...held,
  measure: z.string(),
  tripped_at: z.string(),
  resets_at: z.string().nullable(),
  reset_by: z.string().nullable(),
});

const hint =
  "this needs the role incident, which no agent's token has; `fabric tokens issue --role incident` makes such a token";
const readers = ["incident", "sre", "approver", "auditor", "admin"] as const;

/** `fabric incidents …` and `fabric breaker …`: over the gate's HTTP API, as a person. */
export function incidentActions(configOf: (common: Common) => Promise<Config>): IncidentActions {
  async function ask(
    common: Common,
    tokenFile: string | undefined,
    roles: readonly [Role, ...Role[]],
    call: { readonly method: "GET" | "POST"; readonly path: string; readonly body?: unknown },
    tenant?: string,
  ): Promise<unknown> {
    const config = await configOf(common);
    const wish = { roles, tokenFile, ...(tenant === undefined ? {} : { tenant }) };
    const token = await operatorToken(config, common, wish);
    return callGate(config, { ...call, token, roleHint: hint });
  }
  return {
    async incidentsList(common, { all, limit, tokenFile }) {
      const path = `/v1/incidents?state=${all ? "all" : "open"}&limit=${String(limit)}`;
      const answer = await ask(common, tokenFile, readers, { method: "GET", path });
      const { incidents } = z.object({ incidents: z.array(incidentSchema) }).parse(answer);
      if (incidents.length === 0) return { json: [], text: "nothing is frozen" };
      const rows = incidents.map((one) => [
        one.id,
        one.is_open ? "holds" : `lifted by ${one.lifted_by ?? ""}`,
        toWhat(one),
        one.kind,
        toMinute(one.declared_at),
        one.declared_by,
        one.reason,
      ]);
      const header = ["INCIDENT", "STATE", "FROZEN", "KIND", "SINCE", "BY", "REASON"];
      return { json: incidents, text: toTable(header, rows, common.screen.columns) };
    },
    async incidentsDeclare(common, { target, kind, reason, tokenFile }) {
      const body = { ...toScope(target), reason, ...(kind === undefined ? {} : { kind }) };
      const tenant = target.all ? "fabric" : undefined;
      const call = { method: "POST", path: "/v1/incidents", body } as const;
      const incident = incidentSchema.parse(await ask(common, tokenFile, ["incident"], call, tenant));
      const text = `${toWhat(incident)} is frozen at every gate; \`fabric incidents lift ${incident.id}\` ends it`;
      return { json: incident, text };
    },
    async incidentsLift(common, { id, reason, tokenFile }) {
      const path = `/v1/incidents/${encodeURIComponent(id)}/lift`;
      const call = { method: "POST", path, body: { reason } } as const;
      const incident = incidentSchema.parse(await ask(common, tokenFile, ["incident"], call));
      return { json: incident, text: `${toWhat(incident)} goes on` };
    },
    async breakerStatus(common, { all, limit, tokenFile }) {
      const path = `/v1/breaker?state=${all ? "all" : "open"}&limit=${String(limit)}`;
      const answer = await ask(common, tokenFile, readers, { method: "GET", path });
      const { trips } = z.object({ trips: z.array(tripSchema) }).parse(answer);
      if (trips.length === 0) return { json: [], text: "nothing is read-only" };
      const rows = trips.map((one) => [
        one.id,
        one.is_open ? "read-only" : `reset by ${one.reset_by ?? ""}`,
        toWhat(one),
        one.reason,
        toMinute(one.tripped_at),
        one.resets_at === null ? "a person" : toMinute(one.resets_at),
      ]);
      const header = ["TRIP", "STATE", "SCOPE", "WHY", "SINCE", "ENDS BY"];
      return { json: trips, text: toTable(header, rows, common.screen.columns) };
    },
    async breakerReset(common, { id, reason, tokenFile }) {
      const path = `/v1/breaker/${encodeURIComponent(id)}/reset`;
      const call = { method: "POST", path, body: { reason } } as const;
      const trip = tripSchema.parse(await ask(common, tokenFile, ["incident", "sre"], call));
      return { json: trip, text: `${toWhat(trip)} may have effects again` };
    },
  };
}

function toWhat({
  scope,
  scope_id,
  tenant,
}: {
  scope: string;
  scope_id: string;
  tenant: string | null;
}): string {
  if (scope === "all") return "everything";
  return scope === "tenant" ? `tenant ${tenant ?? scope_id}` : `${scope} ${scope_id}`;
}

function toMinute(iso: string): string {
  return `${iso.slice(0, 16).replace("T", " ")}Z`;
}

/** Exactly one thing is frozen at a time, so that lifting it is one thing too. */
function toScope({ all, tenant, ...named }: HoldTarget): { scope: string; scope_id?: string } {
  const found: { scope: string; scope_id?: string }[] = Object.entries(named).flatMap(([scope, id]) =>
    id === undefined ? [] : [{ scope, scope_id: id }],
  );
  if (all) found.push({ scope: "all" });
  if (tenant !== undefined && tenant !== false)
    found.push({ scope: "tenant", ...(tenant === true ? {} : { scope_id: tenant }) });
  const [one, ...others] = found;
  if (one === undefined || others.length > 0) {
    throw new Fault(
      "USAGE",
      "name exactly one: --tenant, --correlation, --session, --agent, --user, --tool or --all",
    );
  }
  return one;
}
