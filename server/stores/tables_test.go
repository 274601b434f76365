//go:build unix

package stores_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/sqlstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/test/sqltest"
	"github.com/firnid/firn/server/stores"
)

// A handmade is a table that Firn has not made. In its statements T stands for
// its name, and ID for inserting the row that names it.
type handmade struct {
	name  string
	make  string
	want  error  // nil if it will do
	words string // of the error, with T; what to do among them
}

const (
	usualPostgreSQL = `CREATE TABLE T (k varchar(256) COLLATE "C" PRIMARY KEY, v bytea NOT NULL, n bigint NOT NULL); ID; `
	usualMySQL      = "CREATE TABLE T (k VARBINARY(256) PRIMARY KEY, v VARBINARY(4096) NOT NULL, n BIGINT NOT NULL) ENGINE=InnoDB; ID; "
)

var handmadePostgreSQL = []handmade{
	{"as it is", usualPostgreSQL, nil, ""},
	{"text", `CREATE TABLE T (k text COLLATE "POSIX" PRIMARY KEY, v bytea NOT NULL, n bigint NOT NULL); ID`, nil, ""},
	{"long text", `CREATE TABLE T (k varchar(1000) COLLATE "C" PRIMARY KEY, v bytea NOT NULL, n bigint NOT NULL); ID`, nil, ""},
	{"collation of the database", `CREATE TABLE T (k varchar PRIMARY KEY, v bytea NOT NULL, n bigint NOT NULL); ID`, nil, ""}, // it is C
	{"a column more", usualPostgreSQL + `ALTER TABLE T ADD at timestamptz DEFAULT now()`, nil, ""},
	{"an index more", usualPostgreSQL + `CREATE INDEX ON T (n)`, nil, ""},
	{"a trigger that is off", usualPostgreSQL + `CREATE TRIGGER x BEFORE UPDATE ON T FOR EACH ROW EXECUTE FUNCTION nothing(); ALTER TABLE T DISABLE TRIGGER x`, nil, ""},

	{"collation of a language", `CREATE TABLE T (k varchar(256) COLLATE "en-x-icu" PRIMARY KEY, v bytea NOT NULL, n bigint NOT NULL); ID`,
		grant.ErrUnfit, "order of their bytes"},
	{"collation without case", `CREATE TABLE T (k varchar(256) COLLATE nocase PRIMARY KEY, v bytea NOT NULL, n bigint NOT NULL); ID`, grant.ErrUnfit, "not inserted"},
	{"index of another collation", `CREATE TABLE T (k varchar(256) COLLATE "C" NOT NULL, v bytea NOT NULL, n bigint NOT NULL); CREATE UNIQUE INDEX T_ix ON T (k COLLATE nocase); ID`, grant.ErrUnfit, "not inserted"},
	{"short key", `CREATE TABLE T (k varchar(100) COLLATE "C" PRIMARY KEY, v bytea NOT NULL, n bigint NOT NULL); ID`, grant.ErrUnfit, "too long"},
	{"padded key", `CREATE TABLE T (k char(256) COLLATE "C" PRIMARY KEY, v bytea NOT NULL, n bigint NOT NULL); ID`, grant.ErrUnfit, "order of their bytes"},
	{"key of a domain", `CREATE DOMAIN T_small AS varchar(256) COLLATE "C" CHECK (value = lower(value)); CREATE TABLE T (k T_small PRIMARY KEY, v bytea NOT NULL, n bigint NOT NULL); ID`, grant.ErrUnfit, "T_small"},
	{"key of bytes", `CREATE TABLE T (k bytea PRIMARY KEY, v bytea NOT NULL, n bigint NOT NULL); ID`, grant.ErrUnfit, "bytea"},
	{"values of text", `CREATE TABLE T (k varchar(256) COLLATE "C" PRIMARY KEY, v text NOT NULL, n bigint NOT NULL); ID`, grant.ErrUnfit, "read back as another"},
	{"generated counter", `CREATE TABLE T (k varchar(256) COLLATE "C" PRIMARY KEY, v bytea NOT NULL, n bigint NOT NULL GENERATED ALWAYS AS (1) STORED)`, grant.ErrUnfit, `column "n"`},
	{"another column", usualPostgreSQL + `ALTER TABLE T ADD who text NOT NULL DEFAULT ''; ALTER TABLE T ALTER who DROP DEFAULT`, grant.ErrUnfit, `column "who"`},
	{"keys twice", `CREATE TABLE T (k varchar(256) COLLATE "C" NOT NULL, v bytea NOT NULL, n bigint NOT NULL); ID`, grant.ErrUnfit, "ON CONFLICT"},
	{"keys at the end of the transaction", `CREATE TABLE T (k varchar(256) COLLATE "C" PRIMARY KEY DEFERRABLE, v bytea NOT NULL, n bigint NOT NULL); ID`, nil, "deferrable"},
	{"unique values", usualPostgreSQL + `CREATE UNIQUE INDEX T_ix ON T (v)`, grant.ErrUnfit, "T_ix"},
	{"unlogged", usualPostgreSQL + `ALTER TABLE T SET UNLOGGED`, grant.ErrUnfit, "SET LOGGED"},
	{"a view", `CREATE TABLE T_of (k varchar(256) COLLATE "C" PRIMARY KEY, v bytea NOT NULL, n bigint NOT NULL); CREATE VIEW T AS SELECT * FROM T_of; ID`, grant.ErrUnfit, "view"},
	{"heirs", usualPostgreSQL + `CREATE TABLE T_heir () INHERITS (T)`, grant.ErrUnfit, "inherit"},
	{"a trigger", usualPostgreSQL + `CREATE TRIGGER x BEFORE UPDATE ON T FOR EACH ROW EXECUTE FUNCTION nothing()`, grant.ErrUnfit, "triggers"},
	{"a rule", usualPostgreSQL + `CREATE RULE x AS ON UPDATE TO T DO INSTEAD NOTHING`, grant.ErrUnfit, "rules"},
	{"row security", usualPostgreSQL + `ALTER TABLE T ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON T USING (k > 'v')`, grant.ErrUnfit, "DISABLE ROW LEVEL SECURITY"},
	{"a foreign key", usualPostgreSQL + `CREATE TABLE T_of (n bigint PRIMARY KEY); INSERT INTO T_of VALUES (1); ALTER TABLE T ADD CONSTRAINT T_fk FOREIGN KEY (n) REFERENCES T_of ON DELETE CASCADE`, grant.ErrUnfit, "constraints"},
	{"a check", usualPostgreSQL + `ALTER TABLE T ADD CHECK (length(v) < 1000)`, grant.ErrUnfit, "T_v_check"},

	{"emptied", usualPostgreSQL + "TRUNCATE T", grant.ErrUnfit, "restore the table and fence"},
	{"nameless", usualPostgreSQL + "INSERT INTO T VALUES ('v1/a/config', 'x', 1); DELETE FROM T WHERE k = '!identity'", grant.ErrUnfit, "INSERT INTO"},
	{"an empty name", usualPostgreSQL + "UPDATE T SET v = '' WHERE k = '!identity'", grant.ErrUnfit, "INSERT INTO"},
	{"nothing", "SELECT 1", sqlstore.ErrNoTable, "T"},
}

