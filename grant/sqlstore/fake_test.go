package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
)

// A fake is a database with one table, as presented by a driver. It understands
// the statements of PostgreSQL's dialect.
type fake struct {
	mu       sync.Mutex
	rows     map[string]fakeRow // nil while there is no table
	replica  bool
	timeline int64
	settings [3]string // fsync, full_page_writes, transaction_read_only
	kind     string    // of the table, as in relpersistence
	copied   bool      // by a subscription
	standbys string    // synchronous_standby_names
	replicas int64
	others   string   // processes that confirm commits without being standbys
	warned   []string // the warnings that the driver has received; see warnings

	// fault is called before a statement, with its first word, and may make it
	// fail. It applies the statement itself if a test wants that.
	fault func(what string, apply func()) error
}

type fakeRow struct {
	value []byte
	n     int64
}

// A fakeError is an answer of the server.
type fakeError string

func (e fakeError) Error() string    { return "SQLSTATE " + string(e) }
func (e fakeError) SQLState() string { return string(e) }

func newFake() *fake {
	return &fake{settings: [3]string{"on", "on", "off"}, kind: "p", timeline: 1}
}

func (f *fake) open() *sql.DB { return sql.OpenDB(f) }

// set changes the fake.
func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// on sets what happens instead of statements; nil means nothing else.
func (f *fake) on(fault func(what string, apply func()) error) { f.set(func() { f.fault = fault }) }

// fails makes every connection fail.
func (f *fake) fails(err error) { f.on(func(string, func()) error { return err }) }

func (f *fake) Connect(ctx context.Context) (driver.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := f.ask("CONNECT", nil); err != nil {
		return nil, err
	}
	return &fakeConn{f: f}, nil
}

func (f *fake) ask(what string, apply func()) error {
	f.mu.Lock()
	fault := f.fault
	f.mu.Unlock()
	if fault == nil {
		return nil
	}
	return fault(what, apply)
}

func (f *fake) Driver() driver.Driver { return nil }

// A fakeConn is one connection. In a transaction it keeps what it replaced, to
// restore it.
type fakeConn struct {
	f    *fake
	inTx bool
	undo []func()
}

// warnings is Options.Warnings over a fake.
func warnings(driverConn any) []string {
	f := driverConn.(*fakeConn).f
	f.mu.Lock()
	defer f.mu.Unlock()
	warned := f.warned
	f.warned = nil
	return warned
}

// put changes a row.
func (c *fakeConn) put(key string, r fakeRow) {
	before, was := c.f.rows[key]
	c.f.rows[key] = r
	if !c.inTx {
		return
	}
	c.undo = append(c.undo, func() {
		if was {
			c.f.rows[key] = before
		} else {
			delete(c.f.rows, key)
		}
	})
}

func (c *fakeConn) Commit() error { return errors.New("only rolled back") }

func (c *fakeConn) Rollback() error {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	for _, undo := range slices.Backward(c.undo) {
		undo()
	}
	c.inTx = false
	return nil
}

func (c *fakeConn) Prepare(string) (driver.Stmt, error) { return nil, errors.New("not prepared") }
func (c *fakeConn) Close() error                        { return nil }
func (c *fakeConn) Begin() (driver.Tx, error)           { c.inTx, c.undo = true, nil; return c, nil }

// text returns an argument as bytes, in whichever form it came.
func text(v driver.NamedValue) []byte {
	switch v := v.Value.(type) {
	case string:
		return []byte(v)
	case []byte:
		return slices.Clone(v)
	}
	panic(fmt.Sprintf("%T", v.Value))
}

