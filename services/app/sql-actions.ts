import { randomBytes } from "node:crypto";
import { readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Fault } from "../../schemas/faults.ts";
import { grantTenant, listAnalysts, revokeTenant } from "../analytics/analysts.ts";
import type { Question } from "../analytics/question.ts";
import { bindQuestion, parseQuestion } from "../analytics/question.ts";
import { loadViews, renderViews } from "../analytics/views.ts";
import type { Actions, Common } from "../cli/actions.ts";
import { toTable } from "../cli/report.ts";
import type { Screen } from "../cli/screen.ts";
import type { Config, DatabaseUser } from "../platform/config.ts";
import type { Database } from "../platform/postgres.ts";
import type { Place } from "./place.ts";
import { serviceDatabase } from "./wiring.ts";

type SqlActions = Pick<
  Actions,
  "sqlQuestions" | "sqlAsk" | "sqlCatalog" | "analystsGrant" | "analystsRevoke" | "analystsList"
>;

/** A question over months of a busy tenant; services time their statements out far earlier. */
const questionTimeoutMs = 600_000;
const passwordBytes = 24;

/** `fabric sql …` as the analyst, `fabric analysts …` as the owner of the database. */
export function sqlActions(place: Place, configOf: (common: Common) => Promise<Config>): SqlActions {
  const questionsDir = join(place.packageDir, "deploy", "questions");
  async function withDatabase<T>(
    common: Common,
    user: DatabaseUser,
    work: (database: Database) => Promise<T>,
  ): Promise<T> {
    const database = serviceDatabase(await configOf(common), user, {
      maxConnections: 1,
      statementTimeoutMs: questionTimeoutMs,
    });
    try {
      return await work(database);
    } finally {
      await database.end();
    }
  }
  return {
    async sqlQuestions() {
      const questions = await loadQuestions(questionsDir);
      const text = questions
        .map((one) => {
          const takes = one.parameters.map((parameter) =>
            parameter.fallback === undefined ? parameter.name : `[${parameter.name}]`,
          );
          return `${one.name} ${takes.join(" ")}\n    ${one.question}`;
        })
        .join("\n");
      return { json: questions.map(({ sql: _sql, ...shown }) => shown), text };
    },
    async sqlAsk(common, { name, tenant, parameters, printOnly }) {
      const questions = await loadQuestions(questionsDir);
      const question = questions.find((one) => one.name === name);
      if (question === undefined)
        throw new Fault(
          "USAGE",
          `\`${name}\` is no question; ${questions.map((one) => one.name).join(", ")} are`,
        );
      const given = tenant === undefined ? parameters : { ...parameters, tenant };
      if (printOnly) return { json: { sql: question.sql }, text: question.sql };
      const bound = bindQuestion(question, given);
      const rows = await withDatabase(common, "analyst", (database) =>
        database.transaction(async (tx) => {
          await tx.query("SET TRANSACTION READ ONLY");
          return (await tx.query(bound)).rows;
        }),
      );
      return {
        json: rows,
        text:
          rows.length === 0
            ? "no row; `fabric analysts list` says who reads which tenant"
            : toRows(common.screen, question, rows),
        exit: rows.length === 0 ? 1 : 0,
      };
    },
    async sqlCatalog(common, { check, write }) {
      const views = await withDatabase(common, "analyst", loadViews);
      const page = renderViews(views);
      if (write !== undefined) await writeFile(write, page);
      if (check !== undefined && (await readFile(check, "utf8")) !== page)
        return {
          json: { stale: check },
          text: `\`${check}\` is stale; \`fabric sql catalog --write ${check}\``,
          exit: 1,
        };
      return { json: views, text: write ?? check ?? page };
    },
    async analystsGrant(common, { role, tenant }) {
      const password = randomBytes(passwordBytes).toString("base64url");
      const { isNew } = await withDatabase(common, "admin", (database) =>
        database.transaction((tx) => grantTenant(tx, { role, tenantId: tenant, password })),
      );
      const done = `${role} reads tenant ${tenant}`;
      return {
        json: { role, tenant, isNew, ...(isNew ? { password } : {}) },
        text: isNew ? `${done}\npassword of the new login, shown this once: ${password}` : done,
      };
    },
    async analystsRevoke(common, { role, tenant }) {
      const revoked = await withDatabase(common, "admin", (database) =>
        database.transaction((tx) => revokeTenant(tx, { role, tenantId: tenant })),
      );
      const what = tenant === undefined ? "every tenant, and the login is gone" : `tenant ${tenant}`;
      return {
        json: { role, tenant: tenant ?? null, revoked },
        text: revoked === 0 ? `${role} had no such grant` : `${role} reads no more: ${what}`,
        exit: revoked === 0 ? 1 : 0,
      };
    },
    analystsList: (common) =>
      withDatabase(common, "admin", async (database) => {
        const grants = await listAnalysts(database);
        const rows = grants.map((one) => [
          one.role_name,
          one.tenant_id,
          one.granted_at.toISOString().slice(0, 16),
          one.granted_by,
          one.can_login ? "" : "no login",
        ]);
        const table = toTable(["LOGIN", "TENANT", "GRANTED", "BY", ""], rows, common.screen.columns);
        return { json: grants, text: rows.length === 0 ? "nobody reads any tenant" : table };
      }),
  };
}

/** Every question that ships, by name. */
export async function loadQuestions(dir: string): Promise<readonly Question[]> {
  const names = (await readdir(dir)).filter((name) => name.endsWith(".sql")).sort();
  return Promise.all(
    names.map(async (file) =>
      parseQuestion(file.slice(0, -".sql".length), await readFile(join(dir, file), "utf8")),
    ),
  );
}

function toRows(screen: Screen, question: Question, rows: readonly Record<string, unknown>[]): string {
  const names = question.columns.map((one) => one.name);
  return toTable(
    names.map((name) => name.toUpperCase()),
    rows.map((row) => names.map((name) => toCell(row[name]))),
    screen.columns,
  );
}

function toCell(value: unknown): string {
  if (value === null || value === undefined) return "-";
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return value.map(toCell).join(",");
  switch (typeof value) {
    case "string":
      return value;
    case "number":
    case "bigint":
    case "boolean":
      return String(value);
    default:
      return JSON.stringify(value);
  }
}
