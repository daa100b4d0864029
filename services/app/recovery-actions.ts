import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { Fault } from "../../schemas/faults.ts";
import type { Actions, Common, LetterSelection } from "../cli/actions.ts";
import type { Role } from "../platform/auth.ts";
import type { Config } from "../platform/config.ts";
import type { GateCall } from "./gate-client.ts";
import { callDesk } from "./gate-client.ts";
import { operatorToken } from "./operator-token.ts";
import type { Redrive } from "./recovery-text.ts";
import {
  gapSchema,
  groupSchema,
  heldSchema,
  letterSchema,
  parkedSchema,
  plannedSchema,
  redriveSchema,
  renderGaps,
  renderGroups,
  renderHeld,
  renderLetter,
  renderLetters,
  renderParked,
  renderPlan,
  renderRedrives,
} from "./recovery-text.ts";

type RecoveryActions = Pick<
  Actions,
  | "lettersList"
  | "lettersShow"
  | "lettersRedrive"
  | "lettersArchive"
  | "redrivesList"
  | "redrivesStop"
  | "redrivesResume"
  | "gapsList"
  | "gapsResume"
  | "emissionsList"
  | "emissionsEnd"
  | "parkedList"
  | "parkedEnd"
>;
type Ask = (call: Omit<GateCall, "token" | "roleHint">) => Promise<unknown>;

const readers = ["sre", "incident", "auditor", "admin"] as const;
const workers = ["sre", "admin"] as const;
/** Who acts for it acts for all tenants: most of what stands still belongs to none of them. */
const operatorsTenant = "fabric";
/** A hundred thousand letters are put away in some seconds. */
const patientMs = 120_000;
const watchEveryMs = 500;