var handmadeMySQL = []handmade{
	{"as it is", usualMySQL, nil, ""},
	{"long key", "CREATE TABLE T (k VARBINARY(500) PRIMARY KEY, v VARBINARY(5000) NOT NULL, n BIGINT UNSIGNED NOT NULL); ID", nil, ""},
	{"blob", "CREATE TABLE T (K VARBINARY(256) PRIMARY KEY, V BLOB NOT NULL, N BIGINT NOT NULL); ID", nil, ""},
	{"a column more", usualMySQL + "ALTER TABLE T ADD at TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP", nil, ""},
	{"an index more", usualMySQL + "CREATE INDEX T_ix ON T (n)", nil, ""},

	{"keys without case", "CREATE TABLE T (k VARCHAR(256) CHARACTER SET latin1 PRIMARY KEY, v VARBINARY(4096) NOT NULL, n BIGINT NOT NULL); ID",
		grant.ErrUnfit, "not inserted"},
	{"short key", "CREATE TABLE T (k VARBINARY(100) PRIMARY KEY, v VARBINARY(4096) NOT NULL, n BIGINT NOT NULL); ID", grant.ErrUnfit, "too long"},
	{"values of text", "CREATE TABLE T (k VARBINARY(256) PRIMARY KEY, v TEXT NOT NULL, n BIGINT NOT NULL); ID", grant.ErrUnfit, "Incorrect string value"},
	{"short values", "CREATE TABLE T (k VARBINARY(256) PRIMARY KEY, v VARBINARY(1000) NOT NULL, n BIGINT NOT NULL); ID", grant.ErrUnfit, "too long"},
	{"generated counter", "CREATE TABLE T (k VARBINARY(256) PRIMARY KEY, v VARBINARY(4096) NOT NULL, n BIGINT AS (1) STORED)", grant.ErrUnfit, "generated column"},
	{"another column", usualMySQL + "ALTER TABLE T ADD who INT NOT NULL", grant.ErrUnfit, "who"},
	{"keys twice", "CREATE TABLE T (k VARBINARY(256) NOT NULL, v VARBINARY(4096) NOT NULL, n BIGINT NOT NULL); ID", grant.ErrUnfit, "inserted twice"},
	{"the beginning of keys", "CREATE TABLE T (k VARBINARY(256) NOT NULL, v VARBINARY(4096) NOT NULL, n BIGINT NOT NULL, PRIMARY KEY (k(10))); ID", grant.ErrUnfit, "not inserted"},
	{"two columns", "CREATE TABLE T (k VARBINARY(256) NOT NULL, v VARBINARY(4096) NOT NULL, n BIGINT NOT NULL, PRIMARY KEY (k, n)); ID", grant.ErrUnfit, "inserted twice"},
	{"unique counters", usualMySQL + "CREATE UNIQUE INDEX T_ix ON T (n)", grant.ErrUnfit, "not inserted"},
	{"no transactions", usualMySQL + "ALTER TABLE T ENGINE=MyISAM", grant.ErrUnfit, "ENGINE=InnoDB"},
	{"a view", "CREATE TABLE T_of (k VARBINARY(256) PRIMARY KEY, v VARBINARY(4096) NOT NULL, n BIGINT NOT NULL); CREATE VIEW T AS SELECT * FROM T_of; ID", grant.ErrUnfit, "ordinary table"},
	{"a trigger", usualMySQL + "CREATE TRIGGER T_x BEFORE UPDATE ON T FOR EACH ROW SET NEW.v = TRIM(NEW.v)", grant.ErrUnfit, "triggers"},
	{"a foreign key", usualMySQL + "CREATE TABLE T_of (n BIGINT PRIMARY KEY); INSERT INTO T_of VALUES (1); ALTER TABLE T ADD CONSTRAINT T_fk FOREIGN KEY (n) REFERENCES T_of (n) ON DELETE CASCADE", grant.ErrUnfit, "foreign keys"},

	{"emptied", usualMySQL + "TRUNCATE T", grant.ErrUnfit, "restore the table and fence"},
	{"nameless", usualMySQL + "INSERT INTO T VALUES ('v1/a/config', 'x', 1); DELETE FROM T WHERE k = '!identity'", grant.ErrUnfit, "INSERT INTO"},
	{"an empty name", usualMySQL + "UPDATE T SET v = '' WHERE k = '!identity'", grant.ErrUnfit, "INSERT INTO"},
	{"nothing", "SELECT 1", sqlstore.ErrNoTable, "T"},
}

