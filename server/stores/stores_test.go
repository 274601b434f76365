//go:build unix

package stores_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/storetest"
	"github.com/firnid/firn/server/stores"
	"github.com/firnid/firn/server/stores/sqltest"
)

func open(t *testing.T, url string) grant.Store {
	t.Helper()
	s, err := stores.Open(t.Context(), url, stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestDatabases: the contract of a store, over real servers; then what is said of
// one that cannot be used; then kills while a counter is raised.
func TestDatabases(t *testing.T) {
	for kind, start := range sqltest.Both() {
		t.Run(kind, func(t *testing.T) {
			server := start(t)
			t.Run("store", func(t *testing.T) {
				tables := make(map[grant.Store]string)
				openTable := func(t *testing.T, table string) grant.Store {
					s := open(t, server.URL("create=true", "table="+table))
					tables[s] = table
					return s
				}
				storetest.RunWith(t, func(t *testing.T) grant.Store {
					return openTable(t, fmt.Sprintf("t%d", len(tables)))
				}, &storetest.Options{
					Reopen: func(t *testing.T, first grant.Store) grant.Store { return openTable(t, tables[first]) },
				})
			})
			t.Run("create at once", func(t *testing.T) { createAtOnce(t, server) })
			t.Run("faults", func(t *testing.T) { faults(t, server) })
			t.Run("kills", func(t *testing.T) { kills(t, kind, server) })
		})
	}
}

// createAtOnce: many that make the table at the same time all get the same one.
func createAtOnce(t *testing.T, server *sqltest.Server) {
	var all sync.WaitGroup
	var names sync.Map
	for range 8 {
		all.Go(func() {
			s, err := stores.Open(t.Context(), server.URL("create=true", "table=together"), stores.Options{})
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

// faults: each is said in a line, without the password.
func faults(t *testing.T, server *sqltest.Server) {
	scheme, rest, _ := strings.Cut(server.URL(), "://")
	at := func(user, password, address, database, query string) string {
		return fmt.Sprintf("%s://%s:%s@%s/%s%s", scheme, user, password, address, database, query)
	}
	_ = rest
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(sqltest.Password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	secret := "secret%3A%2F%40%3F"
	for _, test := range []struct{ url, words, hint string }{
		{at("firn", "hunter2", server.Address(), "ids", ""), `refuses user "firn"`, "password"},
		{at("nobody", "hunter2", server.Address(), "ids", ""), `refuses user "nobody"`, "password"},
		{at("firn", secret, server.Address(), "nothing", ""), `"nothing"`, ""},
		{at("firn", secret, "127.0.0.1:1", "ids", ""), "refused", "is it running"},
		{at("firn", secret, server.Address(), "ids", "?table=absent"), "there is no table absent", "create=true"},
		{at("firn", secret, server.Address(), "ids", "?table=a-b"), "a-z, 0-9 and _", ""},
		{at("firn", secret, server.Address(), "ids", "?create=perhaps"), "true or false", ""},
		{at("firn", secret, server.Address(), "ids", "?timeout=5"), `timeout is "5"`, "5s"},
		{at("firn", secret, server.Address(), "ids", "?password-file="+file), "a password and a password-file", "leave one"},
	} {
		s, err := stores.Open(t.Context(), test.url, stores.Options{})
		var e *stores.Error
		if !errors.As(err, &e) || !strings.Contains(e.Error(), test.words) || !strings.Contains(e.Hint, test.hint) {
			t.Errorf("%s: %v, want %q with the hint %q", stores.Redact(test.url), err, test.words, test.hint)
		}
		if err == nil {
			_ = s.Close()
			continue
		}
		for _, part := range []string{err.Error(), e.Hint} {
			if strings.Contains(part, "hunter2") || strings.Contains(part, "secret") || strings.Contains(part, "\n") {
				t.Errorf("%q has the password, or several lines", part)
			}
		}
	}
	url := fmt.Sprintf("%s://firn@%s/ids?create=true&password-file=%s", scheme, server.Address(), file)
	open(t, url) // the password comes from the file
}

// kills: while eight raise a counter, the server is killed and started again. No
// increment that was acknowledged is lost, and none that was refused is applied.
func kills(t *testing.T, kind string, server *sqltest.Server) {
	lasts := 6 * time.Second
	if testing.Short() {
		lasts = 2 * time.Second
	}
	url := server.URL("create=true", "table=kills", "timeout=30s")
	s := open(t, url)
	const key = "counter"
	ctx, stop := context.WithCancel(t.Context())
	var acknowledged, certain, unknown atomic.Int64
	var members sync.WaitGroup
	for i := range 8 {
		members.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				call, cancel := context.WithTimeout(ctx, time.Second)
				old, err := s.Get(call, key)
				if err != nil {
					cancel()
					continue
				}
				count := 0
				if old != nil {
					text, _, _ := strings.Cut(string(old), " ")
					if count, err = strconv.Atoi(text); err != nil {
						t.Errorf("the value is %q", old)
					}
				}
				ok, err := s.CAS(call, key, old, fmt.Appendf(nil, "%d %d-%d", count+1, i, n))
				cancel()
				switch {
				case ok:
					acknowledged.Add(1)
				case errors.Is(err, grant.ErrNotSent):
					certain.Add(1)
				case err != nil:
					unknown.Add(1)
				}
			}
		})
	}
	times := 0
	for begin := time.Now(); time.Since(begin) < lasts; times++ {
		before := acknowledged.Load()
		for acknowledged.Load() < before+50 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
			if time.Since(begin) > time.Minute {
				t.Fatal("nothing is acknowledged any more")
			}
		}
		server.Kill()
		server.Start()
	}
	stop()
	members.Wait()
	var value []byte
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		var err error
		if value, err = s.Get(t.Context(), key); err == nil {
			break
		}
		if time.Since(begin) > time.Minute {
			t.Fatal(err)
		}
	}
	text, _, _ := strings.Cut(string(value), " ")
	count, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if least, most := acknowledged.Load(), acknowledged.Load()+unknown.Load(); count < least || count > most {
		t.Errorf("the counter is %d, and it was raised %d to %d times", count, least, most)
	}
	t.Logf("report: %s killed %d times: %d increments acknowledged, %d certainly not, %d unknown of which %d applied", kind, times,
		acknowledged.Load(), certain.Load(), unknown.Load(), count-acknowledged.Load())
}

// TestUnfit: a server that would lose what is committed, or that is a replica, is
// refused.
func TestUnfit(t *testing.T) {
	for _, test := range []struct {
		name  string
		start func(testing.TB, ...string) *sqltest.Server
		with  string
		words string
	}{
		{"postgres without fsync", sqltest.PostgreSQL, "fsync=off", "fsync is off"},
		{"postgres that commits later", sqltest.PostgreSQL, "synchronous_commit=off", "synchronous_commit is off"},
		{"mysql that flushes later", sqltest.MariaDB, "innodb-flush-log-at-trx-commit=2", "innodb_flush_log_at_trx_commit is 2"},
		{"mysql that is read-only", sqltest.MariaDB, "read-only=1", "read-only"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := test.start(t, test.with)
			s, err := stores.Open(t.Context(), server.URL("create=true"), stores.Options{})
			if err == nil {
				_ = s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), test.words) {
				t.Errorf("%v, want %q", err, test.words)
			}
		})
	}
}

