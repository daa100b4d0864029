import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { evaluation } from "../../processors/eval/eval.ts";
import { episodeIdOf } from "../../processors/eval/episode-id.ts";
import type { EpisodeRow } from "../../processors/eval/queries.ts";
import {
  countEpisodes,
  dumpTables,
  readEpisodes,
  readLinkedEpisodes,
} from "../../processors/eval/queries.ts";
import { toRecoveries } from "../../processors/eval/recovery.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { LeakageGroups } from "../../services/exporters/eval/leakage-groups.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import type { TestDatabase } from "../harness/database.ts";
import { createTestDatabase } from "../harness/database.ts";
import type { At, CallStory } from "../harness/eval-story.ts";
import { storyStartMs, tell } from "../harness/eval-story.ts";

/** Hundreds of transactions each; on a machine that does other things as well. */
const limitMs = 240_000;

let database: TestDatabase;
let host: Database;
let admin: Database;
beforeAll(async () => {
  database = await createTestDatabase();
  const open = (url: string): Database =>
    openDatabase({ url, applicationName: "eval-property", searchPath: ["eval"], maxConnections: 3 });
  host = open(database.roleUrl("fabric_host"));
  admin = open(database.url);
});
afterAll(async () => {
  await host.end();
  await admin.end();
  await database.drop();
});

type Made = (at: At) => Envelope;
const call: fc.Arbitrary<CallStory> = fc.record({
  id: fc.constantFrom("c1", "c2", "c3", "c4", "c5", null),
  tool: fc.constantFrom("shell.run", "file.write"),
  resource: fc.constantFrom("repo:x", "repo:y", null),
  plan: fc.constantFrom("aa", "bb"),
  input: fc.constantFrom("ls", "rm -rf build"),
  folder: fc.constantFrom("/src/a", "/src/b", null),
});
const outcome = fc.constantFrom("succeeded", "failed", "interrupted", "blocked", "unknown");
const amount = fc.option(fc.bigInt({ min: -5n, max: 2_000n }));
const made: fc.Arbitrary<Made> = fc.oneof(
  fc.constantFrom("fix the build", "Fix  the BUILD ", "").map(
    (text): Made =>
      (at) =>
        tell.prompt(at, text),
  ),
  fc.constantFrom("/src/a", null).map(
    (folder): Made =>
      (at) =>
        tell.session(at, folder),
  ),
  fc.constant<Made>((at) => tell.ended(at)),
  fc.constantFrom(0, 100, 1_000).map(
    (ms): Made =>
      (at) =>
        tell.erased(at, storyStartMs + ms),
  ),
  outcome.map(
    (one): Made =>
      (at) =>
        tell.turn(at, one),
  ),
  fc.constantFrom("s2", "a1").map(
    (id): Made =>
      (at) =>
        tell.subagent(at, id),
  ),
  fc.tuple(amount, amount, amount, fc.constantFrom("api:1", "api:2", null)).map(
    ([i, o, c, id]): Made =>
      (at) =>
        tell.model(at, i, o, c, id),
  ),
  call.map(
    (one): Made =>
      (at) =>
        tell.requested(at, one),
  ),
  fc.tuple(call, fc.constantFrom("allow", "modify", "deny", "require_approval", "defer", "unknown")).map(
    ([one, decision]): Made =>
      (at) =>
        tell.decided(at, one, decision),
  ),
  fc.tuple(call, outcome, amount).map(
    ([one, end, ms]): Made =>
      (at) =>
        tell.completed(at, one, end, ms),
  ),
  call.map(
    (one): Made =>
      (at) =>
        tell.refused(at, one),
  ),
  call.map(
    (one): Made =>
      (at) =>
        tell.ungated(at, one),
  ),
  fc
    .tuple(
      fc.constantFrom("cor_1", "cor_2", "cor_nowhere"),
      fc.constantFrom("ann", "ben"),
      fc.constantFrom("safe", "unsafe"),
    )
    .map(
      ([correlation, author, label]): Made =>
        (at) =>
          tell.label(at, episodeIdOf(at.tenant ?? "acme", correlation), author, label),
    ),
);
const history = fc
  .array(
    fc.record({
      made,
      // Moments repeat, and have no order.
      atMs: fc.integer({ min: 0, max: 40 }).map((n) => n * 10),
      correlation: fc.constantFrom("cor_1", "cor_2"),
      tenant: fc.constantFrom("acme", "globex"),
      session: fc.constantFrom("s1", "s2"),
      user: fc.constantFrom("dana", "eve"),
    }),
    { minLength: 1, maxLength: 70 },
  )
  .map((all) => all.map(({ made: make, ...at }, n) => make({ n, ...at })));

