import { rm } from "node:fs/promises";
import { homedir, userInfo } from "node:os";
import { resolve } from "node:path";
import { Fault } from "../../schemas/faults.ts";
import type { Actions, Common } from "../cli/actions.ts";
import type { Report } from "../cli/report.ts";
import { toTable } from "../cli/report.ts";
import { runCanaries } from "../doctor/run-canaries.ts";
import { capabilityHeaders, toCapabilityNotes, toCapabilityRows } from "../install/capability-table.ts";
import type { FileChange } from "../install/config-files.ts";
import { applyChanges, readText } from "../install/config-files.ts";
import { findClient, findOnPath } from "../install/find-client.ts";
import type { HookTools } from "../install/hook-commands.ts";
import { inspectInstall } from "../install/inspect-install.ts";
import { readRecord } from "../install/installed-record.ts";
import type { InstallRequest } from "../install/plan-install.ts";
import {
  fabricDirOf,
  planInstall,
  planUninstall,
  toRecordFile,
  toTarget,
  withDigestsOfNow,
} from "../install/plan-install.ts";
import { renderChanges } from "../install/render-changes.ts";
import { loadAuthKeysFile } from "../platform/auth-keys.ts";
import { issueLocalToken } from "../platform/auth.ts";
import { systemClock } from "../platform/clock.ts";
import type { Config } from "../platform/config.ts";
import { requireSetting } from "../platform/config.ts";
import type { ClientProgram, HookForm, RuntimeGuide, RuntimeRoom } from "../platform/runtime-room.ts";
import { thisMachine } from "../stack/machine.ts";
import { localTenant } from "./prepare-local.ts";
import { runtimeGuides, runtimeRooms } from "./runtime-rooms.ts";
import { findSessions } from "./session-findings.ts";

type RuntimeActions = Pick<Actions, "runtimeInstall" | "runtimeUninstall" | "runtimeDoctor" | "runtimes">;
type InstallOptions = Parameters<Actions["runtimeInstall"]>[1];

/** A quarter of a year: hooks cannot ask for a new one by themselves, and `fabric install` renews it. */
const tokenLifetimeSeconds = 90 * 24 * 3600;

function roomOf(runtime: string): RuntimeRoom {
  const room = runtimeRooms.get(runtime);
  if (room !== undefined) return room;
  const guide = runtimeGuides.get(runtime);
  if (guide !== undefined)
    throw new Fault("USAGE", `\`${runtime}\` has nothing to install: ${guide.configure.join(" ")}`);
  const known = [...runtimeRooms.keys(), ...runtimeGuides.keys()];
  throw new Fault("USAGE", `\`${runtime}\` is no runtime; there are: ${known.join(", ")}`);
}

async function toolsOf(): Promise<HookTools & { readonly hasCurl: boolean }> {
  const path = thisMachine().env["PATH"] ?? "";
  const [timeout, curl] = await Promise.all([findOnPath("timeout", path), findOnPath("curl", path)]);
  return { hasTimeout: timeout !== null, hasCurl: curl !== null, node: process.execPath };
}

function formOf(room: RuntimeRoom, given: string | undefined, hasCurl: boolean): HookForm {
  const { forms } = room.setup;
  const usual = forms[0] === "shell" && !hasCurl ? "node" : forms[0];
  const form = given === undefined ? usual : forms.find((one) => one === given);
  if (form === undefined)
    throw new Fault("USAGE", `${room.adapter.runtime} takes no form \`${given ?? ""}\`: ${forms.join(", ")}`);
  if (form === "shell" && !hasCurl)
    throw new Fault("TOOL_MISSING", "the form shell needs `curl`; install it, or give --form node");
  return form;
}

