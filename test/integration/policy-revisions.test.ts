import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Fault } from "../../schemas/faults.ts";
import type { ActivationContext } from "../../services/gate/revisions/activate.ts";
import { activateBundle, activateStored, rollback } from "../../services/gate/revisions/activate.ts";
import type { BundleFiles, BundleJudge } from "../../services/gate/revisions/bundle-judge.ts";
import { missingPolicy } from "../../services/gate/revisions/missing-policy.ts";
import type { PolicyWatch, PolicyWatchOptions } from "../../services/gate/revisions/watch-policy.ts";
import { watchPolicy } from "../../services/gate/revisions/watch-policy.ts";
import { canonicalDigest } from "../../services/platform/canonical-json.ts";
import { systemClock } from "../../services/platform/clock.ts";
import { createMetrics } from "../../services/platform/metrics.ts";
import { createLog } from "../../services/platform/log.ts";
import { eventually } from "../harness/eventually.ts";
import type { GateRig } from "../harness/gate-rig.ts";
import { createGateRig, testCodec } from "../harness/gate-rig.ts";

let rig: GateRig;
const watches: PolicyWatch[] = [];
beforeEach(async () => {
  rig = await createGateRig();
});
afterEach(async () => {
  for (const watch of watches.splice(0)) await watch.close();
  await rig.close();
});

/** A judge whose bundles say by themselves what is wrong with them. */
const judge: BundleJudge = {
  load(bundle) {
    const text = bundle.files.get("bundle.yaml") ?? "";
    if (text.includes("broken")) throw new Fault("POLICY_REFUSED", "bundle.yaml:1: broken");
    const digest = canonicalDigest(Object.fromEntries(bundle.files)).replace("sha256:", "");
    const stated = /revision: (\S+)/.exec(text)?.[1] ?? "policy@none";
    return {
      ...missingPolicy,
      name: bundle.name,
      digest,
      revision: `${stated}+${digest.slice(0, 12)}`,
    };
  },
  check(bundle) {
    const policy = judge.load(bundle);
    if (bundle.files.has("cases/fail.yaml")) {
      return Promise.reject(new Fault("POLICY_REFUSED", "cases/fail.yaml: its case fails"));
    }
    return Promise.resolve({ policy, cases: 1, denies: 1 });
  },
};

const bundle = (revision: string, more: Record<string, string> = {}): BundleFiles => ({
  name: "default",
  files: new Map(Object.entries({ "bundle.yaml": `revision: ${revision}\n`, ...more })),
});
const context = (): ActivationContext => ({
  database: rig.database(),
  codec: testCodec(),
  clock: systemClock,
  environment: "test",
  judge,
});
const wish = { by: "alice", note: null };
const watch = async (options: Partial<PolicyWatchOptions> = {}): Promise<PolicyWatch> => {
  const one = await watchPolicy({
    ...context(),
    log: createLog({ service: "gate", level: "silent" }),
    metrics: createMetrics(),
    loadFolder: null,
    pollMs: 100,
    ...options,
  });
  watches.push(one);
  return one;
};
const inForce = (one: PolicyWatch): string => one.current().revision.split("+")[0] ?? "";

