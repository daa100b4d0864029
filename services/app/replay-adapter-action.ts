import { readFile, readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { Fault } from "../../schemas/faults.ts";
import type { Actions, Common } from "../cli/actions.ts";
import { toTable } from "../cli/report.ts";
import { style } from "../cli/screen.ts";
import type { Config } from "../platform/config.ts";
import { requireSetting } from "../platform/config.ts";
import { openPayload, openTenantKeys } from "../platform/vault-seal.ts";
import type { PlaceDifference } from "../replay/compare-translations.ts";
import { compareTranslations, translatePlainly } from "../replay/compare-translations.ts";
import type { Actor } from "../replay/shadow-rows.ts";
import { recordAct } from "../replay/shadow-rows.ts";
import { loadKekFile } from "../vault/kek-file.ts";
import type { Place } from "./place.ts";
import { replayActor } from "./replay-actor.ts";
import type { RunPlace } from "./shadow-job.ts";
import { shippedAdapters } from "./shipped-adapters.ts";
import { serviceDatabase } from "./wiring.ts";

/** Payloads that go to the version's process in one message. */
const batchPayloads = 200;
/** The newest payloads that the vault is asked for. */
const vaultMaxPayloads = 2_000;
const valueMaxChars = 120;

interface Recorded {
  readonly name: string;
  readonly body: string;
}
interface Changed {
  readonly name: string;
  readonly places: readonly PlaceDifference[];
}

/** `fabric replay adapter`: recorded raw payloads through the adapter that ships and a new version of it. */
export function replayAdapterAction(
  place: Place,
  configOf: (common: Common) => Promise<Config>,
  runPlace: RunPlace,
): Pick<Actions, "replayAdapter"> {
  return {
    async replayAdapter(common, { runtime, version, from, samples, tokenFile }) {
      const before = shippedAdapters.get(runtime);
      if (before === undefined)
        throw new Fault(
          "RUNTIME_UNKNOWN",
          `\`${runtime}\`; ${[...shippedAdapters.keys()].join(", ")} have one`,
        );
      let recorded: readonly Recorded[];
      if (from === "vault") {
        const config = await configOf(common);
        const actor = await replayActor(config, common, tokenFile);
        recorded = await readVault(config, actor, runtime);
      } else recorded = await readFolder(from ?? join(place.packageDir, "test", "corpus", "hooks", runtime));
      const file = resolve(version);
      const changed: Changed[] = [];
      for (let at = 0; at < recorded.length; at += batchPayloads) {
        common.signal.throwIfAborted();
        const batch = recorded.slice(at, at + batchPayloads);
        const after = await runPlace.translate(
          runtime,
          file,
          batch.map(({ body }) => body),
        );
        batch.forEach(({ name, body }, index) => {
          const places = compareTranslations(translatePlainly(before, body), after[index] ?? {});
          if (places.length > 0) changed.push({ name, places });
        });
      }
      const head = `${String(changed.length)} of ${String(recorded.length)} payloads of ${runtime} are translated differently`;
      const text =
        changed.length === 0
          ? `${style(common.screen, "green", "equal")}: ${String(recorded.length)} payloads of ${runtime}`
          : [style(common.screen, "yellow", head), ...changed.slice(0, samples).map(toText)].join("\n\n");
      return {
        json: {
          runtime,
          payloads: recorded.length,
          changed: changed.length,
          samples: changed.slice(0, samples),
        },
        text,
        exit: changed.length === 0 ? 0 : 1,
      };

      function toText({ name, places }: Changed): string {
        const cut = (value: string | null): string =>
          value === null
            ? "nothing"
            : value.length > valueMaxChars
              ? `${value.slice(0, valueMaxChars)}…`
              : value;
        return `${name}\n${toTable(
          ["WHERE", "SHIPS", "NEW"],
          places.map((one) => [one.path, cut(one.before), cut(one.after)]),
          common.screen.columns,
        )}`;
      }
    },
  };
}

/** `*.json` is one payload each, `*.jsonl` one a line. */
async function readFolder(dir: string): Promise<readonly Recorded[]> {
  const names = await readdir(dir).catch((error: unknown) => {
    throw new Fault("USAGE", `\`${dir}\` cannot be read; name a folder of raw payloads with --from`, {
      cause: error,
    });
  });
  const recorded: Recorded[] = [];
  for (const name of names.sort()) {
    if (!/[.]jsonl?$/.test(name)) continue;
    const text = await readFile(join(dir, name), "utf8");
    if (name.endsWith(".json")) recorded.push({ name, body: text });
    else
      text.split("\n").forEach((line, index) => {
        if (line.trim() !== "") recorded.push({ name: `${name}:${String(index + 1)}`, body: line });
      });
  }
  if (recorded.length === 0) throw new Fault("USAGE", `\`${dir}\` holds no payload (*.json, *.jsonl)`);
  return recorded;
}

/** The newest payloads of a runtime, opened; who opened them is written down before. */
async function readVault(config: Config, actor: Actor, runtime: string): Promise<readonly Recorded[]> {
  const kek = await loadKekFile(
    requireSetting(config.kekFile, "FABRIC_KEK_FILE", "payloads are sealed under the key-encryption key"),
  );
  const admin = serviceDatabase(config, "admin", { maxConnections: 1 });
  const auditor = serviceDatabase(config, "auditor", { maxConnections: 2 });
  try {
    const { rows } = await auditor.query<{ payload_ref: string }>(
      `SELECT payload_ref FROM (
          SELECT payload_ref, max(recorded_at) AS at FROM audit.trail
          WHERE runtime_kind = $1 AND payload_ref IS NOT NULL GROUP BY payload_ref) AS p
        ORDER BY at DESC LIMIT $2`,
      [runtime, vaultMaxPayloads],
    );
    await recordAct(admin, actor, {
      shadow: runtime,
      act: "evidence_read",
      reason: "a new version of the adapter is tried on recorded payloads",
      detail: { payloads: rows.length },
    });
    const keys = openTenantKeys(auditor, kek);
    const recorded: Recorded[] = [];
    for (const { payload_ref } of rows) {
      const { bytes } = await openPayload(auditor, keys, payload_ref);
      recorded.push({ name: payload_ref, body: bytes.toString("utf8") });
    }
    if (recorded.length === 0) throw new Fault("USAGE", `the vault holds no payload of \`${runtime}\``);
    return recorded;
  } finally {
    await admin.end();
    await auditor.end();
  }
}