/** A token of this machine's own key, or the one that a file holds. */
async function tokenOf(configOf: () => Promise<Config>, file: string | undefined): Promise<string> {
  // Whoever names both address and token needs no other setting: a developer's machine has none.
  const config = file === undefined ? await configOf() : null;
  if (config?.authKeysFile !== undefined) {
    const { signing } = await loadAuthKeysFile(config.authKeysFile);
    return issueLocalToken({
      tenantId: localTenant,
      subject: userInfo().username,
      roles: ["runtime"],
      lifetimeSeconds: tokenLifetimeSeconds,
      privateKey: signing,
      clock: systemClock,
    });
  }
  const path = file ?? requireSetting(config?.tokenFile, "FABRIC_TOKEN_FILE", "or give --token-file");
  const text = await readText(path);
  if (text === null) throw new Fault("CONFIG_INVALID", `the token file \`${path}\` does not exist`);
  return text.trim();
}

const programOf = (program: string, home: string): ClientProgram => ({
  argv: [program],
  env: {
    ...(Object.fromEntries(
      Object.entries(thisMachine().env).filter(([, value]) => value !== undefined),
    ) as Record<string, string>),
    HOME: home,
  },
  workingDirectory: home,
  home,
});

/** The commands about runtimes on this machine. */
export function runtimeActions(configOf: (common: Common) => Promise<Config>): RuntimeActions {
  const homeOf = (given: string | undefined): string => (given === undefined ? homedir() : resolve(given));

  async function toRequest(common: Common, options: InstallOptions): Promise<InstallRequest> {
    const room = roomOf(options.runtime);
    const { hasCurl, ...tools } = await toolsOf();
    const form = formOf(room, options.form, hasCurl);
    if (form === "http" && options.waitSeconds > 0)
      throw new Fault("USAGE", "the form http cannot wait for an approval; give --form shell or node too");
    const client = await findClient(room, thisMachine().env, options.program);
    const refusal = room.setup.refuse(client.version, form);
    if (refusal !== null) throw new Fault("CLIENT_REFUSED", refusal);
    const gateUrl =
      options.gateUrl ??
      requireSetting((await configOf(common)).gate.url, "FABRIC_GATE_URL", "or give --gate-url");
    return {
      room,
      home: homeOf(options.home),
      form,
      gateUrl: gateUrl.replace(/\/+$/, ""),
      token: await tokenOf(() => configOf(common), options.tokenFile),
      program: resolve(client.program),
      clientVersion: client.version,
      tools,
      approvalWaitMs: options.waitSeconds * 1000,
      ...(client.packagesDir === undefined ? {} : { packagesDir: client.packagesDir }),
    };
  }

  return {
    async runtimeInstall(common, options) {
      const request = await toRequest(common, options);
      const plan = await planInstall(request);
      const { room, program, home } = request;
      const { configurationHash, fabricDir } = plan.target;
      const diff = renderChanges([...plan.changes, ...plan.ownFiles.filter(isNoScript)], request.token);
      if (diff !== "") common.screen.line(diff);
      const about = {
        runtime: options.runtime,
        form: request.form,
        clientVersion: request.clientVersion,
        configurationHash,
        changed: [...plan.changes, ...plan.ownFiles].filter(({ before, after }) => before !== after).length,
      };
      if (options.dryRun) return { json: { ...about, written: false }, text: "nothing was written" };
      await applyChanges([...plan.ownFiles, ...plan.changes]);
      const client = programOf(program, home);
      const consent = await askConsent(common, room, client, plan.target, options.trust);
      const installedAt = new Date(systemClock.nowMs()).toISOString();
      // The client writes its yes into its own files: the record holds what stands there in the end, for an exact undo.
      const record = await withDigestsOfNow({ ...plan.record, installedAt });
      await applyChanges([toRecordFile(fabricDir, record)]);
      const done = `${options.runtime} ${request.clientVersion}: hooks ${about.changed === 0 ? "as they were" : "installed"} (${request.form}, ${configurationHash})`;
      return {
        json: { ...about, written: true, consent },
        text: [
          done,
          consent === "untrusted"
            ? `the client SKIPS them until somebody agrees: run \`fabric install ${options.runtime} --trust\``
            : `sessions that run already go on without them; prove it with \`fabric doctor ${options.runtime}\``,
          ...(room.setup.nextSteps ?? []),
        ].join("\n"),
        exit: consent === "untrusted" ? 1 : 0,
      };
    },

    async runtimeUninstall(common, options) {
      const room = roomOf(options.runtime);
      const home = homeOf(options.home);
      const record = await readRecord(fabricDirOf(home, options.runtime));
      const target = toTarget({
        room,
        home,
        form: record?.form ?? room.setup.forms[0],
        gateUrl: record?.gateUrl ?? "",
        token: "",
        clientVersion: record?.clientVersion ?? "",
        tools: { hasTimeout: false, node: process.execPath },
        approvalWaitMs: record?.approvalWaitMs ?? 0,
        ...(record?.packagesDir == null ? {} : { packagesDir: record.packagesDir }),
      });
      const changes = await planUninstall(room, target);
      const token = (await readText(target.tokenFile))?.trim() ?? "";
      if (changes.length > 0) common.screen.line(renderChanges(changes, token));
      if (options.dryRun) return { json: { changed: changes.length }, text: "nothing was written" };
      await applyChanges(changes);
      const folders = [target.fabricDir, ...(room.setup.ownFolders?.(target) ?? [])];
      await Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true })));
      return {
        json: { runtime: options.runtime, changed: changes.length },
        text:
          changes.length === 0
            ? `nothing of ours was in the configuration of ${options.runtime}`
            : `${options.runtime} has no hooks of ours any more`,
      };
    },

    async runtimeDoctor(common, options) {
      const guide = runtimeGuides.get(options.runtime);
      if (guide !== undefined) {
        return {
          json: { runtime: options.runtime, state: "nothing to install", configure: guide.configure },
          text: [
            `${options.runtime}: nothing is installed for it; it is configured:`,
            ...guide.configure,
          ].join("\n  "),
        };
      }
      const room = roomOf(options.runtime);
      const home = homeOf(options.home);
      const fabricDir = fabricDirOf(home, options.runtime);
      const record = await readRecord(fabricDir);
      if (record === null) {
        return {
          json: { runtime: options.runtime, state: "missing" },
          text: `missing: nothing is installed for ${options.runtime}; run \`fabric install ${options.runtime}\``,
          exit: 1,
        };
      }
      const client = await findClient(room, thisMachine().env, options.program ?? record.program);
      const refusal = room.setup.refuse(client.version, record.form);
      const { hasCurl: _hasCurl, ...tools } = await toolsOf();
      const token = (await readText(`${fabricDir}/token`))?.trim() ?? "";
      const request = {
        room,
        home,
        form: record.form,
        gateUrl: record.gateUrl,
        token,
        clientVersion: record.clientVersion,
        tools,
        approvalWaitMs: record.approvalWaitMs,
        ...(record.packagesDir === null ? {} : { packagesDir: record.packagesDir }),
      };
      const target = toTarget(request);
      const inspection = await inspectInstall(room, target, programOf(client.program, home));
      const canaries = options.canaries
        ? await runCanaries({
            room,
            program: client.program,
            gateUrl: record.gateUrl,
            signal: common.signal,
            async installInto(emptyHome, gateUrl) {
              const { packagesDir: _theirs, ...asked } = request;
              const plan = await planInstall({
                ...asked,
                // What waits here is a canary's ticket.
                approvalWaitMs: 0,
                home: emptyHome,
                gateUrl,
                program: client.program,
              });
              await applyChanges([...plan.ownFiles, ...plan.changes]);
              return plan.target;
            },
          })
        : [];
      const sessions = await findSessions(
        room,
        { home, gateUrl: record.gateUrl, token },
        // What ran before the hooks were there, they could not see.
        Math.max(systemClock.nowMs() - options.sinceMs, Date.parse(record.installedAt)),
        common.signal,
      );
      const isWell =
        sessions.isWell &&
        (inspection.state === "trusted" || inspection.state === "managed") &&
        inspection.openings.length === 0 &&
        refusal === null &&
        canaries.every(({ held }) => held === true);
      return {
        json: {
          runtime: options.runtime,
          ...client,
          configurationHash: target.configurationHash,
          ...inspection,
          refusal,
          canaries,
          sessions: sessions.sessions,
        },
        text: [
          `${options.runtime} ${client.version} (${client.program})`,
          `configuration: ${inspection.state}, ${record.form}, ${target.configurationHash}, installed ${record.installedAt}`,
          ...(refusal === null ? [] : [`REFUSED  ${refusal}`]),
          ...inspection.findings.map((one) => `found    ${one}`),
          ...inspection.openings.map((one) => `OPEN     ${one}`),
          ...canaries.map(
            ({ name, held, detail }) =>
              `${held === null ? "?       " : held ? "held    " : "NOT HELD"} ${name}${held === true ? "" : `: ${detail}`}`,
          ),
          ...sessions.lines,
        ].join("\n"),
        exit: isWell ? 0 : 1,
      };
    },

    runtimes(common, { runtime }): Promise<Report> {
      const guide = runtime === undefined ? undefined : runtimeGuides.get(runtime);
      const rooms =
        guide !== undefined ? [] : runtime === undefined ? [...runtimeRooms.values()] : [roomOf(runtime)];
      const guides = runtime === undefined ? [...runtimeGuides.values()] : guide === undefined ? [] : [guide];
      const toText = (
        { adapter, capabilities }: RuntimeGuide | RuntimeRoom,
        how: string,
        more: readonly string[],
      ): string =>
        [
          `${adapter.runtime}: adapter ${adapter.version}, seen with ${capabilities.clientVersion} on ${capabilities.recordedOn}; ${how}`,
          toTable([...capabilityHeaders], toCapabilityRows(capabilities), common.screen.columns),
          ...capabilities.blindSpots.map((one) => `past the hooks: ${one}`),
          ...more,
          ...(runtime === undefined ? [] : toCapabilityNotes(capabilities)),
        ].join("\n");
      const text = [
        ...rooms.map((room) =>
          toText(
            room,
            `forms: ${room.setup.forms.join(", ")}`,
            Object.entries(room.limits).flatMap(([what, limit]) =>
              limit === undefined ? [] : [`not possible: ${what}: ${limit.why}`],
            ),
          ),
        ),
        ...guides.map((one) =>
          toText(
            one,
            "nothing to install",
            one.configure.map((line) => `configure: ${line}`),
          ),
        ),
      ];
      return Promise.resolve({
        json: [
          ...rooms.map(({ adapter, capabilities, setup, limits }) => ({
            adapter_version: adapter.version,
            forms: setup.forms,
            limits,
            ...capabilities,
          })),
          ...guides.map(({ adapter, capabilities, configure }) => ({
            adapter_version: adapter.version,
            forms: [],
            configure,
            ...capabilities,
          })),
        ],
        text: [...text, "° written in the client's own schemas or pages, not tried; ? not known"].join(
          "\n\n",
        ),
      });
    },
  };
}