func TestRedact(t *testing.T) {
	for text, want := range map[string]string{
		"etcd://a,b/p":                        "etcd://a,b/p",
		"postgres://u:hunter2@h/d":            "postgres://u:xxxxx@h/d",
		"postgres://u:hunter2/x@h/d":          "postgres://u:xxxxx@h/d",
		"postgres://u:hun@ter2@h/d":           "postgres://u:xxxxx@h/d",
		"mysql://u@h/d?password=hunter2&a=b":  "mysql://u@h/d?password=xxxxx&a=b",
		"mysql://u@h/d?password-file=/etc/pw": "mysql://u@h/d?password-file=/etc/pw",
		"nonsense://u:hunter2@":               "nonsense://u:xxxxx@",
		"redis:hunter2":                       "redis:…",
		"dir:/var/lib/firn?create=true":       "dir:/var/lib/firn?create=true",
	} {
		if got := stores.Redact(text); got != want {
			t.Errorf("Redact(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestURLs: what is wrong with a URL is said before anything is asked.
func TestURLs(t *testing.T) {
	for _, test := range []struct{ url, words string }{
		{"redis://h", "no such kind of store"},
		{"etcd:h", "no such kind of store"},
		{"etcd://", "a host is missing"},
		{"etcd://a,,b", "a host is missing"},
		{"etcd://a:0", "not HOST:PORT"},
		{"etcd://::1", "not HOST:PORT"},
		{"etcd://a/../b", "prefix"},
		{"etcd://a?tsl=true", `no parameter "tsl"`},
		{"etcd://a?ca=x", "are for TLS"},
		{"etcd://a?tls=true&ca=/nowhere", "no such file"},
		{"etcd://a?tls=true&cert=/nowhere", "belong together"},
		{"etcd://u@a", "belong together"},
		{"mysql://u@h", "no database"},
		{"mysql://u@a,b/d", "there are 2 hosts"},
		{"mysql://u@h/d?socket=/s", "a host and a socket"},
		{"mysql://u@h/d?a=1&a=2", "said twice"},
		{"postgres://u:p%@h/d", "two hex digits"},
		{"postgres://u:a/b@h/d", "there is an @"},
		{"postgres:///d", "there is no host"},
		{"postgres://h:notaport/d", "port"},
		{"postgres://h/d?sslmode=maybe", "sslmode"},
		{"postgres://h/d?password-file=/nowhere", "no such file"},
	} {
		s, err := stores.Open(t.Context(), test.url, stores.Options{})
		if err == nil {
			_ = s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), test.words) {
			t.Errorf("%s: %v, want %q", test.url, err, test.words)
		}
	}
}