describe("activating a policy", () => {
  it("reaches two gates without a restart, and so does going back", async () => {
    await activateBundle(context(), bundle("policy@2026-01-01.1"), wish);
    const gates = [await watch(), await watch()];
    expect(gates.map(inForce)).toEqual(["policy@2026-01-01.1", "policy@2026-01-01.1"]);
    await activateBundle(context(), bundle("policy@2026-01-01.2"), wish);
    await eventually(
      () => gates.map(inForce),
      (found) => found.every((one) => one === "policy@2026-01-01.2"),
      { deadlineMs: 2_000 },
    );
    const back = await rollback(context(), { by: "bob", note: "too strict" });
    expect(back).toMatchObject({ changed: true, activated_by: "bob" });
    await eventually(
      () => gates.map(inForce),
      (found) => found.every((one) => one === "policy@2026-01-01.1"),
      { deadlineMs: 2_000 },
    );
  });

  it("is an event in the same transaction, and each activation names the one before", async () => {
    const first = await activateBundle(context(), bundle("policy@2026-01-01.1"), wish);
    const second = await activateBundle(context(), bundle("policy@2026-01-01.2"), wish);
    const events = await rig.events();
    expect(events).toMatchObject([
      {
        type: "fabric.policy.activated",
        tenant_id: "fabric",
        redacted_summary: { revision: first.revision, previous_revision: null, activated_by: "alice" },
      },
      {
        type: "fabric.policy.activated",
        redacted_summary: { revision: second.revision, previous_revision: first.revision },
      },
    ]);
  });

  it("of the active revision changes nothing", async () => {
    await activateBundle(context(), bundle("policy@2026-01-01.1"), wish);
    const again = await activateBundle(context(), bundle("policy@2026-01-01.1"), { by: "bob", note: null });
    expect(again).toMatchObject({ changed: false, activated_by: "alice" });
    expect(await rig.count("gate.policy_activations")).toBe(1);
  });

  it("refuses a revision's name with other files, and stores nothing of them", async () => {
    await activateBundle(context(), bundle("policy@2026-01-01.1"), wish);
    await expect(
      activateBundle(context(), bundle("policy@2026-01-01.1", { "labels.yaml": "rules: []" }), wish),
    ).rejects.toMatchObject({ code: "POLICY_CONFLICT" });
    expect(await rig.count("gate.policy_revisions")).toBe(1);
  });

  it("refuses a bundle whose cases fail, and the old one stays", async () => {
    await activateBundle(context(), bundle("policy@2026-01-01.1"), wish);
    const gate = await watch();
    await expect(
      activateBundle(context(), bundle("policy@2026-01-01.2", { "cases/fail.yaml": "" }), wish),
    ).rejects.toMatchObject({ code: "POLICY_REFUSED" });
    await gate.refresh();
    expect([inForce(gate), gate.state().state]).toEqual(["policy@2026-01-01.1", "up"]);
  });

  it("serialises activations that come at once", async () => {
    const names = ["1", "2", "3", "4", "5", "6"].map((one) => `policy@2026-01-01.${one}`);
    const shared = context();
    await Promise.all(names.map((name) => activateBundle(shared, bundle(name), wish)));
    const { rows } = await rig.admin.query<{ revision: string; previous_revision: string | null }>(
      "SELECT revision, previous_revision FROM gate.policy_activations ORDER BY activation_id",
    );
    expect(rows.map((row) => row.previous_revision)).toEqual([
      null,
      ...rows.slice(0, -1).map((row) => row.revision),
    ]);
    const gates = [await watch(), await watch()];
    expect(new Set(gates.map((gate) => gate.current().revision)).size).toBe(1);
  });

  it("finds a stored revision by the beginning of its name, and says when it is ambiguous or unknown", async () => {
    const first = await activateBundle(context(), bundle("policy@2026-01-01.1"), wish);
    await activateBundle(context(), bundle("policy@2026-01-01.2"), wish);
    await expect(activateStored(context(), "policy@2026", wish)).rejects.toMatchObject({
      code: "POLICY_UNKNOWN",
    });
    await expect(activateStored(context(), "policy@1999", wish)).rejects.toMatchObject({
      code: "POLICY_UNKNOWN",
    });
    const back = await activateStored(context(), "policy@2026-01-01.1", wish);
    expect(back.revision).toBe(first.revision);
  });

  it("keeps a stored revision from being changed or deleted", async () => {
    await activateBundle(context(), bundle("policy@2026-01-01.1"), wish);
    for (const sql of [
      "UPDATE gate.policy_revisions SET files = '{}'",
      "DELETE FROM gate.policy_revisions",
      "DELETE FROM gate.policy_activations",
      "TRUNCATE gate.policy_revisions, gate.policy_activations",
    ]) {
      await expect(rig.admin.query(sql), sql).rejects.toThrow(/written once/);
    }
  });
});

