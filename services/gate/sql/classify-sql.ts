import { showingDots, toPsqlText } from "../shell/sql-clients.ts";
import type { SqlDialect } from "../shell/sql-clients.ts";
import { harmlessFunctions, writingFunctions } from "./known-functions.ts";
import type { SqlNode, SqlParser } from "./load-sql-parser.ts";

/** What a text of SQL does. `opaque`: something of it may do what the text does not tell. */
export type SqlEffect = "read" | "write" | "ddl" | "opaque";

/** The effects of all statements of a text. */
export interface SqlVerdict {
  /** `read` alone, or what goes beyond it; sorted. */
  readonly effects: readonly SqlEffect[];
  /** Tables, schemas, databases, roles or all rows of a table are gone afterwards. */
  readonly isDestroying: boolean;
}

export const opaqueSql: SqlVerdict = { effects: ["opaque"], isDestroying: false };
const readingSql: SqlVerdict = { effects: ["read"], isDestroying: false };

/** Verdicts of several texts as one. */
export function joinVerdicts(verdicts: readonly SqlVerdict[]): SqlVerdict {
  return toVerdict(
    new Set(verdicts.flatMap(({ effects }) => effects)),
    verdicts.some(({ isDestroying }) => isDestroying),
  );
}

function toVerdict(effects: ReadonlySet<SqlEffect>, isDestroying: boolean): SqlVerdict {
  const beyond = [...effects].filter((effect) => effect !== "read").sort();
  return { effects: beyond.length > 0 ? beyond : ["read"], isDestroying };
}

/** What the statements of a text do. Never throws: what cannot be read is opaque. */
export function classifySql(parser: SqlParser, text: string, dialect: SqlDialect): SqlVerdict {
  const plain = toPlainSql(text, dialect);
  if (plain === "reads") return readingSql;
  if (plain === "opaque") return opaqueSql;
  const parsed = parser.parse(plain.sql);
  if (!parsed.ok) return opaqueSql;
  const effects = new Set<SqlEffect>();
  let isDestroying = false;
  for (const statement of parsed.statements) {
    const [tag = "", body] = Object.entries(statement)[0] ?? [];
    const found = judgeStatement(tag, toNode(body));
    found.effects.forEach((effect) => effects.add(effect));
    isDestroying ||= found.isDestroying === true;
  }
  return toVerdict(effects, isDestroying);
}

