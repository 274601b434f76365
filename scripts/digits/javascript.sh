#!/bin/sh
# Runs the JavaScript rows of docs/digits.md: node and npm, mariadbd for the rows of MySQL's
# drivers. better-sqlite3 is compiled, for a minute.
set -eu
command -v npm >/dev/null || exit 3
dir=$(mktemp -d)
trap 'test -z "${database-}" || kill "$database" 2>/dev/null; wait; rm -rf "$dir"' EXIT
cd "$dir"

echo '{"type": "module"}' >package.json
npm install --loglevel=error --legacy-peer-deps --no-audit --no-fund axios@1.21.1 mysql2@3.24.6 mysql@2.18.1 mariadb@3.5.4 \
	@electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 pg@8.23.1 postgres@3.4.9 \
	better-sqlite3@12.11.1 sql.js@1.16.0 drizzle-orm@0.45.4 knex@3.3.0 typeorm@1.1.1 \
	reflect-metadata@0.2.2 sequelize@6.37.8 bson@7.3.4 ioredis@6.0.0 redis@6.3.1 json5@2.2.3 \
	js-yaml@5.5.0 yaml@2.9.1 csv-parse@7.0.3 papaparse@5.7.1 protobufjs@8.8.1 \
	@grpc/proto-loader@0.8.1 @bufbuild/protobuf@2.17.0 graphql@16.15.0 @duckdb/node-api@1.5.6-r.1 \
	apache-arrow@21.2.0 @msgpack/msgpack@3.1.3 msgpackr@2.1.4 cbor-x@1.6.9 superjson@2.2.7 \
	devalue@6.0.3 json-bigint@1.0.0 lossless-json@4.3.3 jq-wasm@1.0.1 >npm.log
newest=node-$(node -p 'process.platform + "-" + process.arch')
npm install --loglevel=error --no-audit --no-fund --ignore-scripts --no-save --prefix newest "$newest@26.12.1" >npm.log || :

cat >row.mjs <<'END'
import { readFileSync } from "node:fs";

export const A = 1179183313482456071n;

function show(v) {
  if (v instanceof Error) return `error ${v.code ?? v.message}`;
  if (typeof v === "bigint") return `${v}n`;
  if (typeof v === "string") return `"${v}"`;
  return typeof v === "object" ? JSON.stringify(v, (_, x) => (typeof x === "bigint" ? `${x}n` : x)) : String(v);
}

async function run(f) {
  try {
    return show(await f());
  } catch (e) {
    return show(e);
  }
}

/** Prints what a package makes of an ID, and what with the setting that keeps its digits. */
export async function row(what, of, got, exact) {
  const version = of ? JSON.parse(readFileSync(`node_modules/${of}/package.json`, "utf8")).version : process.versions.node;
  console.log([what, version, await run(got), exact ? await run(exact) : ""].join("\t"));
}
END
cat >sqlite.mjs <<'END'
import { DatabaseSync } from "node:sqlite";
import { A, row } from "./row.mjs";

const db = new DatabaseSync(":memory:");
db.exec("create table t (id integer primary key)");
const insert = db.prepare("insert into t values (?)");
const get = (sql) => db.prepare(sql);
await row("node:sqlite INSERT into an INTEGER PRIMARY KEY", "", () => {
  try {
    insert.run(A);
  } catch (e) {
    return `error ${e.code}, and ${get("select count(*) n from t").get().n} row is stored`;
  }
}, () => (insert.setReadBigInts(true), insert.run(A + 1n), A));
const big = get("select id from t limit 1");
await row("node:sqlite SELECT", "", () => big.get(), () => (big.setReadBigInts(true), big.get()));
END
cat >main.mjs <<'END'
import "reflect-metadata";
import { createServer } from "node:net";
import { createServer as http } from "node:http";
import { once } from "node:events";
import axios from "axios";
import { A, row } from "./row.mjs";

const n = String(A), json = `{"id":${A}}`;
const from = async (name) => {
  const m = await import(name);
  return m.default ?? m;
};

