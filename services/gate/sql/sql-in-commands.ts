import type { SimpleCommand } from "../shell/parsed-command.ts";
import { toSqlOf } from "../shell/sql-clients.ts";
import { classifySql, joinVerdicts, opaqueSql } from "./classify-sql.ts";
import type { SqlVerdict } from "./classify-sql.ts";
import type { SqlParser } from "./load-sql-parser.ts";

/** What the SQL of a command does; null when it runs none. */
export function judgeSqlOf(parser: SqlParser, command: SimpleCommand): SqlVerdict | null {
  const sql = toSqlOf(command);
  if (sql === null) return null;
  const verdicts = sql.texts.map((word) =>
    word.kind === "literal" ? classifySql(parser, word.text, sql.dialect) : opaqueSql,
  );
  return joinVerdicts(sql.files.length > 0 ? [...verdicts, opaqueSql] : verdicts);
}