/** `fabric dlq|quarantine|gaps|emissions|outbox …`: over the desk's HTTP API, as a person. */
export function recoveryActions(configOf: (common: Common) => Promise<Config>): RecoveryActions {
  async function open(
    common: Common,
    tokenFile: string | undefined,
    roles: readonly [Role, ...Role[]],
  ): Promise<{ readonly ask: Ask; readonly config: Config }> {
    const config = await configOf(common);
    const token = await operatorToken(config, common, { roles, tokenFile, tenant: operatorsTenant });
    const roleHint = `this needs one of the roles ${roles.join(", ")}, for what is every tenant's of the tenant ${operatorsTenant}; \`fabric tokens issue --role ${roles[0]} --tenant ${operatorsTenant}\` makes such a token`;
    return { config, ask: (call) => callDesk(config, { ...call, token, roleHint }) };
  }
  return {
    async lettersList(common, { selection, state, each, limit, tokenFile }) {
      const { ask, config } = await open(common, tokenFile, readers);
      const query = new URLSearchParams({
        ...toText(toFilter(selection, config)),
        state: state ?? "unsettled",
        view: each ? "letters" : "groups",
        limit: String(limit),
      });
      const body = await ask({ method: "GET", path: `/v1/letters?${query.toString()}` });
      if (each) {
        const { letters } = parse(z.object({ letters: z.array(letterSchema) }), body);
        return { json: letters, text: renderLetters(common.screen, letters) };
      }
      const { groups } = parse(z.object({ groups: z.array(groupSchema) }), body);
      return { json: groups, text: renderGroups(common.screen, groups) };
    },
    async lettersShow(common, { id, tokenFile }) {
      const { ask } = await open(common, tokenFile, readers);
      const body = await ask({ method: "GET", path: `/v1/letters/${encodeURIComponent(id)}` });
      const letter = parse(letterSchema, body);
      return { json: letter, text: renderLetter(common.screen, letter) };
    },
    async lettersRedrive(common, options) {
      const { ask, config } = await open(common, options.tokenFile, workers);
      const wish = {
        ...toChosen(options.selection, config),
        per_second: options.perSecond,
        beyond_limit: options.beyondLimit,
        reason: options.reason,
      };
      const request = (dryRun: boolean): Promise<unknown> =>
        ask({
          method: "POST",
          path: "/v1/letters/redrive",
          body: { ...wish, dry_run: dryRun },
          timeoutMs: patientMs,
        });
      const { groups } = parse(plannedSchema, await request(true));
      const plan = renderPlan(common.screen, groups);
      const ready = groups.reduce((sum, one) => sum + one.ready, 0);
      if (options.dryRun || ready === 0)
        return { json: { planned: groups, redrives: [] }, text: plan, exit: ready === 0 ? 1 : 0 };
      common.screen.progress(plan);
      const { redrives } = parse(requestedSchema, await request(false));
      const ids = redrives.map((one) => one.redrive_id);
      if (ids.length === 0)
        return { json: { planned: groups, redrives: [] }, text: "nothing was left to send", exit: 1 };
      const done = options.detach ? await load(ask, ids) : await watch(common, ask, ids);
      const isShort = done.some((one) => one.failed + one.skipped > 0 || one.stopped_at !== null);
      const goesOn = done.filter((one) => one.finished_at === null && one.stopped_at === null);
      const command = options.selection.kind === "dead" ? "dlq" : "quarantine";
      const hint = `\n\nthe hosts go on with it; \`fabric ${command} stop ${goesOn.map((one) => one.redrive_id).join(" ")} --reason …\` stops it`;
      return {
        json: { planned: groups, redrives: done },
        text: `${renderRedrives(common.screen, done)}${goesOn.length === 0 ? "" : hint}`,
        exit: isShort ? 1 : 0,
      };
    },
    async lettersArchive(common, { selection, dryRun, reason, tokenFile }) {
      const { ask, config } = await open(common, tokenFile, workers);
      const body = await ask({
        method: "POST",
        path: "/v1/letters/archive",
        body: { ...toChosen(selection, config), reason, dry_run: dryRun },
        timeoutMs: patientMs,
      });
      const done = parse(z.object({ groups: z.array(groupSchema), archived: z.number() }), body);
      const text = dryRun ? renderGroups(common.screen, done.groups) : `${String(done.archived)} put away`;
      return { json: done, text, exit: !dryRun && done.archived === 0 ? 1 : 0 };
    },
    async redrivesList(common, { ids, limit, tokenFile }) {
      const { ask } = await open(common, tokenFile, readers);
      const found = await load(ask, ids.length === 0 ? undefined : ids, limit);
      return { json: found, text: renderRedrives(common.screen, found) };
    },
    async redrivesStop(common, { ids, givesUp, reason, tokenFile }) {
      const { ask } = await open(common, tokenFile, workers);
      const body = { ...toRedriveChoice(ids), reason, gives_up: givesUp };
      const { redrives } = parse(
        changedSchema,
        await ask({ method: "POST", path: "/v1/redrives/stop", body, timeoutMs: patientMs }),
      );
      const lines = redrives.map(
        (one) =>
          `${one.redrive_id} of ${one.processor}: ${String(one.letters_left)} letters ${givesUp ? "wait for nothing again" : "keep waiting for it"}`,
      );
      return {
        json: redrives,
        text: lines.length === 0 ? "nothing was under way" : `stopped\n${lines.join("\n")}`,
        exit: lines.length === 0 ? 1 : 0,
      };
    },
    async redrivesResume(common, { ids, reason, tokenFile }) {
      const { ask } = await open(common, tokenFile, workers);
      const body = { ...toRedriveChoice(ids), reason };
      const { redrives } = parse(
        changedSchema,
        await ask({ method: "POST", path: "/v1/redrives/resume", body }),
      );
      const lines = redrives.map(
        (one) => `${one.redrive_id} of ${one.processor}: ${String(one.letters_left)} letters`,
      );
      return {
        json: redrives,
        text: lines.length === 0 ? "nothing was stopped" : `go on\n${lines.join("\n")}`,
        exit: lines.length === 0 ? 1 : 0,
      };
    },
    async gapsList(common, { tokenFile }) {
      const { ask } = await open(common, tokenFile, readers);
      const { gaps } = parse(
        z.object({ gaps: z.array(gapSchema) }),
        await ask({ method: "GET", path: "/v1/gaps" }),
      );
      return { json: gaps, text: renderGaps(common.screen, gaps), exit: gaps.length === 0 ? 0 : 1 };
    },
    async gapsResume(common, { consumer, topic, partition, from, reason, tokenFile }) {
      const { ask, config } = await open(common, tokenFile, workers);
      const body = {
        consumer,
        topic: onBroker(topic, config),
        partition,
        from: typeof from === "number" ? { offset: from } : from,
        reason,
      };
      const done = parse(resumedSchema, await ask({ method: "POST", path: "/v1/gaps/resume", body }));
      const lost = done.resumed_offset - done.stopped_offset;
      const skipped = lost > 0 && done.cause !== "topic_recreated" && done.cause !== "topic_missing";
      return {
        json: done,
        text: `${consumer} goes on in ${done.topic}/${String(partition)} at ${String(done.resumed_offset)}${skipped ? `; ${String(lost)} offsets are skipped for good` : ""}`,
      };
    },
    async emissionsList(common, { tokenFile }) {
      const { ask } = await open(common, tokenFile, readers);
      const body = await ask({ method: "GET", path: "/v1/emissions" });
      const { emissions } = parse(z.object({ emissions: z.array(heldSchema) }), body);
      return {
        json: emissions,
        text: renderHeld(common.screen, emissions),
        exit: emissions.length === 0 ? 0 : 1,
      };
    },
    async emissionsEnd(common, { consumer, choice, reason, tokenFile }) {
      const { ask } = await open(common, tokenFile, workers);
      const body = { consumer, reason };
      const done = parse(
        heldSchema,
        await ask({ method: "POST", path: `/v1/emissions/${choice}`, body, timeoutMs: patientMs }),
      );
      const word = choice === "release" ? "go out" : "are thrown away";
      return { json: done, text: `${String(done.events)} events of ${consumer} ${word}` };
    },
    async parkedList(common, { archived, limit, tokenFile }) {
      const { ask } = await open(common, tokenFile, readers);
      const query = new URLSearchParams({ archived: String(archived), limit: String(limit) });
      const body = await ask({ method: "GET", path: `/v1/parked?${query.toString()}` });
      const { parked } = parse(z.object({ parked: z.array(parkedSchema) }), body);
      return { json: parked, text: renderParked(common.screen, parked) };
    },
    async parkedEnd(common, { ids, choice, reason, tokenFile }) {
      const { ask } = await open(common, tokenFile, workers);
      const body = { ids, reason };
      const done = parse(
        z.object({ events: z.number() }),
        await ask({ method: "POST", path: `/v1/parked/${choice}`, body }),
      );
      const word = choice === "retry" ? "are in the outbox again" : "are put away";
      return { json: done, text: `${String(done.events)} of ${String(ids.length)} ${word}` };
    },
  };
}

