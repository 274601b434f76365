package sqlstore

import (
	"context"
	"crypto/x509"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/storetest"
	"github.com/firnid/firn/internal/test/calls"
	"github.com/firnid/firn/internal/test/history"
	"github.com/firnid/firn/internal/test/must"
)

// TestStore: the statements and how their results are evaluated, with a
// database that is a map. Package stores in the module server tests with real
// ones.
func TestStore(t *testing.T) {
	databases := make(map[grant.Store]*fake)
	open := func(t *testing.T, f *fake) grant.Store {
		s := f.store(t)
		databases[s] = f
		return s
	}
	storetest.Run(t,
		func(t *testing.T) grant.Store { return open(t, newFake()) },
		func(t *testing.T, first grant.Store) grant.Store { return open(t, databases[first]) })
}

// TestUnknown: how each kind of failure of a CAS is evaluated, and whether the
// CAS is sent again.
func TestUnknown(t *testing.T) {
	const applied, unknown, notSent = history.Applied, history.Unknown, history.NotSent
	const conflict, deadlock = fakeError("40001"), fakeError("40P01")
	lost, dead := errors.New("connection reset"), driver.ErrBadConn
	type answers []error // of the attempts, in order; the last one repeats
	for _, test := range []struct {
		name    string
		what    string // what is answered
		answers answers
		applied int // the attempt that is applied, whatever its answer
		want    history.Outcome
		value   string // the final value of the key
		tries   int
	}{
		{"nobody there", "CONNECT", answers{lost}, 0, notSent, "0", 1},
		{"lost before it was applied", "UPDATE", answers{lost}, 0, unknown, "0", 1},
		{"answer lost", "UPDATE", answers{lost}, 1, unknown, "1", 1},
		{"conflict", "UPDATE", answers{conflict}, 0, notSent, "0", 1 + maxAgain},
		{"deadlock", "UPDATE", answers{deadlock}, 0, notSent, "0", 1 + maxAgain},
		{"conflict, then not", "UPDATE", answers{conflict, conflict, conflict, conflict, nil}, 0, applied, "1", 5},
		{"conflict, and lost", "UPDATE", answers{conflict, conflict, lost}, 3, unknown, "1", 3},
		{"waited for a lock", "UPDATE", answers{fakeError("55P03")}, 0, notSent, "0", 1},
		{"read only", "UPDATE", answers{fakeError("25006")}, 0, notSent, "0", 1},
		{"shut down", "UPDATE", answers{fakeError("57P01")}, 1, unknown, "1", 1},
		{"disk full", "UPDATE", answers{fakeError("53100")}, 0, unknown, "0", 1},
		{"one dead connection", "UPDATE", answers{dead, nil}, 0, applied, "1", 2},
		{"all are dead", "UPDATE", answers{dead}, 0, unknown, "0", 4},
		{"a driver that is wrong", "UPDATE", answers{dead, nil}, 1, unknown, "1", 2},
		{"refused, after one that was dead", "UPDATE", answers{dead, fakeError("42501")}, 0, unknown, "0", 2},
		{"conflict, after one that was dead", "UPDATE", answers{dead, conflict}, 0, unknown, "0", 2 + maxAgain},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake()
			s := f.store(t)
			calls.CAS(t, s, "a", "", "0")
			s.db.SetMaxIdleConns(0) // so that each attempt connects
			tries := 0
			f.on(func(what string, apply func()) error {
				if what != test.what {
					return nil
				}
				if tries++; tries == test.applied {
					apply()
				}
				return test.answers[min(tries, len(test.answers))-1]
			})
			ok, err := s.CAS(t.Context(), "a", []byte("0"), []byte("1"))
			f.on(nil)
			if got := history.OutcomeOf(ok, err); got != test.want || tries != test.tries {
				t.Errorf("CAS is %v (%v) after %d tries, want %v after %d", got, err, tries, test.want, test.tries)
			}
			calls.Get(t, s, "a", test.value)
		})
	}
}