async function apply(events: readonly Envelope[]): Promise<void> {
  const changes = events.flatMap((event) =>
    evaluation.project(event, { topic: event.type, partition: 0, offset: 0n }),
  );
  await host.transaction(async (tx) => {
    await evaluation.apply(tx, changes);
  });
}
const empty = () => admin.query("TRUNCATE facts, labels, links, totals, episodes, erasures");
async function dump(): Promise<Record<string, unknown[]>> {
  const tables: Record<string, unknown[]> = {};
  for (const { table, orderBy } of dumpTables)
    tables[table] = (await admin.query(`SELECT * FROM ${table} ORDER BY ${orderBy}`)).rows;
  return tables;
}
const episodesUntil = (untilMs: number): Promise<EpisodeRow[]> =>
  admin.transaction(async (tx) => {
    await tx.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    const all: EpisodeRow[] = [];
    for await (const page of readEpisodes(tx, { tenantId: null, untilMs })) all.push(...page);
    return all;
  });

it(
  "has equal tables whatever the order and the batches, with everything twice",
  { timeout: limitMs },
  async () => {
    await fc.assert(
      fc.asyncProperty(
        history.chain((events) =>
          fc.record({
            events: fc.constant(events),
            shuffled: fc.shuffledSubarray([...events, ...events], {
              minLength: events.length * 2,
              maxLength: events.length * 2,
            }),
            batch: fc.integer({ min: 1, max: 12 }),
            together: fc.boolean(),
          }),
        ),
        async ({ events, shuffled, batch, together }) => {
          await empty();
          const clean = [...events].sort(
            (a, b) => a.recorded_at - b.recorded_at || (a.event_id < b.event_id ? -1 : 1),
          );
          await apply(clean);
          const expected = await dump();
          await empty();
          const batches = Array.from({ length: Math.ceil(shuffled.length / batch) }, (_, index) =>
            shuffled.slice(index * batch, (index + 1) * batch),
          );
          // Topics are consumed side by side: two batches of one episode may be under way at once.
          const half = Math.ceil(batches.length / 2);
          const lanes = together ? [batches.slice(0, half), batches.slice(half)] : [batches];
          await Promise.all(
            lanes.map(async (lane) => {
              for (const one of lane) await apply(one);
            }),
          );
          expect(await dump()).toEqual(expected);
        },
      ),
      { numRuns: 60 },
    );
  },
);

it(
  "cuts a dataset in time as if nothing had come after, and agrees with the table and with the rule for recoveries",
  { timeout: limitMs },
  async () => {
    await fc.assert(
      fc.asyncProperty(history, fc.integer({ min: 0, max: 41 }), async (events, moment) => {
        const untilMs = storyStartMs + moment * 10;
        await empty();
        await apply(events);
        const cut = await episodesUntil(untilMs);
        const whole = await episodesUntil(storyStartMs + 1_000_000);
        const stored = await dump();
        const byId = new Map(whole.map((one) => [one.episode_id, one as unknown as Record<string, unknown>]));
        expect(stored["episodes"]).toHaveLength(whole.length);
        for (const row of [...(stored["episodes"] ?? []), ...(stored["totals"] ?? [])] as Record<
          string,
          unknown
        >[]) {
          const { call_facts: _, ...rest } = row;
          expect(byId.get(String(row["episode_id"]))).toMatchObject(rest);
        }
        for (const { steps, recoveries } of whole) {
          expect(steps.map((step) => step.recovered_by)).toEqual(toRecoveries(steps));
          expect(recoveries).toBe(steps.filter((step) => step.recovered_by !== null).length);
        }
        await empty();
        // An erasure reaches back into every cut, also into those from before it.
        const before = events.filter(
          (event) => event.recorded_at <= untilMs || event.type === "fabric.tenant.erased",
        );
        if (before.length > 0) await apply(before);
        expect(await episodesUntil(storyStartMs + 1_000_000)).toEqual(cut);
      }),
      { numRuns: 60 },
    );
  },
);

it(
  "lists each call with its last decision and its outcome, and says of each stumble what made up for it",
  { timeout: limitMs },
  async () => {
    const attempt = fc.record({
      tool: fc.constantFrom("shell.run", "file.write"),
      resource: fc.constantFrom("repo:x", "repo:y", null),
      decisions: fc.array(fc.constantFrom("allow", "modify", "deny", "require_approval", "defer"), {
        maxLength: 2,
      }),
      outcome: fc.constantFrom("succeeded", "succeeded", "failed", "blocked", null),
      refused: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(attempt, { minLength: 1, maxLength: 25 }), async (attempts) => {
        await empty();
        await apply(
          attempts
            .flatMap(({ tool, resource, decisions, outcome: end, refused }, index): Envelope[] => {
              const one = { id: `c${index}`, tool, resource };
              const at = (n: number): At => ({ n: index * 10 + n, atMs: index * 10 + n });
              return [
                tell.requested(at(0), one),
                ...decisions.map((decision, n) => tell.decided(at(1 + n), one, decision)),
                ...(refused ? [tell.refused(at(4), one)] : []),
                ...(end === null ? [] : [tell.completed(at(5), one, end)]),
              ];
            })
            .reverse(),
        );
        const [episode] = await episodesUntil(storyStartMs + 1_000_000);
        const expected = attempts.map(({ tool, resource, decisions, outcome: end, refused }) => ({
          tool,
          resource,
          decision: decisions.at(-1) ?? null,
          outcome: end ?? (refused ? "blocked" : null),
          refused,
        }));
        expect(episode?.steps).toMatchObject(expected);
        expect(episode?.steps.map((step) => step.recovered_by)).toEqual(toRecoveries(expected));
      }),
      { numRuns: 60 },
    );
  },
);

