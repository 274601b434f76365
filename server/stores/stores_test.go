//go:build unix

package stores_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/sqlstore"
	"github.com/firnid/firn/grant/storetest"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/test/nettest"
	"github.com/firnid/firn/server/internal/test/sqltest"
	"github.com/firnid/firn/server/stores"
)

func open(t *testing.T, url string) grant.Store {
	t.Helper()
	s := must.Get(stores.Open(t.Context(), url))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// faultOf returns the error of opening a store that should not open.
func faultOf(t *testing.T, url string) error {
	t.Helper()
	s, err := stores.Open(t.Context(), url)
	if err == nil {
		_ = s.Close()
	}
	return err
}

// TestDatabases: the contract of a store, over real servers, and what is said
// of one that cannot be used. TestDatabasesKilled in e2e kills them.
func TestDatabases(t *testing.T) {
	for kind, start := range sqltest.Kinds() {
		t.Run(kind, func(t *testing.T) {
			server := start(t)
			t.Run("documented", func(t *testing.T) { documented(t, kind, server) })
			t.Run("store", func(t *testing.T) { contract(t, server, "store") })
			t.Run("isolation", func(t *testing.T) { isolation(t, kind, server) })
			t.Run("create at once", func(t *testing.T) { createAtOnce(t, server) })
			t.Run("clock", func(t *testing.T) { clock(t, kind, server) })
			t.Run("faults", func(t *testing.T) { faults(t, server) })
			t.Run("tables", func(t *testing.T) { handmadeTables(t, kind, server) })
			t.Run("readers", func(t *testing.T) { readers(t, kind, server) })
			if kind == "mysql" {
				t.Run("hidden trigger", func(t *testing.T) { hiddenTrigger(t, server) })
				t.Run("cut values", func(t *testing.T) { cutValues(t, server) })
				t.Run("unlogged", func(t *testing.T) { unlogged(t, server) })
				t.Run("left open", func(t *testing.T) { leftOpen(t, server) })
			} else {
				t.Run("other locale", func(t *testing.T) { otherLocale(t, server) })
			}
			t.Run("stops", func(t *testing.T) { stops(t, server) })
		})
	}
}

// contract runs the suite over tables of a server, with more parameters of the
// URL.
func contract(t *testing.T, server *sqltest.Server, prefix string, parameters ...string) {
	tables := make(map[grant.Store]string)
	openTable := func(t *testing.T, table string) grant.Store {
		s := open(t, server.URL(append(parameters, "create=true", "table="+table)...))
		tables[s] = table
		return s
	}
	storetest.Run(t, func(t *testing.T) grant.Store {
		return openTable(t, fmt.Sprintf("%s%d", prefix, len(tables)))
	}, func(t *testing.T, first grant.Store) grant.Store { return openTable(t, tables[first]) })
}

// isolation: the contract holds whatever sessions begin with.
func isolation(t *testing.T, kind string, server *sqltest.Server) {
	nettest.Long(t)
	if kind == "postgres" {
		for i, level := range []string{"serializable", "repeatable%20read"} {
			t.Run(level, func(t *testing.T) {
				contract(t, server, fmt.Sprintf("i%d_", i), "default_transaction_isolation="+level)
			})
		}
		return
	}
	server.Exec("SET GLOBAL TRANSACTION ISOLATION LEVEL SERIALIZABLE; SET GLOBAL autocommit = 0;")
	defer server.Exec("SET GLOBAL TRANSACTION ISOLATION LEVEL REPEATABLE READ; SET GLOBAL autocommit = 1;")
	t.Run("serializable, autocommit off", func(t *testing.T) { contract(t, server, "i") })
	t.Run("a driver that leaves autocommit off", func(t *testing.T) {
		c := mysql.NewConfig()
		c.User, c.Passwd, c.Net, c.Addr, c.DBName = sqltest.User, sqltest.Password, "tcp", server.Address(), sqltest.Database
		db := sql.OpenDB(must.Get(mysql.NewConnector(c))(t))
		defer db.Close()
		_, err := sqlstore.Open(t.Context(), db, sqlstore.MySQL(func(error) uint16 { return 0 }), &sqlstore.Options{Create: true})
		if !errors.Is(err, grant.ErrUnfit) || !strings.Contains(err.Error(), "autocommit") {
			t.Errorf("%v, want ErrUnfit for autocommit", err)
		}
	})
}

// stops: calls of a server that does not answer wait no longer than their
// context, and what was sent is applied or not.
func stops(t *testing.T, server *sqltest.Server) {
	s := open(t, server.URL("create=true", "table=stops"))
	faultstore.Put(t, s, "a", "1")
	server.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	ok, err := s.CAS(ctx, "a", []byte("1"), []byte("2"))
	if ok || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("CAS at a server that stands still = %v, %v", ok, err)
	}
	server.Continue()
	server.Wait()
	value, err := s.Get(t.Context(), "a")
	if got := string(value); err != nil || got != "1" && got != "2" {
		t.Errorf("the value is %q, %v, want 1 or 2", got, err)
	}
}

