#!/bin/sh
# Runs the rows of docs/digits.md in databases: SQLite and Redis if they are installed, MariaDB
# if mariadbd is, PostgreSQL as PGlite (npm), DuckDB and ClickHouse as duckdb and chdb (PyPI).
set -eu
dir=$(mktemp -d)
trap 'for pid in ${redis-} ${database-}; do kill "$pid" 2>/dev/null || :; done; wait; rm -rf "$dir"' EXIT
cd "$dir"
A=1179183313482456071 N=1179183313482456070

row() { printf '%s\t%s\t%s\t%s\n' "$1" "$version" "$(echo "$2" | xargs)" "${3-}"; }
have() { command -v "$1" >/dev/null; }

if have sqlite3; then
	version=$(sqlite3 --version | cut -d ' ' -f 1)
	sql() { sqlite3 :memory: "create table t (id integer, r double, s string, u uuid); insert into t values ($A, $A, '00$A', '0012345678901'); $1"; }
	row 'SQLite column of type DOUBLE' "$(sql 'select r from t')" "$(sql 'select id from t')"
	row 'SQLite column of type STRING, text 00n' "$(sql 'select s from t')" "$(sqlite3 :memory: "create table t (s text); insert into t values ('00$A'); select s from t")"
	row 'SQLite avg, total, round, id / 1.0' "$(sql 'select distinct * from (select avg(id) from t union select total(id) from t union select round(id) from t union select id / 1.0 from t)')" "$(sql 'select sum(id) from t')"
	row 'SQLite INSERT of 2^63' "$(sql 'insert into t (id) values (9223372036854775808); select id from t where rowid = 2')"
	row 'SQLite json_extract' "$(sql "select json_extract('[$A]', '\$[0]')")"