// TestOpen: a problem with a database is reported, and the database is not used.
func TestOpen(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(f *fake, o *Options)
		want  error
		words string
	}{
		{"no table", func(f *fake, o *Options) { o.Create = false }, ErrNoTable, "firn_grants"},
		{"replica", func(f *fake, _ *Options) { f.replica = true }, ErrReplica, "primary"},
		{"fsync", func(f *fake, _ *Options) { f.settings[0] = "off" }, grant.ErrUnfit, "fsync = on"},
		{"pages", func(f *fake, _ *Options) { f.settings[1] = "off" }, grant.ErrUnfit, "full_page_writes = on"},
		{"session", func(f *fake, _ *Options) { f.settings[2] = "on" }, ErrReplica, "default_transaction_read_only"},
		{"unlogged", func(f *fake, _ *Options) { f.kind = "u" }, grant.ErrUnfit, "is unlogged"},
		{"a copy", func(f *fake, _ *Options) { f.copied = true }, ErrReplica, "is a copy"},
		{"name", func(_ *fake, o *Options) { o.Table = "a; DROP TABLE b" }, grant.ErrOptions, "a-z, 0-9 and _"},
		{"deep name", func(_ *fake, o *Options) { o.Table = "a.b.c" }, grant.ErrOptions, "a-z, 0-9 and _"},
		{"emptied", func(f *fake, o *Options) { f.rows = map[string]fakeRow{}; o.Create = false }, grant.ErrUnfit, "emptied"},
		{"nobody there", func(f *fake, _ *Options) { f.fails(&net.OpError{Op: "dial", Err: errors.New("refused")}) }, grant.ErrUnreachable, "refused"},
		{"silent", func(f *fake, _ *Options) { f.fails(context.DeadlineExceeded) }, grant.ErrUnreachable, "deadline"},
		{"hangs up", func(f *fake, _ *Options) { f.fails(io.ErrUnexpectedEOF) }, grant.ErrUnreachable, "EOF"},
		{"starting", func(f *fake, _ *Options) { f.fails(fakeError("57P03")) }, grant.ErrUnreachable, "57P03"},
		{"stopping, after some statements", func(f *fake, _ *Options) {
			f.fault = func(what string, _ func()) error {
				if what == "INSERT" {
					return fakeError("57P01")
				}
				return nil
			}
		}, grant.ErrUnreachable, "57P01"},
		{"wrong password", func(f *fake, _ *Options) { f.fails(fakeError("28P01")) }, nil, "28P01"},
		{"closed pipe", func(f *fake, _ *Options) { f.fails(io.ErrClosedPipe) }, nil, "closed pipe"},
		{"another authority", func(f *fake, _ *Options) {
			f.fails(&net.OpError{Op: "remote error", Err: x509.UnknownAuthorityError{}})
		}, nil, "unknown authority"},
		{"identity lost", func(f *fake, o *Options) { f.rows = map[string]fakeRow{"a": {[]byte("1"), 1}} }, grant.ErrUnfit, "emptied"},
	} {
		f := newFake()
		o := &Options{Create: true}
		test.spoil(f, o)
		db := f.open()
		_, err := openStore(t.Context(), db, PostgreSQL(), o)
		if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.words) ||
			errors.Is(err, grant.ErrUnreachable) != (test.want == grant.ErrUnreachable) {
			t.Errorf("%s: %v, want %v with %q", test.name, err, test.want, test.words)
		}
		_ = db.Close()
	}
}

// TestBecomesUnfit: a database that Open would reject by now fails all calls from
// the next check on, until it is right again.
func TestBecomesUnfit(t *testing.T) {
	for _, test := range []struct {
		name       string
		spoil, fix func(f *fake)
		want       error
	}{
		{"fsync", func(f *fake) { f.settings[0] = "off" }, func(f *fake) { f.settings[0] = "on" }, grant.ErrUnfit},
		{"unlogged", func(f *fake) { f.kind = "u" }, func(f *fake) { f.kind = "p" }, grant.ErrUnfit},
		{"a copy", func(f *fake) { f.copied = true }, func(f *fake) { f.copied = false }, ErrReplica},
		// It may be the server that was replaced, over an old connection.
		{"read-only", func(f *fake) { f.settings[2] = "on" }, nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				change := func(how func(*fake)) {
					f.set(func() { how(f) })
					time.Sleep(11 * time.Second)
					synctest.Wait()
				}
				s := f.store(t)
				if change(test.spoil); test.want != nil {
					calls.NotSent(t, s, "a", "", "1", test.want)
					_, err := s.Get(t.Context(), "a")
					calls.Error(t, "Get", err, test.want)
					change(test.fix)
				}
				calls.Get(t, s, "a", "")
				calls.CAS(t, s, "a", "", "1")
			})
		})
	}
}

// TestReplica: a database that becomes a replica returns no stale values.
func TestReplica(t *testing.T) {
	f := newFake()
	s := f.store(t)
	calls.CAS(t, s, "a", "", "1")
	f.set(func() { f.replica = true })
	for _, key := range []string{"a", "absent"} {
		for what, err := range calls.Reads(t, s, key) {
			calls.Error(t, what+" of a replica", err, ErrReplica)
		}
	}
	if value, _ := s.Get(t.Context(), "a"); value != nil {
		t.Errorf("Get of a replica = %q, want no value", value)
	}
}