// Texts
const web = http((_, res) => res.setHeader("content-type", "application/json").end(json)).listen(0, "127.0.0.1");
await once(web, "listening");
const url = `http://127.0.0.1:${web.address().port}`;
await row("JSON.parse", "", () => JSON.parse(json).id, () => JSON.parse(`{"id":"${A}"}`).id);
await row("fetch, response.json()", "", async () => (await (await fetch(url)).json()).id);
await row("axios, response.data", "axios", async () => (await axios.get(url)).data.id, async () => (await axios.get(url, { transformResponse: (t) => t })).data);
web.close();
web.closeAllConnections();
await row("JSON.stringify of a bigint", "", () => JSON.stringify({ id: A }).length, () => JSON.stringify({ id: String(A) }));
await row("sort((a, b) => a - b) of the strings n, n-1", "", () => [n, String(A - 1n)].sort((a, b) => a - b)[0] === n ? "n, n-1" : "n-1, n");
await row("JSON5.parse", "json5", async () => (await from("json5")).parse(json).id);
const yaml = await import("js-yaml");
await row("js-yaml load", "js-yaml", () => yaml.load(`id: ${A}`).id, () => yaml.load(`id: "${A}"`).id);
const eemeli = await from("yaml");
await row("yaml parse", "yaml", () => eemeli.parse(`id: ${A}`).id, () => eemeli.parse(`id: ${A}`, { intAsBigInt: true }).id);
await row("yaml parseDocument, edit another key, toString", "yaml", () => {
  const doc = eemeli.parseDocument(`id: ${A}\nname: tea`);
  doc.set("name", "cup");
  return doc.toString().trim().replace("\n", ", ");
}, () => eemeli.parseDocument(`id: ${A}`, { intAsBigInt: true }).toString().trim());
const { parse } = await import("csv-parse/sync");
await row("csv-parse with cast: true", "csv-parse", () => parse(`${A}\n`, { cast: true })[0][0], () => parse(`${A}\n`)[0][0]);
await row("papaparse with dynamicTyping", "papaparse", async () => (await from("papaparse")).parse(n, { dynamicTyping: true }).data[0][0]);
await row("json-bigint parse", "json-bigint", async () => String((await from("json-bigint")).parse(json).id));
const jq = (await from("jq-wasm")).raw;
await row("jq-wasm .", "jq-wasm", () => jq(json, ".", ["-c"]));
await row("jq-wasm .id + 0", "jq-wasm", () => jq(json, ".id + 0"), () => jq(json, ".id"));
await row("lossless-json parse", "lossless-json", async () => String((await import("lossless-json")).parse(json).id));

// Messages
const pb = await from("protobufjs");
const M = pb.parse('syntax = "proto3"; message M { int64 id = 1; }').root.lookupType("M");
const sent = (m) => String(M.decode(M.encode(m).finish()).id);
await row("protobufjs encode({ id: bigint })", "protobufjs", () => sent({ id: A }), () => sent(M.fromObject({ id: n })));
await row("protobufjs decode", "protobufjs", () => String(M.decode(M.encode(M.fromObject({ id: n })).finish()).id));
const options = { longs: Number };
await row("@grpc/proto-loader with longs: Number", "@grpc/proto-loader", () => M.toObject(M.fromObject({ id: n }), options).id, () => M.toObject(M.fromObject({ id: n }), { longs: String }).id);
const { fromJson, toJson, create } = await import("@bufbuild/protobuf");
const { Int64ValueSchema, StructSchema } = await import("@bufbuild/protobuf/wkt");
await row("@bufbuild/protobuf fromJson of a number", "@bufbuild/protobuf", () => fromJson(Int64ValueSchema, JSON.parse(n)).value, () => fromJson(Int64ValueSchema, n).value);
await row("google.protobuf.Struct in @bufbuild/protobuf", "@bufbuild/protobuf", () => toJson(StructSchema, fromJson(StructSchema, { id: Number(A) })).id, () => toJson(StructSchema, fromJson(StructSchema, { id: n })).id);
const { buildSchema, graphqlSync } = await import("graphql");
const ask = (type, id) => {
  const { data, errors } = graphqlSync({ schema: buildSchema(`type Query { id: ${type} }`), source: "{ id }", rootValue: { id } });
  return errors?.[0] ? "error, field is null" : data.id;
};
await row("graphql field Int", "graphql", () => ask("Int", A), () => ask("ID", n));
await row("graphql field ID from a number", "graphql", () => ask("ID", Number(A)), () => ask("ID", n));
await row("graphql field ID from a bigint", "graphql", () => ask("ID", A), () => ask("ID", n));
const { encode, decode } = await import("@msgpack/msgpack");
const packed = Uint8Array.of(0xcf, ...new Uint8Array(new BigUint64Array([A]).buffer).reverse());
await row("@msgpack/msgpack decode", "@msgpack/msgpack", () => decode(packed), () => decode(packed, { useBigInt64: true }));
await row("@msgpack/msgpack encode of a bigint", "@msgpack/msgpack", () => encode(A).length, () => decode(encode(A, { useBigInt64: true }), { useBigInt64: true }));
await row("msgpackr unpack", "msgpackr", async () => (await import("msgpackr")).unpack(packed));
await row("cbor-x decode", "cbor-x", async () => { const c = await import("cbor-x"); return c.decode(c.encode(A)); });
await row("superjson, devalue, structuredClone of a bigint", "superjson", async () => { const s = await from("superjson"), d = await import("devalue"); return d.parse(d.stringify(s.parse(s.stringify(structuredClone(A))))); });
const bson = await import("bson");
const bytes = bson.serialize({ id: bson.Long.fromString(n) });
await row("bson deserialize", "bson", () => `Long ${bson.deserialize(bytes).id}`);
await row("bson EJSON.stringify of a Long", "bson", () => bson.EJSON.stringify(bson.deserialize(bytes)), () => bson.EJSON.stringify(bson.deserialize(bytes), { relaxed: false }));
await row("bson EJSON.parse of a quoted $numberLong", "bson", () => bson.EJSON.parse(`{"id":{"$numberLong":"${A}"}}`).id, () => String(bson.EJSON.parse(`{"id":{"$numberLong":"${A}"}}`, { relaxed: false }).id));
const arrow = await import("apache-arrow");
await row("apache-arrow get", "apache-arrow", () => arrow.vectorFromArray([A], new arrow.Int64()).get(0));