// handmadeTables: a table is used if it keeps keys and values as they are, and
// is refused otherwise, with what to do.
func handmadeTables(t *testing.T, kind string, server *sqltest.Server) {
	all, use := handmadePostgreSQL, "\\c ids\n"
	if kind == "mysql" {
		all, use = handmadeMySQL, "USE ids;\n"
	} else {
		server.Exec(use + `CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
			CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
			ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON TABLES TO firn;`)
	}
	name := func(i int) string { return fmt.Sprintf("t%d", i) }
	for i, test := range all {
		insert := "INSERT INTO T (k, v, n) VALUES ('!identity', 'table T', 1)"
		use += named(strings.ReplaceAll(test.make, "ID", insert), name(i)) + ";\n"
	}
	server.Exec(use)
	for i, test := range all {
		t.Run(test.name, func(t *testing.T) {
			table := name(i)
			s, err := stores.Open(t.Context(), server.URL("table="+table))
			if err == nil {
				defer s.Close()
			}
			words := named(test.words, table)
			switch {
			case test.want == nil && test.words == "":
				if err != nil {
					t.Fatalf("%v, want it to be used", err)
				}
				works(t, s)
			case err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), words):
				t.Errorf("%v, want %v with %q", err, test.want, words)
			default:
				var e *stores.Error
				if !errors.As(err, &e) || e.Hint == "" && test.want != nil && !errors.Is(err, grant.ErrUnfit) {
					t.Errorf("%v has no hint", err)
				}
			}
		})
	}
}

