import { z } from "zod";
import { Fault } from "../../schemas/faults.ts";
import type { Actions, Common, TakeoverDeed } from "../cli/actions.ts";
import { style } from "../cli/screen.ts";
import type { Role } from "../platform/auth.ts";
import type { Config } from "../platform/config.ts";
import type { GateCall } from "./gate-client.ts";
import { callDesk } from "./gate-client.ts";
import { operatorToken } from "./operator-token.ts";
import type { Item } from "./takeover-text.ts";
import {
  itemSchema,
  itemWithEvidenceSchema,
  renderEvidence,
  renderItem,
  renderItems,
  toMinute,
} from "./takeover-text.ts";

type TakeoverActions = Pick<
  Actions,
  "takeoverList" | "takeoverShow" | "takeoverDo" | "episodeLabel" | "episodesErase"
>;

const readers = ["sre", "approver", "analyst", "auditor", "incident", "admin"] as const;
const workers = ["sre", "approver"] as const;
const labellers = ["analyst", "sre", "approver", "admin"] as const;

const labelSchema = z.looseObject({ event_id: z.string(), episode_id: z.string(), label: z.string() });

const erasureSchema = z.looseObject({
  event_id: z.string(),
  tenant_id: z.string(),
  erased_until: z.string(),
});

/** `fabric takeover …`, `fabric eval label` and `erase`: over the desk's HTTP API, as a person. */
export function takeoverActions(configOf: (common: Common) => Promise<Config>): TakeoverActions {
  async function ask(
    common: Common,
    tokenFile: string | undefined,
    roles: readonly [Role, ...Role[]],
    tenant?: string,
  ): Promise<(call: Omit<GateCall, "token" | "roleHint">) => Promise<unknown>> {
    const config = await configOf(common);
    const token = await operatorToken(config, common, {
      roles,
      tokenFile,
      ...(tenant === undefined ? {} : { tenant }),
    });
    const roleHint = `this needs one of the roles ${roles.join(", ")}, which no agent's token has; \`fabric tokens issue --role ${roles[0]}\` makes such a token`;
    return (call) => callDesk(config, { ...call, token, roleHint });
  }
  return {
    async takeoverList(common, { state, limit, tokenFile }) {
      const call = await ask(common, tokenFile, readers);
      const query = new URLSearchParams({ state: state ?? "waiting", limit: String(limit) });
      const body = await call({ method: "GET", path: `/v1/takeover?${query.toString()}` });
      const { items } = parse(z.object({ items: z.array(itemSchema) }), body);
      const nothing = state === undefined ? "nothing waits for a person" : `no item is ${state}`;
      return { json: items, text: items.length === 0 ? nothing : renderItems(common.screen, items) };
    },
    async takeoverShow(common, { id, tokenFile }) {
      const call = await ask(common, tokenFile, readers);
      const found = parse(itemWithEvidenceSchema, await call({ method: "GET", path: pathOf(id) }));
      return { json: found, text: renderEvidence(common.screen, found) };
    },
    async takeoverDo(common, { id, deed, tokenFile }) {
      const call = await ask(common, tokenFile, workers);
      const { kind, ...body } = deed;
      const done = await call({ method: "POST", path: `${pathOf(id)}/${kind}`, body });
      const item = parse(itemSchema, done);
      const word = style(common.screen, "green", toWord(deed, item));
      return { json: item, text: `${renderItem(common.screen, item)}\n\n${word}` };
    },
    async episodeLabel(common, { id, tokenFile, ...label }) {
      const call = await ask(common, tokenFile, labellers);
      const done = await call({
        method: "POST",
        path: `/v1/episodes/${encodeURIComponent(id)}/label`,
        body: label,
      });
      const shown = parse(labelSchema, done);
      return {
        json: shown,
        text: `${shown.episode_id} is labelled ${shown.label}; the dataset has it in a moment`,
      };
    },
    async episodesErase(common, { tenant, reason, tokenFile }) {
      const call = await ask(common, tokenFile, ["admin"], tenant);
      const body = { tenant_id: tenant, reason };
      const shown = parse(erasureSchema, await call({ method: "POST", path: "/v1/episodes/erasures", body }));
      return {
        json: shown,
        text: `what people and tools wrote in the episodes of ${shown.tenant_id} up to ${shown.erased_until} is blank in a moment, and stays so in every rebuild; the audit trail, the vault and files that were exported are not touched`,
      };
    },
  };
}

function toWord(deed: TakeoverDeed, item: Item): string {
  switch (deed.kind) {
    case "claim":
      return `it is yours until ${toMinute(item.lease_ends_at ?? "")}`;
    case "note":
      return "noted";
    case "reassign":
      return `handed to ${deed.to}`;
    case "resolve":
      return deed.proposal === undefined
        ? "resolved"
        : "resolved; what is proposed is for a person to do, with the command for it";
  }
}

function pathOf(id: string): string {
  return `/v1/takeover/${encodeURIComponent(id)}`;
}

function parse<T extends z.ZodType>(schema: T, body: unknown): z.output<T> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  throw new Fault("REQUEST_INVALID", "the desk's answer is of another version than this command");
}