// createAtOnce: many that make the table at the same time all get the same one.
func createAtOnce(t *testing.T, server *sqltest.Server) {
	var all sync.WaitGroup
	var names sync.Map
	for range 8 {
		all.Go(func() {
			s, err := stores.Open(t.Context(), server.URL("create=true", "table=together"))
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			name, _, err := s.(grant.Lineage).Lineage(t.Context())
			if err != nil {
				t.Error(err)
			}
			names.Store(name, true)
		})
	}
	all.Wait()
	n := 0
	names.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d tables were made, want one", n)
	}
}

// clock: the server's time is that of this machine, whatever time zone its
// sessions have.
func clock(t *testing.T, kind string, server *sqltest.Server) {
	parameters := []string{"create=true", "table=clock"}
	if kind == "postgres" {
		parameters = append(parameters, "timezone=Asia/Kathmandu")
	} else {
		server.Exec("SET GLOBAL time_zone = '+05:45';")
		defer server.Exec("SET GLOBAL time_zone = 'SYSTEM';")
	}
	c := open(t, server.URL(parameters...)).(grant.Clock)
	for range 20 {
		before := time.Now()
		now, resolution, err := c.Time(t.Context())
		after := time.Now()
		if err != nil || now.Add(resolution).Before(before) || now.After(after) {
			t.Fatalf("Time() = %v, %v, %v, want a time from %v to %v", now, resolution, err, before, after)
		}
	}
}

// faults: each is said in a line, without the password.
func faults(t *testing.T, server *sqltest.Server) {
	scheme, _, _ := strings.Cut(server.URL(), "://")
	at := func(user, password, address, database, query string) string {
		return fmt.Sprintf("%s://%s:%s@%s/%s%s", scheme, user, password, address, database, query)
	}
	file := filepath.Join(t.TempDir(), "password")
	must.Do(t, os.WriteFile(file, []byte(sqltest.Password+"\n"), 0o600))
	secret := "secret%3A%2F%40%3F"
	for _, test := range []struct{ url, words, hint string }{
		{at("firn", "hunter2", server.Address(), "ids", ""), `password`, "password"},
		{at("nobody", "hunter2", server.Address(), "ids", ""), `nobody`, "password"},
		{at("firn", secret, server.Address(), "nothing", ""), "nothing", ""},
		{at("firn", secret, "127.0.0.1:1", "ids", ""), "refused", "it is running"},
		{at("firn", secret, server.Address(), "ids", "?table=absent"), "no table absent", "create=true"},
		{at("firn", secret, server.Address(), "ids", "?table=absent"), "no table absent", "CREATE TABLE "},
		{at("firn", secret, server.Address(), "ids", "?tabel=x"), `"tabel"`, "table, "},
		{at("firn", secret, server.Address(), "ids", "?table=a-b"), "a-z, 0-9 and _", ""},
		{at("firn", secret, server.Address(), "ids", "?create=perhaps"), "true or false", ""},
		{at("firn", secret, server.Address(), "ids", "?timeout=5"), `invalid timeout "5"`, "5s"},
		{at("firn", secret, server.Address(), "ids", "?password-file="+file), "a password and a password-file", "leave one"},
	} {
		err := faultOf(t, test.url)
		var e *stores.Error
		if !errors.As(err, &e) || !strings.Contains(e.Error(), test.words) || !strings.Contains(e.Hint, test.hint) {
			t.Errorf("%s: %v, want %q with the hint %q", stores.Redact(test.url), err, test.words, test.hint)
		}
		if err == nil {
			continue
		}
		for _, part := range []string{err.Error(), e.Hint} {
			if strings.Contains(part, "hunter2") || strings.Contains(part, "secret") || strings.Contains(part, "\n") {
				t.Errorf("%q has the password, or several lines", part)
			}
		}
	}
	if scheme == "postgres" {
		if err := faultOf(t, server.URL("create=true", "default_transaction_read_only=on")); !errors.Is(err, sqlstore.ErrReplica) {
			t.Errorf("a session that is read-only: %v, want ErrReplica", err)
		}
	}
	url := fmt.Sprintf("%s://firn@%s/ids?create=true&password-file=%s", scheme, server.Address(), file)
	open(t, url) // the password comes from the file
}

