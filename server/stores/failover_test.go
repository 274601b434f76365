//go:build unix

package stores_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/sqlstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/proc"
	"github.com/firnid/firn/server/internal/test/sqltest"
)

// TestMain lets the tests of failovers run side by side on a machine with few
// processors too: they wait most of the time, each for servers of its own.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "5"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// synchronous starts a PostgreSQL that waits for a standby, and the standby.
func synchronous(t *testing.T) (primary, standby *sqltest.Server) {
	primary = sqltest.PostgreSQL(t)
	standby = primary.Standby()
	primary.Exec("ALTER SYSTEM SET synchronous_standby_names = '*';\nSELECT pg_reload_conf();\n")
	must.Await(t, func() bool {
		return primary.Query("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == "1"
	}, "the standby is synchronous")
	return primary, standby
}

// waiting are the processes of a PostgreSQL in which a commit of Firn's waits.
const waiting = "FROM pg_stat_activity WHERE usename = 'firn' AND wait_event = 'SyncRep'"

// A cut ends a commit's wait for the standby.
type cut struct {
	name string
	sql  string // at the primary, as often as it takes; "" where the context ends it
}

var cuts = []cut{
	{"timeout", ""},
	{"pg_cancel_backend", "SELECT pg_cancel_backend(pid) " + waiting},
	{"pg_terminate_backend", "SELECT pg_terminate_backend(pid) " + waiting},
}

// TestCutWaits: a commit whose wait for the standby is cut short, in any way,
// has an unknown result, is visible, and is lost by a failover. What a CAS
// settles is not.
func TestCutWaits(t *testing.T) {
	t.Parallel()
	primary, standby := synchronous(t)
	if err := faultOf(t, standby.URL()); !errors.Is(err, sqlstore.ErrReplica) {
		t.Errorf("a standby: %v, want ErrReplica", err)
	}
	// Which would hide the warning, and not wait.
	primary.Exec("ALTER ROLE firn SET client_min_messages = error;\nALTER ROLE firn SET synchronous_commit = local;\n")
	s := open(t, primary.URL("create=true"))
	cas := func(s grant.Store, key, old, next string) {
		t.Helper()
		var from []byte
		if old != "" {
			from = []byte(old)
		}
		if ok, err := s.CAS(t.Context(), key, from, []byte(next)); !ok || err != nil {
			t.Fatalf("CAS(%q, %q, %q) = %v, %v", key, old, next, ok, err)
		}
	}
	value := func(s grant.Store, key string) string {
		t.Helper()
		v, err := s.Get(t.Context(), key)
		if err != nil {
			t.Fatalf("Get(%q) = %v", key, err)
		}
		return string(v)
	}
	for _, c := range cuts {
		for _, what := range []string{"settled", "read"} {
			cas(s, what+"/"+c.name, "", "0")
		}
	}

	cutShort := func(c cut, key, old, next string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), must.Patience)
		defer cancel()
		done := make(chan struct{})
		go func() {
			defer close(done)
			ok, err := s.CAS(ctx, key, []byte(old), []byte(next))
			if ok || err == nil || errors.Is(err, grant.ErrNotSent) {
				t.Errorf("%s: CAS = %v, %v, want an unknown result", c.name, ok, err)
			}
		}()
		must.Await(t, func() bool { return primary.Query("SELECT count(*) "+waiting) == "1" }, "the commit waits")
		if c.sql == "" {
			cancel()
		} else {
			primary.Exec(c.sql)
		}
		<-done
		// The server shows it once it has noticed that the client is gone.
		must.Await(t, func() bool { return value(s, key) == next }, "the value is visible")
	}
	standby.Kill()
	for _, c := range cuts {
		cutShort(c, "settled/"+c.name, "0", "1")
	}
	standby.Start()
	for _, c := range cuts {
		cas(s, "settled/"+c.name, "1", "2")
	}
	standby.Kill()
	for _, c := range cuts {
		cutShort(c, "read/"+c.name, "0", "1")
	}

	primary.Stop()
	standby.Start()
	standby.Wait()
	standby.Exec("SELECT pg_promote();\n")
	promoted := open(t, standby.URL())
	for _, c := range cuts {
		if got := value(promoted, "settled/"+c.name); got != "2" {
			t.Errorf("%s: the promoted server has %q, want 2: a CAS has settled it", c.name, got)
		}
		if got := value(promoted, "read/"+c.name); got != "0" {
			t.Errorf("%s: the promoted server has %q, want 0: it is what the test is about", c.name, got)
		}
		cas(promoted, "read/"+c.name, "0", "3")
	}

	// The old primary comes back and does not know. What it shows is old, and
	// what it is asked to write is never known to be durable.
	primary.Continue()
	for _, c := range cuts {
		must.Await(t, func() bool { _, err := s.Get(t.Context(), "read/"+c.name); return err == nil }, "the old primary answers")
		if got := value(s, "read/"+c.name); got != "1" {
			t.Errorf("%s: the old primary has %q, want 1", c.name, got)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if ok, err := s.CAS(ctx, "read/timeout", []byte("1"), []byte("4")); ok || err == nil || errors.Is(err, grant.ErrNotSent) {
		t.Errorf("CAS at the old primary = %v, %v, want an unknown result", ok, err)
	}
	mixed(t, primary, standby)
}

// mixed: a Store behind an address that leads to the old primary and to the new
// one, as after a failover of which a proxy has kept connections, believes the
// new one once it has spoken with it.
func mixed(t *testing.T, old, promoted *sqltest.Server) {
	p := proc.NewLink(t, old.Address())
	s := open(t, strings.Replace(old.URL(), old.Address(), p.Address, 1))
	read := func() string {
		v, err := s.Get(t.Context(), "read/timeout")
		if err != nil {
			t.Errorf("Get = %v", err)
		}
		return string(v)
	}
	if got := read(); got == "3" {
		t.Fatalf("the old primary has %q", got)
	}
	p.Lead(promoted.Address())
	// More at once than there are connections to the old one.
	reads := func(is func(value string)) {
		var readers sync.WaitGroup
		for range 8 {
			readers.Go(func() {
				for range 50 {
					is(read())
				}
			})
		}
		readers.Wait()
	}
	var seen, stale atomic.Int64
	must.Await(t, func() bool {
		reads(func(value string) {
			if value == "3" {
				seen.Add(1)
			}
		})
		return seen.Load() > 0
	}, "a read is answered by the new primary")
	reads(func(value string) {
		if value != "3" {
			stale.Add(1)
		}
	})
	if n := stale.Load(); n > 0 {
		t.Errorf("%d reads were answered by the old primary, after another server was seen to be promoted", n)
	}
}

// checked returns what Check says of a Store, in lines.
func checked(t *testing.T, s grant.Store) string {
	t.Helper()
	dangers, err := s.(grant.Dangers).Dangers(t.Context())
	if err != nil {
		t.Error(err)
	}
	return strings.Join(dangers, "\n")
}

// TestStandbys: Check reports a program that stores the log, and confirms
// commits in place of the standby if the list of standbys names none; and that
// the list was emptied, whereupon commits silently succeed without any.
func TestStandbys(t *testing.T) {
	t.Parallel()
	primary, _ := synchronous(t)
	s := open(t, primary.URL("create=true"))
	if got := checked(t, s); got != "" {
		t.Errorf("Dangers = %q, want nothing", got)
	}
	primary.Archive()
	must.Await(t, func() bool { return strings.Contains(checked(t, s), "pg_receivewal may confirm a commit") }, "it is reported")
	primary.Exec("ALTER SYSTEM SET synchronous_standby_names = '';\nSELECT pg_reload_conf();\n")
	must.Await(t, func() bool { return strings.Contains(checked(t, s), "synchronous_standby_names is empty now") }, "it is reported")
	primary.Exec("ALTER SYSTEM SET synchronous_standby_names = '*';\nALTER SYSTEM SET fsync = off;\nSELECT pg_reload_conf();\n")
	must.Await(t, func() bool {
		got := checked(t, s)
		return !strings.Contains(got, "is empty now") && strings.Contains(got, "fsync is off")
	}, "it is no longer reported")
}

// TestCommitsLater: Firn's statements wait for the disk, even if the role is
// set not to.
func TestCommitsLater(t *testing.T) {
	t.Parallel()
	server := sqltest.PostgreSQL(t, "wal_writer_delay=10s") // or the log would be on disk soon all the same
	s := open(t, server.URL("create=true", "timeout=30s"))
	server.Exec("ALTER ROLE firn SET synchronous_commit = off;\nSELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'firn';\n")
	for i := range 3 {
		var old []byte
		if i > 0 {
			old = fmt.Append(nil, i)
		}
		next := fmt.Append(nil, i+1)
		must.Await(t, func() bool {
			ok, err := s.CAS(t.Context(), "a", old, next)
			return ok && err == nil
		}, "it is applied")
		server.Kill()
		server.Start()
		server.Wait()
		must.Await(t, func() bool { _, err := s.Get(t.Context(), "a"); return err == nil }, "the server answers")
		if value, err := s.Get(t.Context(), "a"); string(value) != string(next) || err != nil {
			t.Fatalf("after a crash the value is %q (%v), want %s", value, err, next)
		}
	}
}

// TestSemiSync: a MariaDB that waits for a replica silently gives it up after a
// while, and a failover then loses acknowledged writes. Check reports
// it, and when it happens.
func TestSemiSync(t *testing.T) {
	t.Parallel()
	primary := sqltest.MariaDB(t, sqltest.ReplicationMariaDB(500)...)
	replica := primary.Standby()
	must.Await(t, func() bool {
		return strings.HasSuffix(primary.Query("SHOW STATUS LIKE 'Rpl_semi_sync_master_clients';"), "\t1")
	}, "the replica is semi-synchronous")
	s := open(t, primary.URL("create=true"))
	if got := checked(t, s); !strings.Contains(got, "stops waiting for a replica after 500 ms") {
		t.Errorf("Dangers = %q, want what semi-synchronous replication does", got)
	}
	faultstore.Put(t, s, "a", "1")
	if got := checked(t, s); strings.Contains(got, "has stopped waiting") {
		t.Errorf("Dangers = %q, and the replica is there", got)
	}
	replica.Kill()
	if ok, err := s.CAS(t.Context(), "a", []byte("1"), []byte("2")); !ok || err != nil {
		t.Errorf("CAS without the replica = %v, %v", ok, err)
	}
	must.Await(t, func() bool { return strings.Contains(checked(t, s), "has stopped waiting for a replica") }, "it is reported")
}

// TestLogicalReplica: a table that a subscription copies from another server is
// refused until that ends, although the server is not in recovery.
func TestLogicalReplica(t *testing.T) {
	t.Parallel()
	server := sqltest.PostgreSQL(t, "wal_level=logical")
	s := open(t, server.URL("create=true"))
	faultstore.Put(t, s, "a", "1")
	host, port, _ := strings.Cut(server.Address(), ":")
	server.Exec(`CREATE DATABASE copy OWNER firn;
\c ids
CREATE PUBLICATION p FOR TABLE firn_grants;
SELECT pg_create_logical_replication_slot('s', 'pgoutput');
CREATE ROLE feed SUPERUSER LOGIN PASSWORD 'feed';
\c copy
CREATE TABLE firn_grants (k varchar(256) COLLATE "C" PRIMARY KEY, v bytea NOT NULL, n bigint NOT NULL);
ALTER TABLE firn_grants OWNER TO firn;
CREATE SUBSCRIPTION s CONNECTION 'host=` + host + ` port=` + port + ` user=feed password=feed dbname=ids' PUBLICATION p WITH (create_slot = false);
`)
	url := strings.Replace(server.URL(), "/"+sqltest.Database, "/copy", 1)
	must.Await(t, func() bool {
		return server.Query("\\c copy\nSELECT count(*) FROM firn_grants;") == "2"
	}, "the copy has the rows")
	must.Await(t, func() bool {
		err := faultOf(t, url)
		return errors.Is(err, sqlstore.ErrReplica) && strings.Contains(err.Error(), "ALTER SUBSCRIPTION … DISABLE")
	}, "the copy is refused")
	// The worker is down while the other server is, and the copy still waits.
	server.Exec("ALTER ROLE feed NOLOGIN;\nSELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'feed';\n")
	must.Await(t, func() bool {
		return server.Query("SELECT count(*) FROM pg_stat_subscription WHERE pid IS NOT NULL") == "0"
	}, "the worker is down")
	if err := faultOf(t, url); !errors.Is(err, sqlstore.ErrReplica) {
		t.Errorf("a copy whose worker is down: %v, want ErrReplica", err)
	}
	server.Exec(`\c copy
ALTER SUBSCRIPTION s DISABLE;
`)
	must.Await(t, func() bool { return faultOf(t, url) == nil }, "the copy can be used")
	// A store that is open notices that it is a copy again.
	later := open(t, url)
	server.Exec(`\c copy
ALTER SUBSCRIPTION s ENABLE;
`)
	must.Await(t, func() bool {
		_, err := later.CAS(t.Context(), "b", nil, []byte("1"))
		return errors.Is(err, sqlstore.ErrReplica) && errors.Is(err, grant.ErrNotSent) && strings.Contains(checked(t, later), "no node ID is acquired or renewed")
	}, "the copy is refused again")
	server.Exec(`\c copy
ALTER SUBSCRIPTION s DISABLE;
ALTER SUBSCRIPTION s SET (slot_name = NONE);
DROP SUBSCRIPTION s;
`)
}

// TestWritableReplica: a MariaDB that replicates and accepts writes causes a
// warning.
func TestWritableReplica(t *testing.T) {
	t.Parallel()
	primary := sqltest.MariaDB(t, sqltest.ReplicationMariaDB(500)...)
	replica := primary.Standby()
	open(t, primary.URL("create=true"))
	must.Await(t, func() bool {
		return replica.Query("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'ids' AND table_name = 'firn_grants';") == "1"
	}, "the replica has the table")
	replica.Exec("SET GLOBAL read_only = 0;")
	takesWrites := func() bool {
		return strings.Contains(checked(t, open(t, replica.URL())), "this MariaDB replicates from another server, or did, and takes writes")
	}
	if !takesWrites() {
		t.Error("Check does not report a replica that takes writes")
	}
	replica.Exec("STOP SLAVE;")
	if !takesWrites() {
		t.Error("Check does not report it while it is stopped")
	}
}
