import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { audit } from "../../processors/audit/audit.ts";
import { eventOf } from "../../processors/kit/given.ts";
import { draft } from "../../schemas/envelope.ts";
import { newEventId } from "../../services/platform/ids.ts";
import { systemClock } from "../../services/platform/clock.ts";
import { insertEvidenceStatement, openTenantKeys, sealPayload } from "../../services/platform/vault-seal.ts";
import { loadKekFile } from "../../services/vault/kek-file.ts";
import type { ReplayRig } from "../harness/replay-rig.ts";
import { openReplayRig, runsInProcesses } from "../harness/replay-rig.ts";
import { projectDir } from "../harness/stack.ts";

/** Recorded raw payloads through the adapter that ships and through the file of a new version, in a process of its own. */

let rig: ReplayRig;
let same: string;
let changed: string;
beforeAll(async () => {
  rig = await openReplayRig(["agent.session.ended"], 1);
  same = join(rig.root, "same.ts");
  changed = join(rig.root, "changed.ts");
  const from = `import { codex } from "${projectDir}/services/adapters/codex/codex.ts";\n`;
  await writeFile(same, `${from}export const adapter = { ...codex, version: "99" };`);
  await writeFile(
    changed,
    `${from}export const adapter = { ...codex, translate(payload, bytes) {
       const made = codex.translate(payload, bytes);
       return made.kind === "gated" ? { ...made, request: { ...made.request, tool: "shell.exec" } } : made;
     } };`,
  );
});
afterAll(async () => {
  await rig.close();
});

const adapter = (file: string, ...argv: string[]) =>
  rig.fabric(["replay", "adapter", "codex", "--version", file, ...argv, "--json"], {
    runs: runsInProcesses(),
  });

describe("fabric replay adapter", { timeout: 180_000 }, () => {
  it("finds no difference where there is none, but for the version's own name", async () => {
    const said = await adapter(same);
    expect(said).toMatchObject({ exit: 0, json: { changed: 0 } });
    expect((said.json as { payloads: number }).payloads).toBeGreaterThan(20);
  });

  it("names each payload that a new version translates otherwise, and where", async () => {
    const dir = join(rig.root, "payloads");
    await mkdir(dir);
    for (const name of ["PreToolUse.Bash.json", "SessionStart.json"])
      await writeFile(join(dir, name), await readFile(join(projectDir, "test/corpus/hooks/codex", name)));
    await writeFile(join(dir, "lines.jsonl"), '{"odd":1}\nno JSON\n');
    const said = await adapter(changed, "--from", dir);
    expect(said).toMatchObject({
      exit: 1,
      json: {
        payloads: 4,
        changed: 1,
        samples: [
          {
            name: "PreToolUse.Bash.json",
            places: [{ path: "/request/tool", before: '"shell.run"', after: '"shell.exec"' }],
          },
        ],
      },
    });
  });

  it("opens payloads of the vault for an operator alone, and writes down who did", async () => {
    const keys = openTenantKeys(
      rig.host.sql,
      await loadKekFile(join(rig.root, ".fabric/local/services/kek.json")),
    );
    const bytes = await readFile(join(projectDir, "test/corpus/hooks/codex/PreToolUse.Bash.json"));
    const sealed = await sealPayload(keys, { tenantId: "acme", bytes, dataClass: "internal" });
    await rig.host.sql.query(insertEvidenceStatement([sealed.row]));
    const event = eventOf(draft("agent.session.ended", { reason: null }), {
      eventId: newEventId(systemClock),
      payloadRef: sealed.ref,
      payloadDigest: sealed.digest,
      runtime: {
        kind: "codex",
        adapter_version: "1",
        runtime_version: null,
        permission_mode: null,
        sandbox: null,
      },
    });
    await rig.host.sql.transaction((tx) =>
      audit.apply(tx, audit.project(event, { topic: event.type, partition: 0, offset: 0n })),
    );
    const refused = await adapter(changed, "--from", "vault", "--token-file", rig.agentTokenFile);
    expect(refused).toMatchObject({ exit: 4 });
    const said = await adapter(changed, "--from", "vault", "--token-file", rig.tokenFile);
    expect(said).toMatchObject({
      exit: 1,
      json: { payloads: 1, changed: 1, samples: [{ name: sealed.ref }] },
    });
    const { rows } = await rig.host.sql.query("SELECT person, act, shadow, detail FROM replay.acts");
    expect(rows).toEqual([
      { person: "olga", act: "evidence_read", shadow: "codex", detail: { payloads: 1 } },
    ]);
  });
});