// Redis
const redis = createServer((c) => c.on("error", () => {}).on("data", (d) => {
  for (const name of String(d).toLowerCase().matchAll(/\*\d+\r\n\$\d+\r\n(\w+)/g)) c.write(name[1] === "incr" ? `:${A}\r\n` : name[1] === "hello" ? "-ERR unknown command\r\n" : name[1] === "next" ? `$19\r\n${A}\r\n` : name[1] === "info" ? "$0\r\n\r\n" : "+OK\r\n");
})).listen(0, "127.0.0.1");
await once(redis, "listening");
const port = redis.address().port;
const { Redis } = await import("ioredis");
const io = (o) => async () => { const c = new Redis({ port, enableReadyCheck: false, protocol: 2, ...o }); const v = await c.incr("orders"); c.disconnect(); return v; };
await row("ioredis incr", "ioredis", io({}), io({ stringNumbers: true }));
const { createClient, RESP_TYPES } = await import("redis");
const node = (map) => async () => { const c = await createClient({ RESP: 2, socket: { port } }).connect(); const v = await (map ? c.withTypeMapping(map) : c).incr("orders"); c.destroy(); return v; };
await row("node-redis incr", "redis", node(), node({ [RESP_TYPES.NUMBER]: String }));
redis.close();

// Databases
const { PGlite } = await import("@electric-sql/pglite");
const { PGLiteSocketServer } = await import("@electric-sql/pglite-socket");
const lite = await PGlite.create();
const server = new PGLiteSocketServer({ db: lite, port: 0, host: "127.0.0.1" });
await server.start();
const at = server.getServerConn();
const pgport = Number(at.slice(at.lastIndexOf(":") + 1));
const Pg = (await from("pg")).Client;
const pg = new Pg({ host: "127.0.0.1", port: pgport, user: "postgres", database: "postgres" });
await pg.connect();
await pg.query(`create table t (id bigint, doc jsonb); insert into t values (${A}, '${json}')`);
const q = async (sql, args) => Object.values((await pg.query(sql, args)).rows[0] ?? { none: "no row" })[0];
await row("pg SELECT of a bigint", "pg", () => q("select id from t"));
await row("pg SELECT of jsonb", "pg", () => q("select doc from t"), () => q("select doc->>'id' from t"));
await row("pg WHERE id = $1 with a number", "pg", () => q("select id from t where id = $1", [Number(A)]), () => q("select id from t where id = $1", [A]));
const { drizzle } = await import("drizzle-orm/pglite");
const { pgTable, bigint } = await import("drizzle-orm/pg-core");
const d = drizzle(lite);
const of = (mode) => async () => (await d.select().from(pgTable("t", { id: bigint("id", { mode }) })))[0];
await pg.end();
await row("Drizzle bigint with mode number", "drizzle-orm", of("number"), of("bigint"));
const sql = (await from("postgres"))({ host: "127.0.0.1", port: pgport, user: "postgres", database: "postgres", max: 1 });
await row("postgres.js SELECT of a bigint", "postgres", async () => (await sql`select id from t`)[0].id);
await row("postgres.js SELECT of jsonb", "postgres", async () => (await sql`select doc from t`)[0].doc, async () => (await sql`select doc->>'id' id from t`)[0].id);
await sql.end();
await server.stop();