// TestReadOnly: a server that takes no writes for a while is refused for that
// while, and the connections that have seen it are not used any more.
func TestReadOnly(t *testing.T) {
	server := sqltest.MariaDB(t)
	s := open(t, server.URL("create=true"))
	faultstore.Put(t, s, "a", "1")
	server.Exec("SET GLOBAL read_only = 1;")
	if _, err := s.Get(t.Context(), "a"); !errors.Is(err, sqlstore.ErrReplica) {
		t.Errorf("Get = %v, want ErrReplica", err)
	}
	if err := s.List(t.Context(), "", func(string, []byte) bool { return true }); !errors.Is(err, sqlstore.ErrReplica) {
		t.Errorf("List = %v, want ErrReplica", err)
	}
	if ok, err := s.CAS(t.Context(), "a", []byte("1"), []byte("2")); ok || !errors.Is(err, sqlstore.ErrReplica) || !errors.Is(err, grant.ErrNotSent) {
		t.Errorf("CAS = %v, %v, want ErrReplica and ErrNotSent", ok, err)
	}
	server.Exec("SET GLOBAL read_only = 0;")
	if ok, err := s.CAS(t.Context(), "a", []byte("1"), []byte("2")); !ok || err != nil {
		t.Errorf("CAS = %v, %v, want it applied", ok, err)
	}
	// A user who may still write, over an earlier connection.
	server.Exec("GRANT READ ONLY ADMIN ON *.* TO " + sqltest.User + "@'127.0.0.1';")
	s = open(t, server.URL())
	server.Exec("SET GLOBAL read_only = 1;")
	if ok, err := s.CAS(t.Context(), "a", []byte("2"), []byte("3")); ok || !errors.Is(err, sqlstore.ErrReplica) || errors.Is(err, grant.ErrNotSent) {
		t.Errorf("CAS of a user who may write to a read-only server = %v, %v, want ErrReplica and an unknown result", ok, err)
	}
}

// TestUnfit: a server that would lose what is committed, or that is a replica,
// is refused.
func TestUnfit(t *testing.T) {
	for _, test := range []struct {
		name  string
		start func(testing.TB, ...string) *sqltest.Server
		with  string // settings
		words string
	}{
		{"postgres without fsync", sqltest.PostgreSQL, "fsync=off", "fsync is off"},
		{"mysql that flushes later", sqltest.MariaDB, "innodb-flush-log-at-trx-commit=2", "innodb_flush_log_at_trx_commit is 2"},
		{"mysql that does not wait for the disk", sqltest.MariaDB, "innodb-flush-method=nosync", "innodb_flush_method is nosync"},
		{"mysql that is read-only", sqltest.MariaDB, "read-only=1", "read-only"},
		{"mysql with a log that is flushed later", sqltest.MariaDB, "log-bin sync-binlog=0", "sync_binlog is 0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := test.start(t, strings.Fields(test.with)...)
			err := faultOf(t, server.URL("create=true"))
			if err == nil || !strings.Contains(err.Error(), test.words) {
				t.Errorf("%v, want %q", err, test.words)
			}
		})
	}
}