interface Told {
  readonly tenant: string;
  readonly correlation: string;
  readonly session: string;
  readonly user: string;
  readonly atMs: number;
  readonly what: "prompt" | "folder" | "child";
  readonly text: string;
}

/** Leakage groups as a reader of the events alone would find them: by walking from episode to episode. */
function groupsByWalking(story: readonly Told[]): string[] {
  const ids = [...new Set(story.map((one) => episodeIdOf(one.tenant, one.correlation)))].sort();
  const eventsOf = new Map(
    ids.map((id) => [id, story.filter((one) => episodeIdOf(one.tenant, one.correlation) === id)]),
  );
  const traitsOf = (id: string): Set<string> => {
    const events = eventsOf.get(id) ?? [];
    const goal = events.find((one) => one.what === "prompt");
    return new Set(
      events
        .flatMap((one) => [
          `session ${one.session}`,
          ...(one.what === "child" ? [`session ${one.text}`] : []),
          ...(one.what === "folder" ? [`folder ${one.text} ${String(Math.floor(one.atMs / dayMs))}`] : []),
        ])
        .concat(goal === undefined ? [] : [`goal ${goal.user} ${goal.text.toLowerCase().trim()}`])
        .map((trait) => `${events[0]?.tenant ?? ""} ${trait}`),
    );
  };
  const traits = new Map(ids.map((id) => [id, traitsOf(id)]));
  return ids.map((id) => {
    const reached = new Set([id]);
    for (const at of reached) {
      for (const other of ids) {
        const shared = [...(traits.get(at) ?? [])].some((trait) => traits.get(other)?.has(trait) === true);
        if (shared) reached.add(other);
      }
    }
    return [...reached].sort().join(" ");
  });
}
const dayMs = 86_400_000;

it(
  "puts exactly those episodes into one group that share a session, a child, a goal, or a folder on one day",
  { timeout: limitMs },
  async () => {
    const story = fc
      .array(
        fc.record({
          tenant: fc.constantFrom("acme", "globex"),
          correlation: fc.integer({ min: 0, max: 9 }).map((n) => `cor_${String(n)}`),
          session: fc.integer({ min: 0, max: 14 }).map((n) => `s${String(n)}`),
          user: fc.constantFrom("dana", "eve", "finn"),
          what: fc.constantFrom("prompt" as const, "folder" as const, "child" as const),
          day: fc.integer({ min: 0, max: 5 }),
          pick: fc.integer({ min: 0, max: 7 }),
        }),
        { minLength: 1, maxLength: 14 },
      )
      .map((all) =>
        all
          .map(({ pick, day, ...one }, index) => ({
            ...one,
            atMs: day * dayMs + index,
            text:
              one.what === "prompt"
                ? `Goal ${String(pick)} `
                : one.what === "child"
                  ? `s${String(pick + 7)}`
                  : `/src/${String(pick)}`,
          }))
          .sort((a, b) => a.atMs - b.atMs),
      );
    await fc.assert(
      fc.asyncProperty(story, async (told) => {
        await empty();
        await apply(
          told.map((one, n): Envelope => {
            const at = { ...one, n };
            if (one.what === "prompt") return tell.prompt(at, one.text);
            return one.what === "folder" ? tell.session(at, one.text) : tell.subagent(at, one.text);
          }),
        );
        const cut = { tenantId: null, untilMs: storyStartMs + 10 * dayMs };
        const groups = await admin.transaction(async (tx) => {
          await tx.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
          const found = new LeakageGroups(await countEpisodes(tx, cut));
          for await (const page of readLinkedEpisodes(tx, cut)) for (const one of page) found.add(one);
          return found;
        });
        const ids = (await episodesUntil(cut.untilMs)).map((one) => one.episode_id);
        const members = (id: string): string =>
          ids
            .filter((_, other) => groups.firstOf(other) === groups.firstOf(ids.indexOf(id)))
            .sort()
            .join(" ");
        expect([...ids].sort().map(members)).toEqual(groupsByWalking(told));
      }),
      { numRuns: 80 },
    );
  },
);