// otherLocale: a column has the collation of its database where it names none.
func otherLocale(t *testing.T, server *sqltest.Server) {
	if version, err := strconv.Atoi(server.Query("SHOW server_version_num")); err != nil || version < 150000 {
		t.Skip("SKIPPED: this PostgreSQL makes no database with a locale of ICU")
	}
	server.Exec("CREATE DATABASE other TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en' OWNER firn;\n\\c other\n" +
		"CREATE TABLE firn_grants (k varchar(256) PRIMARY KEY, v bytea NOT NULL, n bigint NOT NULL); GRANT ALL ON firn_grants TO firn;\n")
	url := strings.Replace(server.URL("create=true"), "/"+sqltest.Database+"?", "/other?", 1)
	err := faultOf(t, url)
	if !errors.Is(err, grant.ErrUnfit) || !strings.Contains(err.Error(), "order of their bytes") {
		t.Errorf("%v, want ErrUnfit for the collation", err)
	}
	works(t, open(t, url+"&table=made"))
}

// tableName is T where it is a word, or its beginning.
var tableName = regexp.MustCompile(`\bT(\b|_)`)

// named puts the name of a table in the place of T.
func named(text, table string) string { return tableName.ReplaceAllString(text, table+"${1}") }

// works: keys that differ in case are two, and are listed.
func works(t *testing.T, s grant.Store) {
	t.Helper()
	for _, key := range []string{"v1/a", "v1/A"} {
		if ok, err := s.CAS(t.Context(), key, nil, []byte("1 ")); !ok || err != nil {
			t.Fatalf("CAS(%q) = %v, %v", key, ok, err)
		}
	}
	var keys []string
	err := s.List(t.Context(), "v1/", func(key string, value []byte) bool {
		keys = append(keys, key+"="+string(value))
		return true
	})
	if got := strings.Join(keys, ","); err != nil || got != "v1/A=1 ,v1/a=1 " {
		t.Errorf("List = %q, %v", got, err)
	}
}

// readers: a user who may only read the table opens it; one who sees a table
// under the same name elsewhere, made after the store was opened, changes
// nothing.
func readers(t *testing.T, kind string, server *sqltest.Server) {
	s := open(t, server.URL("create=true", "table=readers"))
	faultstore.Put(t, s, "a", "1")
	url := func(user string) string { return strings.Replace(server.URL("table=readers"), "firn:", user+":", 1) }
	if kind == "postgres" {
		server.Exec("CREATE ROLE reader LOGIN PASSWORD '" + sqltest.Password + "';\n\\c ids\nGRANT SELECT ON readers TO reader;\n")
	} else {
		server.Exec("CREATE USER reader@'127.0.0.1' IDENTIFIED BY '" + sqltest.Password + "'; GRANT SELECT ON ids.readers TO reader@'127.0.0.1';")
	}
	reader := open(t, url("reader"))
	if value, err := reader.Get(t.Context(), "a"); string(value) != "1" || err != nil {
		t.Errorf("Get = %q, %v, want 1", value, err)
	}
	if ok, err := reader.CAS(t.Context(), "a", []byte("1"), []byte("2")); ok || !errors.Is(err, grant.ErrNotSent) {
		t.Errorf("CAS = %v, %v, want ErrNotSent", ok, err)
	}
	if kind != "postgres" {
		return
	}
	server.Exec("\\c ids\nCREATE SCHEMA firn AUTHORIZATION firn; CREATE TABLE firn.readers AS SELECT * FROM public.readers WHERE false; ALTER TABLE firn.readers OWNER TO firn;")
	if value, err := s.Get(t.Context(), "a"); string(value) != "1" || err != nil {
		t.Errorf("Get = %q, %v, want 1: the other table is another", value, err)
	}
	server.Exec("\\c ids\nDROP SCHEMA firn CASCADE;")
}