func TestRedact(t *testing.T) {
	for text, want := range map[string]string{
		"etcd://a,b/p":                                   "etcd://a,b/p",
		"postgres://u:hunter2@h/d":                       "postgres://u:xxxxx@h/d",
		"postgres://u:hunter2/x@h/d":                     "postgres://u:xxxxx@h/d",
		"postgres://u:hun@ter2@h/d":                      "postgres:…",
		"mysql://u@h/d?password=hunter2&a=b":             "mysql://u@h/d?password=xxxxx&a=b",
		"mysql://u@h/d?password-file=/etc/pw":            "mysql://u@h/d?password-file=/etc/pw",
		"s3://ids/p?endpoint=http://h:1&path-style=true": "s3://ids/p?endpoint=http://h:1&path-style=true",
		"s3://u:hunter2@ids/p":                           "s3://u:xxxxx@ids/p",
		"nonsense://u:hunter2@":                          "nonsense://u:xxxxx@",
		"redis:hunter2":                                  "redis:…",
		"postgres://u:hunter2":                           "postgres:…",
		"postgres://u:hunter2/x":                         "postgres:…",
		"postgres://u@h:hunter2/d":                       "postgres:…",
		"postgres://a:1,b:2/d?sslmode=x":                 "postgres://a:1,b:2/d?sslmode=x",
		"postgres://a:1,u:hunter2/d":                     "postgres:…",
		"mysql://u:hunter2@[::1]:3306/d":                 "mysql://u:xxxxx@[::1]:3306/d",
		"postgres://h/d?%70assword=hunter2":              "postgres://h/d?%70assword=xxxxx",
		"postgres://h/d?pasword=hunter2":                 "postgres://h/d?pasword=xxxxx",
		"postgres://h/d?password=hun@ter2":               "postgres:…",
		"postgres//u:hunter2@h/d":                        ":…",
		"hunter2@h":                                      ":…",
		"dir:/a@b":                                       "dir:/a@b",
		"/var/lib/firn":                                  "/var/lib/firn",
		"dir:/var/lib/firn?create=true":                  "dir:/var/lib/firn?create=true",
	} {
		if got := stores.Redact(text); got != want {
			t.Errorf("Redact(%q) = %q, want %q", text, got, want)
		}
	}
}

// FuzzRedact: a password is not shown, whatever stands around it.
func FuzzRedact(f *testing.F) {
	for _, scheme := range []string{"etcd", "kubernetes", "mysql", "postgres", "postgresql"} {
		f.Add(scheme+"://u", "a", "b", "@h:1/d?a=b")
		f.Add(scheme+"//u", "/", "?", "@[::1]")
		f.Add(scheme+"://u@h/d?password=", "@", ":", "")
		f.Add(scheme+"://u", "", "/x", "")
	}
	f.Fuzz(func(t *testing.T, user, a, b, rest string) {
		const secret = "hunter2"
		if strings.Contains(user+rest, secret) || strings.HasPrefix(user, "dir:") || !strings.HasPrefix(rest, "@") {
			return
		}
		for _, url := range []string{
			user + ":" + a + secret + b + rest,
			"mysql://" + user + ":" + a + secret + b + rest,
		} {
			if got := stores.Redact(url); strings.Contains(got, secret) {
				t.Errorf("Redact(%q) = %q", url, got)
			}
		}
	})
}

// TestPasswords: errors do not show what is, or may be, a password.
func TestPasswords(t *testing.T) {
	for _, url := range []string{
		"postgres://u:hunter2", "postgres://u:hunter2/d", "mysql://u:hunter2/d", "etcd://u:hunter2", "postgres://u@h:hunter2/d",
		"postgres://h/d?password=hunter2&sslmode=maybe", "postgres://h/d?%70assword=hunter2&sslmode=maybe",
		"postgres://u@127.0.0.1:1/d?password=hunter2", "mysql://u@h/d?password=hunter2", "postgres//u:hunter2@h", "postgresql//hunter2@h/d",
		"mysql://u:hunter2@h:99999/d", "postgres://u:hunter2%@h/d", "etcd://u:hunter2%@h", "hunter2@h", "dir://u:hunter2@h",
		"postgres://u:hunter2@127.0.0.1:1/d?sslmode=maybe", "mysql://u:hunter2@127.0.0.1:1/d", "postgres://u:hunter2/x@h/d", "etcd://u:hunter2@127.0.0.1:1?timeout=300ms",
	} {
		err := faultOf(t, url)
		var e *stores.Error
		if !errors.As(err, &e) || strings.Contains(err.Error()+e.Hint, "hunter2") || strings.Contains(err.Error()+e.Hint, "\n") {
			t.Errorf("%s: %v (%+v)", url, err, e)
		}
	}
}

