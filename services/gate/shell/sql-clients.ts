import { scanAllOptions } from "./options.ts";
import type { OpaqueReason, SimpleCommand, Word } from "./parsed-command.ts";

/** Whose SQL it is: one grammar reads all, and what another dialect reads in another way is opaque. */
export type SqlDialect = "postgres" | "psql" | "mysql" | "sqlite" | "other";

/** What a client of a database is given to run. */
export interface SqlOfCommand {
  readonly dialect: SqlDialect;
  /** Words that are SQL; one that is not fixed may be any. */
  readonly texts: readonly Word[];
  /** Words that name files of SQL. */
  readonly files: readonly Word[];
}

/** The SQL of a command; null when its program takes none, or only tells of itself. */
export function toSqlOf(command: SimpleCommand): SqlOfCommand | null {
  const client = CLIENTS.get(command.program);
  if (client === undefined) return null;
  let args = command.argv.filter((word) => !(client.attached?.test(toText(word)) === true));
  // What only tells of itself is an option, and not the value of one: `psql -o -l -c 'DROP …'` writes to a file `-l`.
  const told =
    client.longBySingleDash === true ? scanSingleDash(args, client) : scanAllOptions(args, client.values);
  if (
    told.options.some(
      ({ name, value }) =>
        client.queries.test(name) || (value !== undefined && client.queries.test(`${name}=${toText(value)}`)),
    )
  )
    return null;
  if (client.verb !== undefined) {
    const at = args.findIndex((word) => toText(word) === client.verb);
    if (at === -1) return null;
    args = args.slice(at + 1);
  }
  const scan =
    client.longBySingleDash === true ? scanSingleDash(args, client) : scanAllOptions(args, client.values);
  const named = (names: string): Word[] =>
    scan.options.flatMap(({ name, value }) => (` ${names} `.includes(` ${name} `) ? [value ?? NOTHING] : []));
  const texts = [...named(client.code), ...scan.operands.slice(client.operandsBefore ?? Infinity)];
  const files = named(client.files);
  // A word that is not fixed may be an option with SQL behind it.
  if (args.some((word) => word.kind === "unresolved" && word.prefix === "" && !word.source.startsWith('"')))
    texts.push(NOTHING);
  if (texts.length > 0 || files.length > 0) return { dialect: client.dialect, texts, files };
  return { dialect: client.dialect, texts: [command.inputText ?? NOTHING], files };
}

/**
 * Why a client may run more than SQL: files and inputs that the text does not hold, and commands of its own, which start
 * programs (`\\!`, `.shell`, `system`).
 */
export function toSqlReasons(command: SimpleCommand, sql: SqlOfCommand): OpaqueReason[] {
  const { program } = command;
  const language = "sql";
  return [
    ...sql.files.map((file): OpaqueReason => ({
      kind: "script_file",
      detail: toText(file),
      program,
      language,
    })),
    ...sql.texts.flatMap((word): OpaqueReason[] => {
      if (word === NOTHING) return [{ kind: "code_from_input", detail: command.input, program, language }];
      if (word.kind === "unresolved")
        return [{ kind: "unresolved_code", detail: word.source, program, language }];
      return mayRunPrograms(word.text, sql.dialect)
        ? [{ kind: "inline_code", detail: word.text.slice(0, 2_000), program, language }]
        : [];
    }),
  ];
}

function mayRunPrograms(text: string, dialect: SqlDialect): boolean {
  if (dialect === "psql") return toPsqlText(text) === null;
  if (dialect === "mysql") return /\\|^\s*(?:system|source|pager|tee|edit)\b/im.test(text);
  return text.split("\n").some((line) => /^\s*\./.test(line) && !showingDots.test(line));
}

/** Commands of sqlite3 that only show. */
export const showingDots =
  /^\s*\.(?:tables|schema|indexes|databases|headers|mode|help|show|width|stats)(?:\s+[\w.]+)*\s*$/;