/** SQL that PostgreSQL's grammar reads as its own client or server would, or why there is none. */
function toPlainSql(text: string, dialect: SqlDialect): { readonly sql: string } | "reads" | "opaque" {
  if (dialect === "postgres") return { sql: text };
  if (dialect === "psql") {
    const sql = toPsqlText(text);
    return sql === null ? "opaque" : { sql };
  }
  // Readings differ in comments, escapes, dollar quotes and quoted names: a statement could hide in one of them.
  if (/\/\*|\\|#|\$|--(?!\s|$)/.test(text)) return "opaque";
  if (dialect === "sqlite" && showingDots.test(text)) return "reads";
  if (/^\s*(?:show|describe|desc|use)\s+[\w\s.]{1,200};?\s*$/i.test(text)) return "reads";
  if (!text.includes("`")) return { sql: text };
  return /["']/.test(text) ? "opaque" : { sql: text.replaceAll("`", '"') };
}

type Judged = { readonly effects: readonly SqlEffect[]; readonly isDestroying?: boolean };

const reading =
  /^(?:SelectStmt|VariableShowStmt|DeclareCursorStmt|FetchStmt|ClosePortalStmt|PrepareStmt|DeallocateStmt|ListenStmt|UnlistenStmt|ReturnStmt)$/;
const writing =
  /^(?:InsertStmt|UpdateStmt|DeleteStmt|MergeStmt|TruncateStmt|RefreshMatViewStmt|NotifyStmt|CheckPointStmt|LockStmt|VacuumStmt|ConstraintsSetStmt)$/;
const defining =
  /^(?:Create|Alter|Drop|Grant|Revoke|Rename|Comment|SecLabel|Define|Index|View|Rule|Reassign|Import|Reindex|Cluster|Repack|Composite)\w*$/;
const droppingAll = /^Drop(?:Stmt|dbStmt|RoleStmt|OwnedStmt|TableSpaceStmt|SubscriptionStmt)$/;
const harmlessSettings =
  /^(?:statement_timeout|lock_timeout|idle_in_transaction_session_timeout|timezone|datestyle|intervalstyle|client_encoding|client_min_messages|application_name|work_mem|extra_float_digits|enable_\w+|jit|bytea_output|standard_conforming_strings)$/;

function judgeStatement(tag: string, body: SqlNode): Judged {
  const inner = judgeParts(body);
  const own = judgeTag(tag, body);
  // EXPLAIN runs what it explains only with ANALYZE.
  if (tag === "ExplainStmt" && !isAnalyzing(body))
    return { effects: inner.effects.includes("opaque") ? ["opaque"] : ["read"] };
  return {
    effects: [...own.effects, ...inner.effects],
    isDestroying: own.isDestroying === true || inner.isDestroying === true,
  };
}

function judgeTag(tag: string, body: SqlNode): Judged {
  if (reading.test(tag) || tag === "ExplainStmt") return { effects: ["read"] };
  if (tag === "TransactionStmt")
    return { effects: [/PREPARE/.test(String(body["kind"])) ? "write" : "read"] };
  if (tag === "VariableSetStmt") return { effects: [judgeSetting(body)] };
  if (tag === "CopyStmt") return { effects: [judgeCopy(body)] };
  if (tag === "TruncateStmt" || (tag === "DeleteStmt" && body["whereClause"] === undefined))
    return { effects: ["write"], isDestroying: true };
  if (writing.test(tag)) return { effects: ["write"] };
  if (/^CreateFunctionStmt$|^CreatePLangStmt$|^CreateExtensionStmt$/.test(tag))
    return { effects: ["ddl", "opaque"] };
  if (droppingAll.test(tag)) return { effects: ["ddl"], isDestroying: true };
  if (defining.test(tag)) return { effects: ["ddl"] };
  // DO, CALL, EXECUTE, LOAD, DISCARD, and whatever a later grammar knows.
  return { effects: ["opaque"] };
}

function judgeSetting(body: SqlNode): SqlEffect {
  const kind = String(body["kind"]);
  const name = toName(body["name"]).toLowerCase();
  if (/RESET/.test(kind)) return /^(?:role|session_authorization)$/.test(name) ? "write" : "read";
  if (kind === "VAR_SET_MULTI") return "read";
  if (name === "search_path" || name.endsWith("libraries")) return "opaque";
  return harmlessSettings.test(name) ? "read" : "write";
}

function judgeCopy(body: SqlNode): SqlEffect {
  if (body["is_program"] === true) return "opaque";
  if (body["is_from"] === true || body["filename"] !== undefined) return "write";
  return "read";
}

const isAnalyzing = (body: SqlNode): boolean =>
  toList(body["options"]).some((option) => {
    const definition = toNode(toNode(option)["DefElem"]);
    if (String(definition["defname"]).toLowerCase() !== "analyze") return false;
    return !/"(?:off|false|0)"|"ival":\{\}|"boolval":\{\}/i.test(JSON.stringify(definition["arg"] ?? null));
  });

/** What nodes below a statement do: common table expressions, locks, functions. */
function judgeParts(body: SqlNode): Judged {
  const effects = new Set<SqlEffect>();
  let isDestroying = false;
  const open: unknown[] = [body];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    if (Array.isArray(one)) {
      for (const child of one) open.push(child);
      continue;
    }
    if (typeof one !== "object" || one === null) continue;
    for (const [field, value] of Object.entries(one)) {
      open.push(value);
      if (field === "intoClause") effects.add("ddl");
      else if (field === "lockingClause") effects.add("write");
      else if (field === "FuncCall") effects.add(judgeFunction(toNode(value)));
      else if (field === "A_Expr" && isForeignOperator(toNode(value))) effects.add("opaque");
      else if (
        field === "AlterTableCmd" &&
        /AT_Drop(?:Column|Constraint)/.test(String(toNode(value)["subtype"]))
      )
        isDestroying = true;
      else if (/^[A-Z]\w*Stmt$/.test(field)) {
        const found = judgeTag(field, toNode(value));
        found.effects.forEach((effect) => effects.add(effect));
        isDestroying ||= found.isDestroying === true;
      }
    }
  }
  return { effects: [...effects], isDestroying };
}

function toNames(value: unknown): string[] {
  return toList(value).map((part) => toName(toNode(toNode(part)["String"])["sval"]));
}

function judgeFunction(call: SqlNode): SqlEffect {
  const names = toNames(call["funcname"]);
  const name = names.at(-1) ?? "";
  if (names.length > 2 || (names.length === 2 && names[0] !== "pg_catalog")) return "opaque";
  if (harmlessFunctions.has(name)) return "read";
  return writingFunctions.has(name) ? "write" : "opaque";
}

function isForeignOperator(expression: SqlNode): boolean {
  const names = toNames(expression["name"]);
  return names.length > 1 && names[0] !== "pg_catalog";
}

const toName = (value: unknown): string => (typeof value === "string" ? value : "");
const toNode = (value: unknown): SqlNode =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as SqlNode) : {};
const toList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? (value as unknown[]) : []);
