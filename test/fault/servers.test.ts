import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { StackHandle } from "../../services/stack/stack.ts";
import { eventually } from "../harness/eventually.ts";
import { saveSkippedCell } from "./ledger/cell-report.ts";
import { rounds } from "./ledger/link-cell.ts";
import type { OwnServers } from "./ledger/own-servers.ts";
import { startOwnServers } from "./ledger/own-servers.ts";
import type { Pipeline } from "./ledger/pipeline.ts";
import type { SmallDisk } from "./ledger/small-disk.ts";
import { runStory } from "./ledger/story-cell.ts";
import { cleanVerdict } from "./ledger/verdict.ts";

type Server = "kafka" | "postgres";
const linkOf = { kafka: "broker", postgres: "postgres" } as const;

/** How long a server is away at least. */
const awayMs = 3_000;

let servers: OwnServers;
beforeAll(async () => {
  servers = await startOwnServers();
}, 180_000);
afterAll(() => servers.close(), 60_000);

/** What ends a server, and what starts it again. */
interface Ending {
  readonly name: string;
  readonly server: Server;
  readonly fault: string;
  readonly harm: (server: Server, stack: StackHandle, pipeline: Pipeline) => Promise<void>;
}

const endings: readonly Ending[] = (["kafka", "postgres"] as const).flatMap((server) => [
  {
    name: `${linkOf[server]}-restarted`,
    server,
    fault: "ended in good order",
    harm: (part, stack) => stack.stopPart(part),
  },
  {
    name: `${linkOf[server]}-killed`,
    server,
    fault: "SIGKILL",
    harm: (part, stack) => stack.kill(part),
  },
]);

async function expectClean({ rounds: done, verdict }: Awaited<ReturnType<typeof runStory>>): Promise<void> {
  expect(verdict).toEqual(cleanVerdict(verdict.committed, verdict.repeatedOnTopic));
  for (const round of done) {
    expect(round.inFlight.length).toBeGreaterThan(0);
    // Committed meanwhile, or refused with an error that says so.
    expect(round.committedDuring + (round.refusedDuring ?? 0)).toBeGreaterThan(0);
    expect(round.hits["connections"]).toBeGreaterThan(0);
    expect(round.allMs).not.toBeNull();
  }
  return Promise.resolve();
}

describe("a server that ends and comes back", () => {
  for (const { name, server, fault, harm } of endings) {
    it(
      `${name}: loses, doubles and reorders nothing, and leaves nothing stuck`,
      { timeout: 900_000 },
      async () => {
        const { stack } = servers;
        const result = await runStory(
          {
            name,
            link: linkOf[server],
            fault,
            hasPeer: true,
            rounds,
            disturb: async (pipeline) => {
              const link = pipeline.links[linkOf[server]];
              const before = link.serverEnds;
              await harm(server, stack, pipeline);
              await wait(awayMs);
              await stack.start(server);
              return { connections: link.serverEnds - before };
            },
          },
          stack,
        );
        await expectClean(result);
      },
    );
  }
});

describe("a disk that is full", () => {
  for (const server of ["kafka", "postgres"] as const) {
    const name = `${linkOf[server]}-disk-full`;
    it(
      `${name}: loses, doubles and reorders nothing, and goes on once there is room`,
      { timeout: 900_000 },
      async ({ skip }) => {
        const { stack, disks } = servers;
        if (disks === null) {
          const why = "nothing can be mounted here";
          await saveSkippedCell({ name, link: linkOf[server], fault: "disk full", why });
          skip(why);
          return;
        }
        const disk: SmallDisk = disks[server];
        const result = await runStory(
          {
            name,
            link: linkOf[server],
            fault: "disk full",
            hasPeer: true,
            rounds,
            disturb: async (pipeline) => {
              const link = pipeline.links[linkOf[server]];
              const before = link.serverEnds;
              const refused = pipeline.traffic.refused;
              const lines = pipeline.lines.length;
              const filled = await disk.fill();
              // The broker ends itself, its only log directory having failed; Postgres refuses, or ends.
              await eventually(
                () =>
                  server === "kafka"
                    ? link.serverEnds - before
                    : pipeline.traffic.refused - refused + link.serverEnds - before,
                Boolean,
                { deadlineMs: 60_000, what: "a write that finds no room" },
              );
              await wait(awayMs);
              const said = pipeline.lines.length - lines;
              await disk.free();
              await stack.start(server);
              return {
                connections:
                  server === "kafka"
                    ? link.serverEnds - before
                    : Math.max(link.serverEnds - before, pipeline.traffic.refused - refused),
                "bytes filled": filled,
                "lines said": said,
              };
            },
          },
          stack,
        );
        await expectClean(result);
      },
    );
  }
});
