import { join } from "node:path";
import { gateHeapFlags } from "../../services/app/gate-heap.ts";
import type { BenchDatabase } from "./bench-database.ts";
import type { BenchProcess } from "./child-process.ts";
import { startProcess } from "./child-process.ts";
import type { Bench } from "./figure.ts";
import type { GateAddress } from "./gate-process.ts";
import type { HttpTarget } from "./http-load.ts";
import { idMarker } from "./id-marker.ts";

const tenantId = "acme";

/** What is asked, for the report's note. */
export const gateRequestBody =
  "asked: may this session run `git status` (allowed, with a capability), a session per connection";

/** What the answer to that holds when it was decided and recorded. */
export const allowedText = '"decision":"allow"';

/** A running gate, and how to ask it. */
export interface GateUnderTest {
  readonly target: HttpTarget;
  readonly process: BenchProcess;
}

/** Starts the gate on a database of its own, with one tenant; by the bundle that ships when none is named. */
export async function openGate(
  bench: Bench,
  database: BenchDatabase,
  bundleDir = join(bench.projectDir, "deploy", "policy", "default"),
): Promise<GateUnderTest> {
  await database.admin.query("INSERT INTO access.tenants (tenant_id) VALUES ($1)", [tenantId]);
  const settings = { databaseUrl: database.roleUrl("fabric_gate"), bundleDir, tenantId };
  const process = await startProcess("gate-process", settings, gateHeapFlags);
  bench.onEnd(() => process.stop());
  const { url, token } = (await process.ask("address")) as GateAddress;
  return { target: toTarget(url, token), process };
}

function toTarget(url: string, token: string): HttpTarget {
  return {
    url,
    path: "/v1/gate/decide",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: (agent) =>
      JSON.stringify({
        runtime: "claude-code",
        session_id: `session-${String(agent)}`,
        turn_id: `turn-${String(agent)}`,
        tool_call_id: `toolu_${idMarker}`,
        agent_id: "agent-main",
        tool: "shell.run",
        tool_alias: "Bash",
        input: {
          command: "git status --short && git log --oneline -20 -- services/payments",
          description: "Look at the state of the working tree before the change",
        },
        working_directory: "/home/dev/payments",
        permission_mode: "default",
      }),
  };
}