describe("going back", () => {
  it("has nowhere to go from the first revision, and says so", async () => {
    await activateBundle(context(), bundle("policy@2026-01-01.1"), wish);
    await expect(rollback(context(), wish)).rejects.toMatchObject({ code: "POLICY_UNKNOWN" });
  });
});

describe("a gate that starts", () => {
  it("without any policy denies everything, and is not ready", async () => {
    const gate = await watch();
    expect([gate.current(), gate.state().state]).toEqual([missingPolicy, "down"]);
    await activateBundle(context(), bundle("policy@2026-01-01.1"), wish);
    await eventually(() => gate.state().state === "up", Boolean, { deadlineMs: 2_000 });
  });

  it("takes the configured folder when nothing was ever activated, once for all gates", async () => {
    const loadFolder = () => Promise.resolve(bundle("policy@2026-01-01.1"));
    const gates = await Promise.all([watch({ loadFolder }), watch({ loadFolder })]);
    expect(gates.map(inForce)).toEqual(["policy@2026-01-01.1", "policy@2026-01-01.1"]);
    const { rows } = await rig.admin.query("SELECT kind, activated_by FROM gate.policy_activations");
    expect(rows).toEqual([{ kind: "bootstrap", activated_by: "bootstrap" }]);
  });

  it("leaves the active revision in force when the folder holds another one", async () => {
    await activateBundle(context(), bundle("policy@2026-01-01.2"), wish);
    const gate = await watch({ loadFolder: () => Promise.resolve(bundle("policy@2026-01-01.1")) });
    expect(inForce(gate)).toBe("policy@2026-01-01.2");
    expect(await rig.count("gate.policy_activations")).toBe(1);
  });

  it("denies everything when the configured folder is refused", async () => {
    const gate = await watch({ loadFolder: () => Promise.resolve(bundle("broken")) });
    expect([gate.current().revision, gate.state()]).toEqual([
      "policy@none",
      { state: "down", detail: expect.stringContaining("bundle.yaml:1: broken") as string },
    ]);
  });
});

describe("a revision that does not load", () => {
  it("leaves the one before in force, and counts", async () => {
    await activateBundle(context(), bundle("policy@2026-01-01.1"), wish);
    const metrics = createMetrics();
    const gate = await watch({ metrics });
    await rig.admin.query(`
      INSERT INTO gate.policy_revisions (revision, name, stated, digest, files, created_at, created_by)
      VALUES ('policy@bad', 'default', 'policy@bad', repeat('0', 64), '{"bundle.yaml": "broken"}', now(), 'mallory');
      INSERT INTO gate.policy_activations (revision, kind, activated_at, activated_by)
      VALUES ('policy@bad', 'activate', now(), 'mallory')`);
    await eventually(() => gate.state().state === "stale", Boolean, { deadlineMs: 2_000 });
    expect(inForce(gate)).toBe("policy@2026-01-01.1");
    expect(await metrics.render()).toContain('fabric_gate_policy_failures_total{cause="revision"} 1');
    await activateBundle(context(), bundle("policy@2026-01-01.2"), wish);
    await eventually(() => gate.state().state === "up", Boolean, { deadlineMs: 2_000 });
    expect(inForce(gate)).toBe("policy@2026-01-01.2");
  });

  it("is refused when its files are not its own", async () => {
    const gate = await watch();
    await rig.admin.query(`
      INSERT INTO gate.policy_revisions (revision, name, stated, digest, files, created_at, created_by)
      VALUES ('policy@x+0', 'default', 'policy@x', repeat('0', 64), '{"bundle.yaml": "revision: policy@x"}', now(), 'm');
      INSERT INTO gate.policy_activations (revision, kind, activated_at, activated_by)
      VALUES ('policy@x+0', 'activate', now(), 'm')`);
    await gate.refresh();
    expect([gate.current(), gate.state().state]).toEqual([missingPolicy, "down"]);
  });
});