// hiddenTrigger: a trigger that the user may not see is found by what it does.
func hiddenTrigger(t *testing.T, server *sqltest.Server) {
	open(t, server.URL("create=true", "table=hidden"))
	server.Exec("CREATE USER writer@'127.0.0.1' IDENTIFIED BY '" + sqltest.Password + "'; GRANT SELECT, INSERT, UPDATE ON ids.hidden TO writer@'127.0.0.1';\n" +
		"CREATE TRIGGER ids.x BEFORE INSERT ON ids.hidden FOR EACH ROW SET NEW.v = TRIM(NEW.v);")
	err := faultOf(t, strings.Replace(server.URL("table=hidden"), "firn:", "writer:", 1))
	if !errors.Is(err, grant.ErrUnfit) || !strings.Contains(err.Error(), "trigger") {
		t.Errorf("%v, want ErrUnfit", err)
	}
}

// cutValues: a server that cuts values, because the table was changed while it
// was in use and the server is not strict, warns of it, and the CAS is not
// taken for applied.
func cutValues(t *testing.T, server *sqltest.Server) {
	server.Exec("SET GLOBAL sql_mode = '';")
	defer server.Exec("SET GLOBAL sql_mode = DEFAULT;")
	s := open(t, server.URL("create=true", "table=cut"))
	faultstore.Put(t, s, "a", "1")
	server.Exec("ALTER TABLE ids.cut MODIFY v VARBINARY(30) NOT NULL;")
	ok, err := s.CAS(t.Context(), "a", []byte("1"), []byte(strings.Repeat("2", 40)))
	if ok || err == nil || errors.Is(err, grant.ErrNotSent) || !strings.Contains(err.Error(), "1265") {
		t.Errorf("CAS that is cut = %v, %v, want an unknown result with the server's warning", ok, err)
	}
}

// unlogged: a database is refused if its sessions keep what they commit from
// replicas.
func unlogged(t *testing.T, server *sqltest.Server) {
	server.Exec("GRANT BINLOG ADMIN ON *.* TO firn@'127.0.0.1'; SET GLOBAL init_connect = 'SET sql_log_bin = 0';")
	defer server.Exec("SET GLOBAL init_connect = ''; REVOKE BINLOG ADMIN ON *.* FROM firn@'127.0.0.1';")
	err := faultOf(t, server.URL("create=true", "table=unlogged"))
	if !errors.Is(err, grant.ErrUnfit) || !strings.Contains(err.Error(), "sql_log_bin") {
		t.Errorf("%v, want ErrUnfit for sql_log_bin", err)
	}
}

