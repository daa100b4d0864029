import { beforeAll, describe, expect, it } from "vitest";
import type { SqlDialect } from "../shell/sql-clients.ts";
import { classifySql } from "./classify-sql.ts";
import { loadSqlParser } from "./load-sql-parser.ts";
import type { SqlParser } from "./load-sql-parser.ts";

let parser: SqlParser;
beforeAll(async () => {
  parser = await loadSqlParser();
});
const effects = (text: string, dialect: SqlDialect = "postgres"): string =>
  classifySql(parser, text, dialect).effects.join(" ");

describe("SQL", () => {
  it.each([
    ["select 1", "read"],
    ["", "read"],
    ["select count(*), lower(name) from t where a = 1 group by 2 order by 1", "read"],
    ["with a as (select 1) select * from a", "read"],
    ["values (1), (2)", "read"],
    ["table users", "read"],
    ["show all", "read"],
    ["begin; select 1; rollback", "read"],
    ["explain select * from t", "read"],
    ["explain delete from t", "read"],
    ["explain (analyze off) delete from t", "read"],
    ["set statement_timeout = '5s'", "read"],
    ["copy t to stdout", "read"],
    ["copy (select * from t) to stdout", "read"],
    ["select 'drop table t'", "read"],
    ["select 1 -- ; drop table t", "read"],
    ["insert into t values (1)", "write"],
    ["update t set a = 1", "write"],
    ["delete from t where a = 1", "write"],
    ["merge into t using s on t.a = s.a when matched then delete", "write"],
    ["truncate t", "write"],
    ["select 1; delete from t where a = 1", "write"],
    ["with gone as (delete from t where a = 1 returning *) select * from gone", "write"],
    ["select * from t for update", "write"],
    ["select * from (select * from t for share) s", "write"],
    ["explain analyze delete from t where a = 1", "write"],
    ["explain (analyze, buffers) update t set a = 1", "write"],
    ["explain (analyze true) insert into t values (1)", "write"],
    ["copy t from stdin", "write"],
    ["copy t to '/tmp/out'", "write"],
    ["copy (delete from t where a = 1 returning *) to stdout", "write"],
    ["select nextval('s')", "write"],
    ["select pg_terminate_backend(pid) from pg_stat_activity", "write"],
    ["select pg_catalog.pg_terminate_backend(1)", "write"],
    ["select lo_import('/etc/passwd')", "write"],
    ["select set_config('role', 'admin', false)", "write"],
    ["set role admin", "write"],
    ["prepare transaction 'x'", "write"],
    ["prepare p as delete from t where a = 1", "write"],
    ["declare c cursor for select * from t for update", "write"],
    ["lock table t", "write"],
    ["vacuum full", "write"],
    ["notify x", "write"],
    ["select * into copy_of from t", "ddl"],
    ["create table a as select 1", "ddl"],
    ["create table a (b int)", "ddl"],
    ["create index on t (a)", "ddl"],
    ["create view v as select 1", "ddl"],
    ["create user x", "ddl"],
    ["alter table t add column a int", "ddl"],
    ["alter system set fsync = off", "ddl"],
    ["drop table t", "ddl"],
    ["DROP/**/TABLE t", "ddl"],
    ["drop database d", "ddl"],
    ["grant all on t to public", "ddl"],
    ["create function f() returns int language sql as 'select 1'", "ddl opaque"],
    ["do $$ begin drop table t; end $$", "opaque"],
    ["call p()", "opaque"],
    ["execute p", "opaque"],
    ["load 'evil'", "opaque"],
    ["copy t to program 'sh'", "opaque"],
    ["copy t from program 'sh'", "opaque"],
    ["select pg_read_file('/etc/passwd')", "opaque"],
    ["select * from dblink('host=x', 'drop table t') as t(a int)", "opaque"],
    ["select my_own_function(1)", "opaque"],
    ["select other.lower('a')", "opaque"],
    ["set search_path = evil", "opaque"],
    ["explain select my_own_function(1)", "opaque"],
    ["this is no sql", "opaque"],
    ["select 1\0; drop table t", "opaque"],
  ])("is told apart: %s", (text, expected) => {
    expect(effects(text)).toBe(expected);
  });

  it.each([
    ["drop table t", true],
    ["truncate t", true],
    ["delete from t", true],
    ["delete from t where a = 1", false],
    ["drop role r", true],
    ["alter table t drop column a", true],
    ["alter table t add column a int", false],
    ["with gone as (delete from t returning *) select * from gone", true],
    ["select 'drop table t'", false],
    ["explain drop table t", false],
  ])("destroys or not: %s", (text, isDestroying) => {
    expect(classifySql(parser, text, "postgres").isDestroying).toBe(isDestroying);
  });

  it.each<[SqlDialect, string, string]>([
    ["mysql", "select * from `users`", "read"],
    ["mysql", "show create table users", "read"],
    ["mysql", "select 1 /*! ; drop table t */", "opaque"],
    ["mysql", "select 'a\\'; drop table t; -- '", "opaque"],
    ["mysql", "select 1 --1; drop table t", "opaque"],
    ["mysql", "select `'`; drop table t; -- '", "opaque"],
    ["mysql", "select $$; drop table t; select $$", "opaque"],
    ["mysql", "select load_file('/etc/passwd')", "opaque"],
    ["mysql", "drop table `t`", "ddl"],
    ["sqlite", "select * from t limit 5", "read"],
    ["sqlite", "attach 'x' as y", "opaque"],
    ["sqlite", "delete from t", "write"],
    ["psql", "\\dt", "read"],
    ["psql", "\\d+ users", "read"],
    ["psql", "\\! rm x", "opaque"],
    ["psql", "select 1 \\g |sh", "opaque"],
    ["psql", "select 'drop table t' \\gexec", "opaque"],
    ["psql", "\\i file.sql", "opaque"],
    ["psql", "select '\\d'", "read"],
    ["psql", "-- '\n\\! rm x\n-- '", "opaque"],
    ["psql", "select :what", "opaque"],
    ["psql", "select a::text from t", "read"],
  ])("of %s is read as its client does, or is opaque: %s", (dialect, text, expected) => {
    expect(effects(text, dialect)).toBe(expected);
  });

  it("that is hostile is opaque soon, and the next text is read as ever", () => {
    const startedMs = performance.now();
    for (const text of [
      `select ${"(".repeat(20_000)}1`,
      `select 1${"+1".repeat(9_000)}`,
      `select 1${" union select 1".repeat(2_000)}`,
      `select ${"not ".repeat(8_000)} true`,
      `select ${"coalesce(".repeat(3_000)}1${")".repeat(3_000)}`,
      `select '\ud800'`,
      "x".repeat(1 << 20),
    ])
      expect(effects(text)).toBe("opaque");
    effects(`select ${"1,".repeat(16_000)}1`);
    effects("select 1;".repeat(3_600));
    expect(performance.now() - startedMs).toBeLessThan(5_000);
    expect(effects("select 1")).toBe("read");
  });
});
