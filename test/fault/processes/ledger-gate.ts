import { EventEmitter, once } from "node:events";
import { join } from "node:path";
import { loadCapabilityKeysFile } from "../../../services/gate/capability/capability-keys.ts";
import { createCapabilitySigner } from "../../../services/gate/capability/signer.ts";
import { createClassifier } from "../../../services/gate/classifier.ts";
import type { CommitSteps } from "../../../services/gate/commit-steps.ts";
import { loadPolicy } from "../../../services/gate/policy/load-policy.ts";
import type { PreparedCall } from "../../../services/gate/prepare-call.ts";
import { createGate } from "../../../services/gate/server.ts";
import { loadBashParser } from "../../../services/gate/shell/load-bash-parser.ts";
import { loadSqlParser } from "../../../services/gate/sql/load-sql-parser.ts";
import type { GroupRows } from "../../../services/gate/store.ts";
import { createAuthenticator, roles } from "../../../services/platform/auth.ts";
import { loadAuthKeysFile } from "../../../services/platform/auth-keys.ts";
import { systemClock } from "../../../services/platform/clock.ts";
import { toUuid } from "../../../services/platform/ids.ts";
import { createLog } from "../../../services/platform/log.ts";
import { createMetrics } from "../../../services/platform/metrics.ts";
import type { Tx } from "../../../services/platform/postgres.ts";
import { openDatabase } from "../../../services/platform/postgres.ts";
import { openMemoryKek, openTenantKeys } from "../../../services/platform/vault-seal.ts";
import { memoryCodec } from "../../harness/memory-codec.ts";
import { projectDir } from "../../harness/stack.ts";
import type { ChildSettings, GateGap } from "./child.ts";
import { onAskedToEnd, runChild, stopDead } from "./child.ts";

/** Groups that go through before a planted gap: the kill falls into the middle of the work. */
const groupsBeforeGap = 5;

runChild(async (settings) => {
  const { name, databaseUrl, gate: own } = settings;
  if (own === undefined) throw new Error("a gate needs its port and its keys");
  const database = openDatabase({
    url: databaseUrl,
    applicationName: name,
    maxConnections: 6,
    queryTimeoutMs: 3_000,
    findsByKey: true,
  });
  const [bash, sql, policy, authKeys, capabilityKeys] = await Promise.all([
    loadBashParser(),
    loadSqlParser(),
    loadPolicy(join(projectDir, "deploy", "policy", "default")),
    loadAuthKeysFile(own.authKeysFile),
    loadCapabilityKeysFile(own.capabilityKeysFile),
  ]);
  /** Tells by a call's name that its answer is out. */
  const answers = new EventEmitter();
  const gate = createGate({
    database,
    codec: memoryCodec(),
    keys: openTenantKeys(database, openMemoryKek("test", Buffer.alloc(32, 7))),
    policy: () => policy,
    classify: createClassifier({ bash, sql }),
    signer: createCapabilitySigner(capabilityKeys),
    clock: systemClock,
    environment: "test",
    log: createLog({ service: name, level: "silent" }),
    metrics: createMetrics(),
    // Here one key vouches for everybody.
    authenticator: createAuthenticator({
      localKeys: authKeys.verification.map(({ jwk }) => ({ jwk, roles })),
      clock: systemClock,
    }),
    adapters: new Map(),
    budgetMs: 5_000,
    decideLimitMs: 5_000,
    steps: (live) => withGap(settings, live, answers),
  });
  gate.app.addHook("onResponse", (request, _reply, done) => {
    const { json } = (request.body ?? {}) as { readonly json?: { readonly tool_call_id?: string } };
    answers.emit(json?.tool_call_id ?? "");
    done();
  });
  await gate.app.listen({ host: "127.0.0.1", port: own.port });
  onAskedToEnd(async () => {
    await gate.close();
    await database.end();
  });
});

/** The live steps, with a gap or a defect planted. */
function withGap(
  { gap, broken, release }: ChildSettings,
  live: CommitSteps,
  answers: EventEmitter,
): CommitSteps {
  let seen = 0;
  const isIn = (step: GateGap): boolean => {
    if (step !== gap) return false;
    seen += 1;
    return seen > groupsBeforeGap;
  };
  const answerToTheEnd = async (calls: readonly PreparedCall[]): Promise<void> => {
    const out = Promise.all(namesOf(calls).map((name) => once(answers, name)));
    await live.answer(calls);
    await out;
  };
  return {
    async store(evidence) {
      if (isIn("store")) await stopDead("store");
      await live.store(evidence);
    },
    async read(wanted) {
      if (isIn("read")) await stopDead("read");
      return live.read(wanted);
    },
    async write(tx, rows, calls) {
      if (isIn("write")) {
        if (broken === "answer-first") {
          await answerToTheEnd(calls);
        }
        if (broken === "events-after") await live.write(tx, { ...rows, outbox: [] }, calls);
        await stopDead("write", namesOf(calls));
      }
      const sent = live.write(tx, broken === "no-call-key" ? withoutCallKeys(rows) : rows, calls);
      if (isIn("wire")) {
        sent.catch(() => undefined);
        // The bytes leave with the next turn of the event loop, and nobody waits for what comes back.
        await new Promise((resolve) => setImmediate(resolve));
        await stopDead("wire", namesOf(calls));
      }
      await sent;
      if (release === "next") await noteDecisions(tx, rows);
    },
    async answer(calls) {
      if (isIn("answer")) await stopDead("answer", namesOf(calls));
      if (isIn("answered")) {
        await answerToTheEnd(calls);
        await stopDead("answered", namesOf(calls));
      }
      await live.answer(calls);
    },
  };
}

/** What the next release writes besides, into the table that its migration makes. */
async function noteDecisions(tx: Tx, { decisions }: GroupRows): Promise<void> {
  await tx.query("INSERT INTO gate.next_notes (decision_id) SELECT unnest($1::uuid[])", [
    decisions.map((one) => toUuid(one.decisionId)),
  ]);
}

const namesOf = (calls: readonly PreparedCall[]): string[] =>
  calls.flatMap(({ work }) => work.request?.tool_call_id ?? []);

/** The defect: nothing says that a call was decided already. */
const withoutCallKeys = (rows: GroupRows): GroupRows => ({
  ...rows,
  decisions: rows.decisions.map((one) => ({ ...one, callKey: null })),
});