// leftOpen: other users of a pool may leave its connections inside a
// transaction or without autocommit. Reads on them still show current values,
// and an applied CAS is committed. A connection that cannot be used is soon
// closed.
func leftOpen(t *testing.T, server *sqltest.Server) {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName = sqltest.User, sqltest.Password, "tcp", server.Address(), sqltest.Database
	connector := must.Get(mysql.NewConnector(c))(t)
	db := sql.OpenDB(connector)
	defer db.Close()
	db.SetMaxOpenConns(1) // the one that is left open
	number := func(err error) uint16 {
		var e *mysql.MySQLError
		errors.As(err, &e)
		if e == nil {
			return 0
		}
		return e.Number
	}
	s := must.Get(sqlstore.Open(t.Context(), db, sqlstore.MySQL(number), &sqlstore.Options{Create: true, Table: "left_open"}))(t)
	defer s.Close()
	other := open(t, server.URL("table=left_open"))
	for _, leave := range []string{"BEGIN", "START TRANSACTION WITH CONSISTENT SNAPSHOT", "SET autocommit = 0"} {
		must.Get(db.Exec(leave))(t)
		for i, kind := range []string{"new", "changed"} {
			key, old := "a/"+strings.ToLower(strings.ReplaceAll(leave, " ", "")[:5]), []byte(nil)
			if i > 0 {
				old = []byte("new")
			}
			if ok, err := s.CAS(t.Context(), key, old, []byte(kind)); !ok || err != nil {
				t.Fatalf("%s: CAS = %v, %v", leave, ok, err)
			}
			if v, err := other.Get(t.Context(), key); string(v) != kind || err != nil {
				t.Errorf("%s: another has %q, %v, want %q: the CAS was applied", leave, v, err, kind)
			}
		}
		if _, err := s.Get(t.Context(), "seen"); err != nil { // a snapshot begins, if anything is open
			t.Fatal(err)
		}
		faultstore.Put(t, other, "seen", leave)
		if v, err := s.Get(t.Context(), "seen"); string(v) != leave || err != nil {
			t.Errorf("%s: Get = %q, %v, want what another has written", leave, v, err)
		}
	}

	// A CAS that is refused leaves no lock behind.
	must.Get(db.Exec("SET autocommit = 0"))(t)
	if ok, err := s.CAS(t.Context(), "seen", []byte("another"), []byte("a")); ok || err != nil {
		t.Fatal(ok, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), must.Patience)
	defer cancel()
	if ok, err := other.CAS(ctx, "seen", []byte("SET autocommit = 0"), []byte("b")); !ok || err != nil {
		t.Errorf("CAS after another was refused = %v, %v", ok, err)
	}

	// A connection on which calls fail is not used again.
	must.Get(db.Exec("CREATE TABLE another (a INT)"))(t)
	old := "b"
	for _, leave := range []string{"LOCK TABLES another WRITE", "XA START 'a'"} {
		for i, call := range []func() error{
			func() error { _, err := s.Get(ctx, "seen"); return err },
			func() error { _, err := s.CAS(ctx, "never", []byte("a"), []byte("b")); return err },
		} {
			// The server may not have ended the transaction of the last round yet.
			must.Get(db.Exec(strings.Replace(leave, "'a'", fmt.Sprintf("'%d'", i), 1)))(t)
			for range 2 {
				_ = call() // it may work, and it may fail
			}
			if err := call(); err != nil {
				t.Errorf("%s: a third call fails: %v", leave, err)
			}
			if ok, err := s.CAS(ctx, "seen", []byte(old), []byte(leave)); !ok || err != nil {
				t.Errorf("%s: CAS = %v, %v", leave, ok, err)
			}
			old = leave
			if v, err := s.(grant.MultiGetter).GetMany(ctx, []string{"seen", "seen"}); err != nil || string(v[1]) != leave {
				t.Errorf("%s: GetMany = %q, %v", leave, v, err)
			}
		}
	}
}

// documented: the statements of docs/stores.md make the table.
func documented(t *testing.T, kind string, server *sqltest.Server) {
	page, err := os.ReadFile("../../docs/stores.md")
	if err != nil {
		t.Skip("the module stands alone, without the docs")
	}
	_, text, _ := strings.Cut(string(page), "```sql\n-- PostgreSQL\n")
	text, _, _ = strings.Cut(text, "```")
	postgres, mysql, ok := strings.Cut(text, "-- MySQL\n")
	if !ok {
		t.Fatal("docs/stores.md has no statements for both databases")
	}
	script := "\\c ids\n" + postgres
	if kind == "mysql" {
		script = "USE ids;\n" + strings.ReplaceAll(mysql, "TO firn;", "TO firn@'127.0.0.1';")
	}
	server.Exec(script)
	works(t, open(t, server.URL()))
}