fi
if have redis-server; then
	version=$(redis-server --version | sed 's/.* v=\([^ ]*\).*/\1/')
	redis-server --port 0 --unixsocket "$dir/r" --save '' --daemonize no >redis.log &
	redis=$!
	r() { redis-cli -s "$dir/r" "$@"; }
	until r ping >/dev/null 2>&1; do kill -0 "$redis" && sleep 0.1; done
	r set n $N >/dev/null
	row 'Redis INCR' "$(r incr n)"
	row 'Redis EVAL return redis.call(incr)' "$(r eval 'return redis.call("incr", KEYS[1]) - 1' 1 n)" "$(r set n $A >/dev/null && r eval 'return redis.call("get", KEYS[1])' 1 n)"
	r zadd z $A a >/dev/null
	row 'Redis ZADD with n as score, ZRANGE by n-1' "$(r zrange z $N $N byscore withscores)" "$(r zadd lex 0 $A >/dev/null && r zrange lex "[$A" "[$A" bylex)"
	row 'Redis EVAL cjson.encode' "$(r eval 'return cjson.encode({tonumber(ARGV[1])})' 0 $A)" "$(r eval 'return cjson.encode({ARGV[1]})' 0 $A)"
	row 'Redis INCRBYFLOAT n 1' "$(r set f $N >/dev/null && r incrbyfloat f 1)"
fi
if have mariadbd; then
	mariadb-install-db --no-defaults --datadir="$dir/data" --auth-root-authentication-method=normal >db.log 2>&1
	mariadbd --no-defaults --user="$(id -un)" --datadir="$dir/data" --socket="$dir/s" --skip-networking >>db.log 2>&1 &
	database=$!
	sql() { mariadb --no-defaults -S "$dir/s" -u root -BN -e "$1"; }
	until sql 'create database t' 2>>db.log; do kill -0 "$database" && sleep 0.2; done
	version=$(sql 'select version()' | cut -d - -f 1)
	sql "create table t.t (id bigint, v varchar(20)); insert into t.t values ($A, '$A'), ($N, '$N')"
	one() { sql "select $1 from t.t where id = $A"; }
	row 'MariaDB BIGINT = text' "$(sql "select count(*) from t.t where id = '$N'")"
	row 'MariaDB VARCHAR + 0' "$(one 'v + 0')" "$(one 'cast(v as signed)')"
	row 'MariaDB json_extract + 0' "$(one "json_extract(concat('[', id, ']'), '\$[0]') + 0")" "$(one "json_value(concat('[', id, ']'), '\$[0]')")"
	row 'MariaDB JOIN by VARCHAR = BIGINT, 2 IDs' "$(sql 'select count(*) from t.t a join t.t b on a.v = b.id') rows"
	row 'MariaDB coalesce(id, 0e0)' "$(one 'coalesce(id, 0e0)')" "$(one 'coalesce(id, 0)')"
	row 'MariaDB avg, id / 1' "$(one 'avg(id)') $(one 'id / 1')"
fi
if have npm; then
	npm install --loglevel=error --no-audit --no-fund --prefix pg @electric-sql/pglite@0.5.14 >npm.log
	cat >pg/main.mjs <<'END'
import { PGlite } from "@electric-sql/pglite";
const A = "1179183313482456071", N = "1179183313482456070", db = await PGlite.create();
const get = async (e) => Object.values((await db.query(`select (${e})::text v`)).rows[0])[0];
const version = (await get("current_setting('server_version')")).split(" ")[0];
const row = async (what, got, exact) => console.log([what, version, await get(got), exact ? await get(exact) : ""].join("\t"));
await row("PostgreSQL jsonb", `'[${A}]'::jsonb->0`);
await row("PostgreSQL bigint = float8 of n-1", `${A}::bigint = ${N}::float8`, `case when ${A}::bigint <> ${N}::numeric then ${A} end`);
await row("PostgreSQL percentile_cont(0.5)", `select percentile_cont(0.5) within group (order by x) from (values (${A})) t(x)`, `select percentile_disc(0.5) within group (order by x) from (values (${A})) t(x)`);
await row("PostgreSQL avg, sum", `select avg(x) from (values (${A})) t(x)`);
await row("PostgreSQL jsonpath .double()", `jsonb_path_query('[${A}]', '$[0].double()')`);
process.exit();
END
	node pg/main.mjs
fi
if have python3; then
	python3 -m venv v
	v/bin/pip install -q --disable-pip-version-check duckdb==2.0.1 chdb==4.4.0
	cat >main.py <<'END'
import chdb, duckdb
A = 1179183313482456071


def row(what, of, got, exact=""):
    print(what, of, " ".join(str(got).split()), exact, sep="\t")


def get(q):
    return duckdb.sql(f"select {q} from (select {A}::bigint id)").fetchall()[0][0]


def house(q, format="TSV", settings=""):
    return str(chdb.query(f"select {q} from (select toInt64({A}) id) {settings}", format)).strip()


open("ids.csv", "w").write(f"id\n{A}\n")
open("more.csv", "w").write(f"id\n{A}\n{2**63}\n")
v = duckdb.__version__
row("DuckDB read_csv", v, duckdb.sql("select id from 'ids.csv'").fetchall()[0][0])
row("DuckDB read_csv, one value from 2^63 on", v, duckdb.sql("select id from 'more.csv'").fetchall()[0][0])
row("DuckDB median, avg, id / 1", v, get("median(id)"), get("quantile_disc(id, 0.5)"))
row("DuckDB id = double of n-1", v, get(f"id = {A - 1}::double"), get(f"case when id <> {A - 1} then id end"))
v = house("version()")
row("ClickHouse FORMAT JSONEachRow", v, house("id", "JSONEachRow"), house("id", "JSONEachRow", "settings output_format_json_quote_64bit_integers = 1"))
row("ClickHouse quantile, avg, id / 1", v, house("quantile(0.5)(id)"), house("quantileExact(0.5)(id)"))
row("ClickHouse id = Float64 of n-1", v, house(f"id = toFloat64({A - 1})"))
END
	v/bin/python main.py
fi
