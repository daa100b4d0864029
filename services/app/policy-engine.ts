import { stat } from "node:fs/promises";
import { basename, resolve } from "node:path";
import { Fault } from "../../schemas/faults.ts";
import type { Classify } from "../gate/classified.ts";
import { withRealPaths } from "../gate/classified.ts";
import { createClassifier } from "../gate/classifier.ts";
import { loadPolicy } from "../gate/policy/load-policy.ts";
import type { Policy } from "../gate/policy/policy.ts";
import { readBundleFiles } from "../gate/policy/read-bundle-files.ts";
import type { BundleFiles, BundleJudge } from "../gate/revisions/bundle-judge.ts";
import { assumedOperands, createBundleJudge } from "../gate/revisions/judge-bundle.ts";
import { findRevisions, loadActivations, loadRevision } from "../gate/revisions/revision-rows.ts";
import { loadBashParser } from "../gate/shell/load-bash-parser.ts";
import type { JudgeRecord } from "../gate/simulate.ts";
import { loadSqlParser } from "../gate/sql/load-sql-parser.ts";
import { decide } from "../gate/stages/decide.ts";
import type { Database } from "../platform/postgres.ts";

/** The gate's judgement without the gate: parsers, classification, bundles, decisions. */
export interface PolicyEngine {
  readonly classify: Classify;
  readonly judge: BundleJudge;
  readonly judgeRecord: JudgeRecord;
}

/** Loads the parsers. `home` is the folder that `~` means in commands. */
export async function openPolicyEngine(home?: string): Promise<PolicyEngine> {
  const [bash, sql] = await Promise.all([loadBashParser(), loadSqlParser()]);
  const classify = createClassifier({ bash, sql, ...(home === undefined ? {} : { home }) });
  return {
    classify,
    judge: createBundleJudge(classify),
    judgeRecord: ({ request, facts, operands, realPaths }, policy) =>
      decide(request, facts, policy, {
        classify: withRealPaths(classify, realPaths),
        operands: operands ?? assumedOperands(classify, request, policy),
      }),
  };
}

/** Reads a bundle's folder; its name is the folder's. */
export async function readBundle(dir: string): Promise<BundleFiles> {
  return { name: basename(resolve(dir)), files: await readBundleFiles(dir) };
}

/** Whether a bundle is meant as a folder; else it is the name of a revision. */
export async function isFolder(bundle: string): Promise<boolean> {
  return stat(bundle).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

/** A bundle's files: of a folder, of a stored revision or its beginning, or of `active`. */
export async function findBundle(bundle: string, database: () => Database): Promise<BundleFiles> {
  if (await isFolder(bundle)) return readBundle(bundle);
  if (bundle !== "active" && !bundle.startsWith("policy@")) {
    throw new Fault("USAGE", `\`${bundle}\` is no folder, and no revision, which begins with \`policy@\``);
  }
  return findStored(bundle, database());
}

/** A stored revision, by itself, its beginning, or as the active one. */
export async function findStored(
  text: string,
  database: Database,
): Promise<BundleFiles & { revision: string }> {
  const found = await findNamed(text, database);
  const stored = await loadRevision(database, found);
  if (stored === null) throw new Fault("POLICY_UNKNOWN", `\`${found}\``);
  return stored;
}

async function findNamed(text: string, database: Database): Promise<string> {
  if (text === "active") {
    const head = (await loadActivations(database, 1))[0];
    if (head !== undefined) return head.revision;
    throw new Fault("POLICY_UNKNOWN", "no policy was ever activated; `fabric policy activate DIR` does it");
  }
  const [first, second] = await findRevisions(database, text);
  if (first === undefined) {
    throw new Fault("POLICY_UNKNOWN", `\`${text}\`; \`fabric policy list\` shows what is stored`);
  }
  if (second !== undefined && first !== text) {
    throw new Fault(
      "POLICY_UNKNOWN",
      `\`${text}\` is the beginning of ${first} and of ${second}; give more of it`,
    );
  }
  return first;
}

/** A policy of a folder or a stored revision, ready to judge. */
export async function openPolicy(
  engine: PolicyEngine,
  bundle: string,
  database: () => Database,
): Promise<Policy> {
  if (await isFolder(bundle)) return loadPolicy(bundle);
  return engine.judge.load(await findBundle(bundle, database));
}