/** Commands of psql that only show; each other one may run a program, a file or what a query returns. */
const showsOnly =
  /^\s*\\(?:d[A-Za-z]{0,3}[S+]{0,2}|l\+?|conninfo|q|x|timing|encoding|z|pset pager off)(?:\s+[\w.*"]+)?\s*$/;

/** The SQL of a text for psql; null when psql makes something else of it. */
export function toPsqlText(text: string): string | null {
  const sql = text
    .split("\n")
    .filter((line) => !showsOnly.test(line))
    .join("\n");
  // Outside of plain quotes a backslash is a command and a colon names a variable; where quotes end is not sure
  // beside a comment, an escape or a dollar quote.
  const isSure = !/--|\/\*|\$|\b[eE]'/.test(sql);
  const bare = isSure ? sql.replace(/'[^']*'/g, "''") : sql;
  return /\\|(?<!:):["'A-Za-z_]/.test(bare) ? null : sql;
}

const toText = (word: Word): string => (word.kind === "literal" ? word.text : word.prefix);
/** SQL that is not in the text. */
const NOTHING: Word = { kind: "unresolved", reason: "input", source: "(input)", prefix: "" };

type Client = {
  readonly dialect: SqlDialect;
  /** Options whose value is SQL, or a file of it; both are among `values` as well. */
  readonly code: string;
  readonly files: string;
  readonly values: string;
  /** Options with which no SQL runs. */
  readonly queries: RegExp;
  /** Operands behind these many are SQL; not given: none is. */
  readonly operandsBefore?: number;
  /** Words that would be taken for a cluster of options. */
  readonly attached?: RegExp;
  /** SQL follows behind this word only: `bq query`. */
  readonly verb?: string;
  readonly longBySingleDash?: boolean;
};

const QUERIES = /^(--version|--help|-V|-\?)$/;
const PSQL: Client = {
  dialect: "psql",
  code: "-c --command",
  files: "-f --file",
  values:
    "-c --command -d --dbname -f --file -F --field-separator -h --host -L --log-file -o --output -p --port -P --pset -R --record-separator -T --table-attr -U --username -v --set --variable",
  queries: /^(--version|--help.*|-V|-\?|-l|--list)$/,
};
const MYSQL: Client = {
  dialect: "mysql",
  code: "-e --execute --init-command",
  files: "",
  values:
    "-e --execute --init-command --tee -u --user -h --host -P --port -D --database -S --socket --defaults-file --defaults-extra-file --ssl-ca --ssl-cert --ssl-key --ssl-mode --protocol --connect-timeout --default-character-set --prompt --delimiter",
  queries: QUERIES,
  attached: /^-p./,
};
const CLICKHOUSE: Client = {
  dialect: "other",
  code: "-q --query",
  files: "--queries-file",
  values:
    "-q --query --queries-file -h --host --port -u --user --password -d --database -f --format -F --config-file -C --connection",
  queries: QUERIES,
};
const SQLITE: Client = {
  dialect: "sqlite",
  code: "-cmd",
  files: "-init",
  values:
    "-cmd -init -separator -newline -nullvalue -maxsize -mmap -vfs -lookaside -pagecache -pcachetrace -heap",
  queries: /^--?(version|help)$/,
  operandsBefore: 1,
  longBySingleDash: true,
};

const CLIENTS: ReadonlyMap<string, Client> = new Map<string, Client>([
  ["psql", PSQL],
  ["usql", PSQL],
  ["pgcli", { ...PSQL, dialect: "other" }],
  ["mysql", MYSQL],
  ["mariadb", MYSQL],
  ["mycli", MYSQL],
  ["sqlite3", SQLITE],
  ["sqlite", SQLITE],
  [
    "duckdb",
    {
      ...SQLITE,
      dialect: "other",
      code: "-c -s -cmd",
      files: "-init -f",
      values: `${SQLITE.values} -c -s -f`,
    },
  ],
  ["clickhouse-client", CLICKHOUSE],
  ["clickhouse-local", CLICKHOUSE],
  ["clickhouse", CLICKHOUSE],
  [
    "cockroach",
    {
      ...PSQL,
      dialect: "other",
      verb: "sql",
      code: "-e --execute",
      values: "-e --execute -f --file -d --url --host -u --user -p --port --certs-dir",
    },
  ],
  [
    "bq",
    {
      ...PSQL,
      dialect: "other",
      verb: "query",
      code: "",
      files: "",
      values: "--format --max_rows --project_id --location --parameter --destination_table",
      operandsBefore: 0,
    },
  ],
  [
    "snowsql",
    {
      ...PSQL,
      dialect: "other",
      code: "-q --query",
      values: "-q --query -f --filename -a -u -d -s -r -w -c -o",
      files: "-f --filename",
    },
  ],
  [
    "sqlcmd",
    {
      ...PSQL,
      dialect: "other",
      code: "-q -Q",
      files: "-i",
      values: "-q -Q -i -S -U -P -d -o -h -s -w -l -t -v",
    },
  ],
  [
    "trino",
    {
      ...PSQL,
      dialect: "other",
      code: "--execute",
      values: "--execute -f --file --server --catalog --schema --user",
    },
  ],
]);

/** `sqlite3 -header -cmd SQL db SQL`: long options with one dash. */
function scanSingleDash(
  args: readonly Word[],
  client: Client,
): { options: { name: string; value: Word | undefined }[]; operands: Word[] } {
  const options: { name: string; value: Word | undefined }[] = [];
  const operands: Word[] = [];
  for (let at = 0; at < args.length; at += 1) {
    const word = args[at];
    if (word === undefined) break;
    const name = toText(word).replace(/^--/, "-");
    if (!name.startsWith("-") || name === "-") operands.push(word);
    else if (` ${client.values} `.includes(` ${name} `)) {
      options.push({ name, value: args[at + 1] });
      at += 1;
    } else options.push({ name, value: undefined });
  }
  return { options, operands };
}