const requestedSchema = z.object({
  redrives: z.array(z.looseObject({ redrive_id: z.string(), processor: z.string(), letters: z.number() })),
});
const changedSchema = z.object({
  redrives: z.array(
    z.looseObject({ redrive_id: z.string(), processor: z.string(), letters_left: z.number() }),
  ),
});
const resumedSchema = z.looseObject({
  topic: z.string(),
  cause: z.string(),
  stopped_offset: z.number(),
  resumed_offset: z.number(),
});

async function load(ask: Ask, ids: readonly string[] | undefined, limit = 50): Promise<readonly Redrive[]> {
  const query = new URLSearchParams({
    limit: String(limit),
    ...(ids === undefined ? {} : { ids: ids.join(",") }),
  });
  const body = await ask({ method: "GET", path: `/v1/redrives?${query.toString()}` });
  return parse(z.object({ redrives: z.array(redriveSchema) }), body).redrives;
}

/** Until all are finished or stopped, or the person has seen enough; the hosts go on either way. */
async function watch(common: Common, ask: Ask, ids: readonly string[]): Promise<readonly Redrive[]> {
  let shown = "";
  for (;;) {
    const found = await load(ask, ids);
    const isOver = found.every((one) => one.finished_at !== null || one.stopped_at !== null);
    if (isOver || common.signal.aborted) return found;
    const text = renderRedrives(common.screen, found);
    if (text !== shown && common.screen.isWatched === true) common.screen.progress(text);
    shown = text;
    await sleep(watchEveryMs, undefined, { signal: common.signal }).catch(() => undefined);
  }
}

function toRedriveChoice(ids: readonly string[]): { readonly ids?: readonly string[] } {
  return ids.length === 0 ? {} : { ids };
}

function toFilter(selection: LetterSelection, config: Config): Record<string, string | number> {
  const { kind, processor, topic, code, tenant, olderThanMs, newerThanMs } = selection;
  return Object.fromEntries(
    Object.entries({
      kind,
      processor,
      topic: topic === undefined ? undefined : onBroker(topic, config),
      code,
      tenant,
      older_than_ms: olderThanMs,
      newer_than_ms: newerThanMs,
    }).filter((entry): entry is [string, string | number] => entry[1] !== undefined),
  );
}

function toChosen(selection: LetterSelection, config: Config): object {
  const { ids } = selection;
  return { filter: toFilter(selection, config), ...(ids === undefined ? {} : { ids }) };
}

function toText(filter: Record<string, string | number>): Record<string, string> {
  return Object.fromEntries(Object.entries(filter).map(([name, value]) => [name, String(value)]));
}

/** A topic by its type's name, or by the name that the broker has. */
function onBroker(topic: string, { kafka: { topicPrefix } }: Config): string {
  return topicPrefix === "" || topic.startsWith(topicPrefix) ? topic : topicPrefix + topic;
}

function parse<T extends z.ZodType>(schema: T, body: unknown): z.output<T> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  throw new Fault("REQUEST_INVALID", "the desk's answer is of another version than this command");
}