// TestURLs: errors in a URL are reported before any request.
func TestURLs(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nonexistent")
	t.Setenv("HOME", "/nonexistent")
	for _, test := range []struct{ url, words string }{
		{"redis://h", "Redis cannot be a store"},
		{"etcd:h", "unknown kind of store"},
		{"s3://u:hunter2@ids", "must not contain a user"},
		{"s3://localhost:9000/ids", "looks like an address"},
		{"s3://ids?tls=true", "unknown parameter"},
		{"s3://ids?path-style=maybe", "must be true or false"},
		{"s3://ids--use1-az4--x-s3", "directory bucket"},
		{"etcd://", "a host is missing"},
		{"etcd://a,,b", "a host is missing"},
		{"etcd://a:0", "not HOST:PORT"},
		{"etcd://::1", "not HOST:PORT"},
		{"etcd://a/../b", "prefix"},
		{"etcd://a?tsl=true", `unknown parameter "tsl"`},
		{"etcd://a?ca=x", "need TLS"},
		{"etcd://a?tls=true&ca=/nowhere", "no such file"},
		{"etcd://a?tls=true&cert=/nowhere", "are needed together"},
		{"etcd://u@a", "set both the user and the password"},
		{"mysql://u@h", "the database after the host is missing"},
		{"mysql://u@a,b/d", "2 hosts are given"},
		{"mysql://u@h/d?socket=/s", "a host and a socket"},
		{"mysql://u@h/d?a=1&a=2", "given twice"},
		{"postgres://u:p%@h/d", "two hex digits"},
		{"postgres://u:a/b@h/d", "there is an @"},
		{"postgres:///d", "the host is missing"},
		{"postgres://u@h", "the database after the host is missing"},
		{"postgres://u@h/?sslmode=disable", "the database after the host is missing"},
		{"postgres://h:notaport/d", "not HOST:PORT"},
		{"postgres://h/d?sslmode=maybe", "sslmode"},
		{"postgres://h/d?password-file=/nowhere", "no such file"},
		{"postgres://h/d?dbname=e", `parameter "dbname" is not allowed`},
		{"postgres://h/?database=e", `parameter "database" is not allowed`},
		{"postgres://u@h/d?user=v", `parameter "user" is not allowed`},
		{"postgres://h/d?host=i", `parameter "host" is not allowed`},
		{"postgres://h/d?port=1", `parameter "port" is not allowed`},
		{"postgres://h/d?service=s", `parameter "service" is not allowed`},
		{"postgres://u:p@h/d?password=q", "before the @ and as a parameter"},
		{"mysql://u@h/d?dbname=e", `unknown parameter "dbname"`},
		{"mysql://u@h/d?table=", "table has no value"},
		{"etcd://a?prefix=b", `unknown parameter "prefix"`},
		{"kubernetes://user:secret@ids", "a user or a password"},
		{"kubernetes://10.0.0.1:6443", "looks like an address"},
		{"kubernetes://IDS", `namespace "IDS"`},
		{"kubernetes://ids/Prod", `prefix "Prod"`},
		{"kubernetes://ids?namespace=other", `unknown parameter "namespace"`},
		{"kubernetes://ids?context=", "context has no value"},
		{"kubernetes://ids?context=a", `context "a" does not exist`},
		{"kubernetes://ids?kubeconfig=/nonexistent", "/nonexistent"},
		{"kubernetes://ids?timeout=-1s", "timeout"},
		{"dir:/a?create=true&create=false", "create is given twice"},
		{"dir:/a?create", "create has no value"},
	} {
		err := faultOf(t, test.url)
		if err == nil || !strings.Contains(err.Error(), test.words) {
			t.Errorf("%s: %v, want %q", test.url, err, test.words)
		}
		var e *stores.Error
		if err := stores.Check(test.url); !errors.As(err, &e) || !strings.Contains(e.Error(), test.words) {
			t.Errorf("Check of %s: %v, want %q", test.url, err, test.words)
		}
	}
	for _, test := range []struct{ url, words string }{
		{"kubernetes://", ""},
		{"kubernetes:///prod", ""},
		{"kubernetes://ids/prod/eu?timeout=2s", ""},
		{"etcd://a,b:2379/firn", ""},
		{"mysql://u:p@h/d?table=ids&create=true", ""},
		{"postgresql://u:p@h,i/d?sslmode=require&timeout=3s", ""},
		{"postgres://u@/d?host=/run/postgresql&port=5433&password=p", ""},
		{"mysql://u:hunter2@h/d?table=a-b", "a-z, 0-9 and _"},
		{"postgres://u:hunter2@h/d?table=a-b", "a-z, 0-9 and _"},
		{"postgres://u:hunter2@h/d?password-file=x", "a password and a password-file"},
	} {
		err := stores.Check(test.url)
		if (err == nil) != (test.words == "") || err != nil && (!strings.Contains(err.Error(), test.words) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("Check of %s: %v, want %q", stores.Redact(test.url), err, test.words)
		}
	}
}
