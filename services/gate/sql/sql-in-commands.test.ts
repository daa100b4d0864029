import { beforeAll, describe, expect, it } from "vitest";
import { loadBashParser } from "../shell/load-bash-parser.ts";
import { parseCommand } from "../shell/parse-command.ts";
import type { BashParser } from "../shell/syntax-tree.ts";
import { loadSqlParser } from "./load-sql-parser.ts";
import type { SqlParser } from "./load-sql-parser.ts";
import { judgeSqlOf } from "./sql-in-commands.ts";

let bash: BashParser;
let sql: SqlParser;
beforeAll(async () => {
  bash = await loadBashParser();
  sql = await loadSqlParser();
});
function effects(text: string): string {
  const { commands } = parseCommand(bash, text, { cwd: "/project" });
  return commands
    .flatMap((command) => judgeSqlOf(sql, command) ?? [])
    .map((verdict) => verdict.effects.join("+") + (verdict.isDestroying ? "!" : ""))
    .join(" ");
}

describe("the SQL of a command", () => {
  it.each([
    ["psql -c 'select 1'", "read"],
    ["psql -h db -U app -d shop -Atc 'select 1'", "read"],
    ["psql --command='drop table t' shop", "ddl!"],
    ["psql -c 'select 1' -c 'delete from t'", "write!"],
    ["PGPASSWORD=x timeout 5 psql shop -c 'update t set a = 1'", "write"],
    ["docker exec -i db psql -U app -c 'drop table t'", "ddl!"],
    ["ssh host \"psql -c 'drop table t'\"", "ddl!"],
    ["kubectl exec pod -- psql -c 'truncate t'", "write!"],
    ["psql shop <<'E'\nselect 1;\ndrop table t;\nE", "ddl!"],
    ["psql shop <<< 'select 1'", "read"],
    ["psql shop <<E\nselect $X;\nE", "opaque"],
    ["echo 'drop table t' | psql shop", "ddl!"],
    ['echo "select 1" | docker exec -i db psql shop', "read"],
    ["printf 'select 1;' | psql shop", "read"],
    ["printf '%s' \"$X\" | psql shop", "opaque"],
    ["cat x.sql | psql shop", "opaque"],
    ["psql shop < x.sql", "opaque"],
    ["psql -f x.sql", "opaque"],
    ['psql -c "$SQL"', "opaque"],
    ["psql $OPTIONS -c 'select 1'", "opaque"],
    ["psql \"$URL\" -c 'select 1'", "read"],
    ["psql shop", "opaque"],
    ["psql -l", ""],
    ["psql --version", ""],
    ["psql -c '\\dt'", "read"],
    ["psql -c '\\! rm x'", "opaque"],
    ["mysql -uroot -psecret -e 'drop database d'", "ddl!"],
    ["mysql -u root -p shop -e 'select * from `t`'", "read"],
    ["mysql shop < dump.sql", "opaque"],
    ["sqlite3 app.db 'select * from t'", "read"],
    ["sqlite3 -header -csv app.db 'delete from t where a = 1'", "write"],
    ["sqlite3 app.db .tables", "read"],
    ["sqlite3 app.db '.shell rm x'", "opaque"],
    ["sqlite3 app.db < x.sql", "opaque"],
    ["clickhouse-client -q 'select 1'", "read"],
    ["clickhouse-client --query='drop table t'", "ddl!"],
    ["clickhouse client -q \"select * from url('http://x')\"", "opaque"],
    ["duckdb x.db -c 'select 1'", "read"],
    ["duckdb x.db 'drop table t'", "ddl!"],
    ["bq query --use_legacy_sql=false 'select 1'", "read"],
    ["bq ls", ""],
    ["grep 'drop table' x.sql", ""],
  ])("is judged by its own parser: %s", (text, expected) => {
    expect(effects(text)).toBe(expected);
  });
});