/** A shim is shown by its name alone: it is the package's own. */
const isNoScript = ({ path }: FileChange): boolean => !/hook\.(sh|mjs)$/.test(path);

/** Shows what the client would ask, and records the yes of a person, or of the operator who gave `--trust`. */
async function askConsent(
  common: Common,
  room: RuntimeRoom,
  client: ClientProgram,
  target: Parameters<NonNullable<RuntimeRoom["setup"]["consent"]>["give"]>[1],
  isTrusted: boolean,
): Promise<"not asked" | "trusted" | "untrusted"> {
  const { consent } = room.setup;
  if (consent === undefined) return "not asked";
  const state = await consent.state(client, target);
  if (state === "trusted" || state === "managed") return "trusted";
  common.screen.line(`${room.setup.program} runs these only after a yes, by their hash:`);
  for (const { what, hash } of await consent.show(client, target)) common.screen.line(`  ${hash}  ${what}`);
  const said = isTrusted ? "yes" : await askPerson(common);
  if (said !== "yes") return "untrusted";
  await consent.give(client, target);
  return "trusted";
}

/** What a person types; nothing where there is no terminal. */
async function askPerson(common: Common): Promise<string> {
  try {
    return await common.askSecret("type yes to trust them");
  } catch (error) {
    if (error instanceof Fault && error.code === "ROLE_MISSING") return "";
    throw error;
  }
}