// TestFailover: a connection to a former primary is discarded, and another one
// is used.
func TestFailover(t *testing.T) {
	f := newFake()
	s := f.store(t)
	calls.CAS(t, s, "a", "", "1")
	connects := 0
	f.replica = true // as far as the idle connection knows
	f.on(func(what string, _ func()) (err error) {
		f.set(func() {
			switch {
			case what == "CONNECT":
				connects++
				f.replica = false
			case f.replica && what == "UPDATE":
				err = fakeError("25006")
			}
		})
		return err
	})
	calls.Get(t, s, "a", "1")
	f.set(func() { f.replica = true })
	calls.NotSent(t, s, "a", "1", "2", ErrReplica)
	calls.CAS(t, s, "a", "1", "2")
	if connects != 2 {
		t.Errorf("%d connections, want one for Get and one for the second CAS", connects)
	}
}

// TestReads: reads are repeated if the connection was dead, or after conflicts
// with others.
func TestReads(t *testing.T) {
	for _, first := range []error{driver.ErrBadConn, fakeError("40001")} {
		f := newFake()
		s := f.store(t)
		calls.CAS(t, s, "a", "", "1")
		for what, read := range map[string]func() (string, error){
			"Get": func() (string, error) { v, err := s.Get(t.Context(), "a"); return string(v), err },
			"GetMany": func() (string, error) {
				v, err := s.GetMany(t.Context(), []string{"a"})
				return string(slices.Concat(v...)), err
			},
			"List": func() (got string, err error) {
				err = s.List(t.Context(), "", func(_ string, v []byte) bool { got += string(v); return true })
				return got, err
			},
			"Lineage": func() (string, error) { _, _, err := s.Lineage(t.Context()); return "1", err },
			"Time":    func() (string, error) { _, _, err := s.Time(t.Context()); return "1", err },
		} {
			failed := false
			f.on(func(what string, _ func()) error {
				if what == "SELECT" && !failed {
					failed = true
					return first
				}
				return nil
			})
			if got, err := read(); got != "1" || err != nil || !failed {
				t.Errorf("%s after %v = %q, %v, want 1", what, first, got, err)
			}
		}
	}
}

// TestEmptyValue: an empty value counts as damaged. Otherwise the key would
// look absent.
func TestEmptyValue(t *testing.T) {
	f := newFake()
	s := f.store(t)
	calls.CAS(t, s, "a", "", "1")
	calls.CAS(t, s, "k", "", "x")
	f.rows["k"] = fakeRow{value: []byte{}, n: 2}
	calls.Damaged(t, s, "k", "a", "empty value")
}

// TestSharedDatabase: Close does not close a database that it does not own.
func TestSharedDatabase(t *testing.T) {
	db := newFake().open()
	defer db.Close()
	s := must.Get(openStore(t.Context(), db, PostgreSQL(), &Options{Create: true}))(t)
	must.Do(t, s.Close())
	if err := db.PingContext(context.Background()); err != nil {
		t.Errorf("the database: %v", err)
	}
}

// TestLeftOpen: a CAS on a connection that its last user left inside a
// transaction is not committed, and so not applied. The connection is not used
// again.
func TestLeftOpen(t *testing.T) {
	f := newFake()
	s := f.store(t)
	conn := must.Get(s.db.Conn(t.Context()))(t)
	err := conn.Raw(func(driverConn any) error { _, err := driverConn.(*fakeConn).Begin(); return err })
	must.Do(t, errors.Join(err, conn.Close()))
	calls.Unknown(t, s, "a", "", "1", "inside a transaction")
	calls.CAS(t, s, "b", "", "1") // on another connection
}

// TestReason: an attempt that the context ends does not hide why the attempt
// before it failed.
func TestReason(t *testing.T) {
	for what, call := range map[string]func(context.Context, *store) error{
		"Get": func(ctx context.Context, s *store) error { _, err := s.Get(ctx, "a"); return err },
		"CAS": func(ctx context.Context, s *store) error { _, err := s.CAS(ctx, "a", nil, []byte("1")); return err },
	} {
		f := newFake()
		s := f.store(t)
		ctx, cancel := context.WithCancel(t.Context())
		f.on(func(what string, _ func()) error {
			if what != "CONNECT" {
				return driver.ErrBadConn
			}
			cancel()
			return ctx.Err()
		})
		calls.Error(t, what, call(ctx, s), context.Canceled, driver.ErrBadConn)
	}
}