func (c *fakeConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f := c.f
	changed := int64(0)
	done := false
	var failed error
	apply := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		done = true
		word, _, _ := strings.Cut(query, " ")
		if f.rows == nil && word != "CREATE" {
			failed = fakeError("42P01")
			return
		}
		switch word {
		case "CREATE":
			if f.rows != nil {
				failed = fakeError("42P07")
				return
			}
			f.rows = make(map[string]fakeRow)
		case "INSERT":
			key := string(text(args[0]))
			if _, ok := f.rows[key]; !ok {
				c.put(key, fakeRow{text(args[1]), 1})
				changed = 1
			}
		case "UPDATE":
			key := string(text(args[1]))
			if r, ok := f.rows[key]; ok && bytes.Equal(r.value, text(args[2])) {
				c.put(key, fakeRow{text(args[0]), r.n + 1})
				changed = 1
			}
		case "SELECT":
		default:
			failed = fakeError("42601")
		}
	}
	word, _, _ := strings.Cut(query, " ")
	if err := f.ask(word, apply); err != nil {
		return nil, err
	}
	if !done {
		apply()
	}
	return driver.RowsAffected(changed), failed
}

func (c *fakeConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f := c.f
	if err := f.ask("SELECT", nil); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	state := f.timeline
	if f.replica {
		state = -1
	}
	one := func(v ...driver.Value) (driver.Rows, error) {
		return &fakeRows{columns: len(v), rows: [][]driver.Value{v}}, nil
	}
	value := func(key string) driver.Value {
		if r, ok := f.rows[key]; ok {
			return slices.Clone(r.value)
		}
		return nil
	}
	switch {
	case strings.Contains(query, "synchronous_standby_names"):
		return one(f.standbys, f.replicas, f.others)
	case strings.Contains(query, "current_setting('fsync')"):
		return one(f.settings[0], f.settings[1], f.settings[2])
	case strings.Contains(query, "relpersistence") && f.copied:
		return one("is a copy that a subscription replicates from another server", true)
	case strings.Contains(query, "relpersistence") && f.kind != "p":
		return one("is unlogged or temporary", false)
	case strings.Contains(query, "relpersistence"):
		return &fakeRows{columns: 2}, nil
	case strings.Contains(query, "clock_timestamp"):
		return one(time.Now().UnixMicro(), state)
	case strings.Contains(query, "txid_current_if_assigned"):
		return one(state, !c.inTx)
	case strings.HasPrefix(query, "SELECT CASE WHEN pg_is_in_recovery()"):
		return one(state)
	case f.rows == nil:
		return nil, fakeError("42P01")
	case strings.Contains(query, "SUM(n)"):
		sum := int64(0)
		for _, r := range f.rows {
			sum += r.n
		}
		return one(value(identityKey), sum, state)
	case strings.HasPrefix(query, "SELECT EXISTS"):
		return one(len(f.rows) > 0)
	case strings.Contains(query, "WHERE k = $1"):
		return one(value(string(text(args[0]))), state)
	}
	rows := &fakeRows{columns: 3}
	for _, key := range slices.Sorted(maps.Keys(f.rows)) {
		wanted := false
		if strings.Contains(query, " IN (") {
			wanted = slices.ContainsFunc(args, func(a driver.NamedValue) bool { return string(text(a)) == key })
		} else {
			wanted = key >= string(text(args[0])) && key < string(text(args[1])) && int64(len(rows.rows)) < args[2].Value.(int64)
		}
		if wanted {
			rows.rows = append(rows.rows, []driver.Value{key, value(key), state})
		}
	}
	return rows, nil
}

type fakeRows struct {
	columns int
	rows    [][]driver.Value
}

func (r *fakeRows) Columns() []string { return make([]string, r.columns) }
func (r *fakeRows) Close() error      { return nil }
func (r *fakeRows) Next(dest []driver.Value) error {
	if len(r.rows) == 0 {
		return io.EOF
	}
	copy(dest, r.rows[0])
	r.rows = r.rows[1:]
	return nil
}

// store opens a Store over the fake, and creates its table.
func (f *fake) store(t *testing.T) *store {
	t.Helper()
	s := must.Get(openStore(t.Context(), f.open(), PostgreSQL(), &Options{Create: true, CloseDB: true, Warnings: warnings}))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}