const { DuckDBInstance } = await import("@duckdb/node-api");
const duck = await (await DuckDBInstance.create()).connect();
await row("@duckdb/node-api getRows", "@duckdb/node-api", async () => (await duck.runAndReadAll(`select ${A}`)).getRows()[0][0]);
const Init = await from("sql.js");
const SQL = await Init();
const mem = new SQL.Database();
mem.run(`create table t (id integer primary key); insert into t values (${A})`);
await row("sql.js exec", "sql.js", () => mem.exec("select id from t")[0].values[0][0], () => mem.exec("select id from t", null, { useBigInt: true })[0].values[0][0]);
const { DataSource, EntitySchema } = await import("typeorm");
const T = new EntitySchema({ name: "t", columns: { id: { type: "bigint", primary: true } } });
const source = await new DataSource({ type: "sqljs", driver: Init, entities: [T], synchronize: true }).initialize();
await source.query(`insert into t values (${A})`);
await row("TypeORM bigint on sql.js, findOneBy({ id })", "typeorm", async () => (await source.manager.findOneBy(T, { id: n })).id, async () => (await source.query("select cast(id as text) id from t"))[0].id);
const Better = await from("better-sqlite3").catch(() => null);
try {
  const better = new Better(":memory:");
  better.exec(`create table t (id integer primary key); insert into t values (${A})`);
  await row("better-sqlite3 get", "better-sqlite3", () => better.prepare("select id from t").get().id, () => better.prepare("select id from t").safeIntegers().get().id);
  const more = (id) => better.prepare("insert into t values (?)").safeIntegers(typeof id !== "object").run(...[id].flat()).lastInsertRowid;
  await row("better-sqlite3 run().lastInsertRowid", "better-sqlite3", () => more([A + 1n]), () => more(A + 2n) - 2n);
  const knex = (await from("knex"))({ client: "better-sqlite3", connection: ":memory:", useNullAsDefault: true });
  await knex.raw("create table t (id bigint)");
  await knex("t").insert({ id: A });
  await row("Knex first() on better-sqlite3", "knex", async () => (await knex("t").first("id")).id, async () => (await knex("t").first(knex.raw("cast(id as text) id"))).id);
  await knex.destroy();
} catch {}
if (process.env.SOCKET) {
  const socketPath = process.env.SOCKET, user = "root", database = "test";
  const my = await import("mysql2/promise");
  const c = await my.createConnection({ socketPath, user, database });
  await c.query(`create or replace table t (id bigint primary key auto_increment, doc json, text varchar(20)) auto_increment = ${A}`);
  await row("mysql2 insertId", "mysql2", async () => (await c.query(`insert into t (doc, text) values ('${json}', '${A}')`))[0].insertId);
  const get = (column, o) => async () => { const c = await my.createConnection({ socketPath, user, database, ...o }); const [r] = await c.query(`select ${column} v from t`); await c.end(); return r[0].v; };
  await row("mysql2 SELECT of a bigint", "mysql2", get("id", {}), get("id", { supportBigNumbers: true }));
  await row("mysql2 SELECT of a JSON column", "mysql2", get("doc", {}), get("cast(doc as char)", {}));
  await c.end();
  const old = (o) => new Promise(async (done, fail) => { const c = (await from("mysql")).createConnection({ socketPath, user, database, ...o }); c.query("select id from t", (e, r) => { c.end(); e ? fail(e) : done(r[0].id); }); });
  await row("mysql SELECT of a bigint", "mysql", () => old({}), () => old({ supportBigNumbers: true }));
  const m = await (await from("mariadb")).createConnection({ socketPath, user, database });
  await row("mariadb SELECT of a bigint", "mariadb", async () => (await m.query("select id from t"))[0].id);
  await row("mariadb SELECT of a JSON column", "mariadb", async () => (await m.query("select doc from t"))[0].doc, async () => (await m.query("select cast(doc as char) doc from t"))[0].doc);
  await m.end();
  const { Sequelize, DataTypes } = await from("sequelize");
  const s = new Sequelize(database, user, "", { dialect: "mysql", logging: false, dialectOptions: { socketPath } });
  const O = s.define("t", { id: { type: DataTypes.BIGINT, primaryKey: true } }, { timestamps: false, freezeTableName: true });
  await row("Sequelize max() of a BIGINT", "sequelize", () => O.max("id"), async () => (await O.findOne()).id);
  await s.close();
}
process.exit();
END
if command -v mariadbd mariadb-install-db >/dev/null; then
	mariadb-install-db --no-defaults --datadir="$dir/data" --auth-root-authentication-method=normal >db.log 2>&1
	mariadbd --no-defaults --user="$(id -un)" --datadir="$dir/data" --socket="$dir/s" --skip-networking >>db.log 2>&1 &
	database=$!
	until mariadb --no-defaults -S "$dir/s" -u root -e 'create database if not exists test' 2>>db.log; do
		kill -0 "$database" && sleep 0.2
	done
	export SOCKET="$dir/s"
fi
export NODE_NO_WARNINGS=1
node main.mjs
test ! -x "newest/node_modules/$newest/bin/node" || "newest/node_modules/$newest/bin/node" sqlite.mjs
