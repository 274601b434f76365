package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/stale"
)

var (
	_ grant.Store       = (*store)(nil)
	_ grant.MultiGetter = (*store)(nil)
	_ grant.Lineage     = (*store)(nil)
	_ grant.Clock       = (*store)(nil)
	_ grant.Dangers     = (*store)(nil)
)

// Errors of Open and of calls that a caller may want to distinguish.
var (
	// ErrNoTable means that the table does not exist. Options.Create creates
	// it.
	ErrNoTable = errors.New("sqlstore: no table")

	// ErrReplica means that the database is a replica or read-only: it may show
	// stale data.
	ErrReplica = errors.New("sqlstore: the database is a replica or read-only")
)

// identityKey is the row that identifies the table. No key of a Store begins
// with !.
const identityKey = "!identity"

// page is how many rows a List fetches at once: at most 2 MB.
const page = 512

// maxKeys is how many keys GetMany asks for at once.
const maxKeys = 128

// A store is the grant.Store that Open returns.
type store struct {
	db      *sql.DB
	dialect *Dialect
	options Options

	table        string // quoted, with its schema
	schema, name string // of the table
	primary      string // see Dialect

	newest newest                // the server to use
	unfit  atomic.Pointer[error] // why Open would reject the database now, or nil
	waited atomic.Bool           // see Dialect.dangers

	ctx    context.Context // done when Close begins
	cancel context.CancelFunc
	done   sync.WaitGroup // watch
	once   sync.Once
	err    error // the error of Close
}

// A newest is which of several servers is used: the one with the greatest value
// of primary, until a fence shows that another was restored in its place.
type newest struct {
	mu      sync.Mutex // guards the fields below
	state   int64      // its value of primary
	at      time.Time  // when it answered last
	trusted int        // how often an older one was used instead
}

// expand returns a statement for this table and server.
func (s *store) expand(statement string) string {
	schema := "DATABASE()"
	if s.schema != "" {
		schema = "'" + s.schema + "'"
	}
	r := strings.NewReplacer("{T}", s.table, "{P}", s.primary, "{S}", schema, "{N}", "'"+s.name+"'")
	statement = r.Replace(statement)
	if s.dialect.numbered {
		for n := 1; strings.Contains(statement, "?"); n++ {
			statement = strings.Replace(statement, "?", fmt.Sprint("$", n), 1)
		}
	}
	return statement
}

// errClosed is the error of calls after Close.
var errClosed = fmt.Errorf("%w: sqlstore: the store is closed", grant.ErrNotSent)

// enter begins a call for valid keys, unless the database is unfit. Its context
// is also done when Close begins.
func (s *store) enter(ctx context.Context, keys ...string) (_ context.Context, leave func(), err error) {
	if err := grant.CheckKey(keys...); err != nil {
		return nil, nil, err
	}
	if unfit := s.unfit.Load(); unfit != nil {
		return nil, nil, grant.NotSent(*unfit)
	}
	return s.begun(ctx)
}

// begun is enter for any database.
func (s *store) begun(ctx context.Context) (_ context.Context, leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, grant.NotSent(err)
	}
	if s.ctx.Err() != nil {
		return nil, nil, errClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.ctx, cancel)
	return ctx, func() { stop(); cancel() }, nil
}

// failed returns the error of a call with the caller's context ctx that ended
// with err.
func failed(ctx context.Context, what string, err error) error {
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("sqlstore: %s: %w: %w", what, cause, err)
	}
	return fmt.Errorf("sqlstore: %s: %w", what, err)
}

const (
	// maxDead is how many connections of one call may turn out to be dead, or
	// connected to a former primary: as many as are likely to be idle after a
	// failover.
	maxDead = 3

	// maxAgain is how often a call retries after conflicts with others. In each
	// conflict, one of them has made progress.
	maxAgain = 12
)

// pause waits before attempt n, counted from 1, and reports whether to make it.
func pause(ctx context.Context, n int) bool {
	if n > maxAgain {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Millisecond/2 + mathrand.N(time.Millisecond<<min(n, 6))):
		return true
	}
}

// back returns a connection to the pool after a call that ended with err. A
// connection on which a call failed is closed, unless the reason was a conflict
// with others. Other code may have left it in a state in which every call
// fails, for example with locked tables, and the pool hands out first what was
// returned last.
func (s *store) back(conn *sql.Conn, err error) {
	if err != nil && !s.dialect.hasCode(err, s.dialect.again) {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	_ = conn.Close()
}

// stale returns an error if a server must not be trusted because of its value
// of primary: it is a replica, or a server with a greater value has answered.
// The latter error is a *stale.Error.
func (s *store) stale(state int64) error {
	if state < 0 {
		return fmt.Errorf("%w: it may show stale data", ErrReplica)
	}
	n := &s.newest
	n.mu.Lock()
	defer n.mu.Unlock()
	if state >= n.state {
		n.state, n.at = state, time.Now()
		return nil
	}
	newer := n.state
	return &stale.Error{
		Err: fmt.Errorf("%w: its timeline is %d, and a server with timeline %d was promoted in its place, or it was "+
			"restored from a backup: then fence every sequencer (firn node fence --all)",
			ErrReplica, state, newer),
		Other: n.at,
		Trust: func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			if n.state == newer {
				n.state, n.trusted = state, n.trusted+1
			}
		},
	}
}

// begin ends a transaction left open on a connection.
func (s *store) begin(ctx context.Context, conn *sql.Conn) (err error) {
	if s.dialect.begin != "" {
		_, err = conn.ExecContext(ctx, s.dialect.begin)
	}
	return err
}

// read runs f, which only reads, on a connection to the primary, and repeats it
// if necessary. f returns the value of primary at the time of the read.
func (s *store) read(ctx context.Context, f func(*sql.Conn) (state int64, err error)) error {
	var before error // of the previous attempt
	for dead, again := 0, 0; ; {
		conn, err := s.db.Conn(ctx)
		if err != nil {
			return because(ctx, err, before)
		}
		err = s.begin(ctx, conn)
		var state int64
		if err == nil {
			state, err = f(conn)
		}
		if err == nil {
			err = s.stale(state)
		}
		s.back(conn, err)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, driver.ErrBadConn), errors.Is(err, ErrReplica):
			// Other connections may lead to the primary: after a failover, the
			// host's name does, and this connection is older.
			if dead++; dead > maxDead {
				return err
			}
		case s.dialect.hasCode(err, s.dialect.again):
			if again++; !pause(ctx, again) {
				return err
			}
		default:
			return because(ctx, err, before)
		}
		before = err
	}
}

// because returns err, the error of an attempt, with that of the attempt before
// if it says no more than that ctx has ended.
func because(ctx context.Context, err, before error) error {
	if before != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return fmt.Errorf("%w, after: %w", err, before)
	}
	return err
}

// readRow makes a call that reads one row: the values of dest and that of
// primary. what describes the call in errors.
func (s *store) readRow(ctx context.Context, what, query string, args []any, dest ...any) error {
	call, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	err = s.read(call, func(conn *sql.Conn) (state int64, err error) {
		err = conn.QueryRowContext(call, s.expand(query), args...).Scan(append(dest, &state)...)
		return state, err
	})
	if err != nil {
		return failed(ctx, what, err)
	}
	return nil
}

// Get returns the value of a key, or nil.
func (s *store) Get(ctx context.Context, key string) ([]byte, error) {
	if err := grant.CheckKey(key); err != nil {
		return nil, err
	}
	var value []byte
	err := s.readRow(ctx, fmt.Sprintf("get key %q", key), getStatement, []any{key}, &value)
	if _, ok := errors.AsType[*stale.Error](err); err != nil && !ok {
		return nil, err
	}
	if value != nil && len(value) == 0 {
		return nil, s.empty(key)
	}
	return value, err
}

// empty returns the error of a key with an empty value, which no Store writes.
// Without it, the key would look absent.
func (s *store) empty(key string) error {
	return fmt.Errorf("%w: sqlstore: key %q in table %s has an empty value: another program writes to it: %w",
		grant.ErrNotSent, key, s.table, grant.ErrDamaged)
}

// CAS replaces old by next; see grant.Store.
//
// It is sent on a connection of its own, so that database/sql does not send it
// again. It is sent again if the database refused it only because of concurrent
// access, as at the stricter isolation levels, since nothing was applied then.
// If the driver reports that a connection was dead before anything was sent
// (driver.ErrBadConn), it is sent on another one. If that one is refused, the
// result is unknown, because the driver may have been wrong.
//
// The result is also unknown if the server has applied it with a warning, or if
// the server turns out to have been replaced by another.
func (s *store) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	if err := grant.CheckValue(next); err != nil {
		return false, err
	}
	call, leave, err := s.enter(ctx, key)
	if err != nil {
		return false, err
	}
	defer leave()
	applied, unknown, err := s.replace(call, key, old, next)
	if err == nil {
		return applied, nil
	}
	err = failed(ctx, fmt.Sprintf("replace key %q", key), err)
	if !unknown {
		err = grant.NotSent(err)
	}
	return false, err
}

// replace makes the attempts of a CAS. unknown reports whether one that failed
// may have been applied.
func (s *store) replace(ctx context.Context, key string, old, next []byte) (applied, unknown bool, err error) {
	var before error // of the previous attempt
	for dead, again := 0, 0; ; before = err {
		var conn *sql.Conn
		if conn, err = s.db.Conn(ctx); err != nil {
			return false, dead > 0, because(ctx, fmt.Errorf("connect: %w", err), before)
		}
		var changed int64
		changed, err = s.send(ctx, conn, key, old, next)
		_, doubt := errors.AsType[*doubtError](err)
		switch {
		case err == nil && changed == 0 && dead > 0:
			return false, true, fmt.Errorf("refused, but an earlier attempt may have been applied: %w", before)
		case err == nil:
			return changed > 0, false, nil
		case doubt:
			return false, true, err
		case errors.Is(err, ErrReplica):
			return false, dead > 0, err
		case errors.Is(err, driver.ErrBadConn):
			if dead++; dead > maxDead {
				return false, true, err
			}
		case s.dialect.hasCode(err, s.dialect.refused):
			if again++; !s.dialect.hasCode(err, s.dialect.again) || !pause(ctx, again) {
				return false, dead > 0, err
			}
		default:
			return false, true, because(ctx, err, before)
		}
	}
}

// A doubtError is the error of a CAS that the server has answered, but that may
// not be applied, or not durably.
type doubtError struct{ error }

func (e *doubtError) Unwrap() error { return e.error }

// send makes one attempt of a CAS on a connection, which it returns to the
// pool. It returns the number of rows that were durably changed.
func (s *store) send(ctx context.Context, conn *sql.Conn, key string, old, next []byte) (changed int64, err error) {
	defer func() { s.back(conn, err) }()
	if _, err := s.warnings(conn); err != nil { // from earlier statements
		return 0, err
	}
	if err := s.begin(ctx, conn); err != nil {
		return 0, err
	}
	var result sql.Result
	if len(old) == 0 {
		result, err = conn.ExecContext(ctx, s.expand(s.dialect.insert), key, next)
	} else {
		result, err = conn.ExecContext(ctx, s.expand(s.dialect.update), next, key, old)
	}
	switch {
	case len(old) == 0 && s.dialect.hasCode(err, s.dialect.duplicate): // nothing was changed
	case s.dialect.hasCode(err, s.dialect.readOnly):
		return 0, fmt.Errorf("%w: %w", ErrReplica, err)
	case err != nil:
		return 0, err
	default:
		if changed, err = result.RowsAffected(); err != nil {
			return 0, &doubtError{err}
		}
	}
	warned, err := s.warnings(conn)
	if changed == 0 && s.dialect.begin != "" {
		// Otherwise the rows that it read stay locked if autocommit was left
		// off.
		if err := s.begin(ctx, conn); err != nil {
			return 0, err
		}
	}
	if err == nil && changed == 0 && len(warned) == 0 {
		// Only a server that can be trusted refuses a CAS.
		var state int64
		if err := conn.QueryRowContext(ctx, "SELECT "+s.primary).Scan(&state); err != nil {
			return 0, err
		}
		return 0, s.stale(state)
	}
	if err == nil && changed > 0 {
		var more []string
		more, err = s.settle(ctx, conn)
		warned = append(warned, more...)
	}
	switch {
	case err != nil:
		return 0, &doubtError{fmt.Errorf("applied, but perhaps not durably: %w", err)}
	case len(warned) > 0:
		return 0, &doubtError{fmt.Errorf("the server sent a warning, so it may be applied but not durable: %s",
			strings.Join(warned, "; "))}
	}
	return changed, nil
}

// warnings returns the warnings that the driver has received on a connection.
func (s *store) warnings(conn *sql.Conn) (found []string, err error) {
	if s.options.Warnings == nil {
		return nil, nil
	}
	err = conn.Raw(func(driverConn any) error {
		found = s.options.Warnings(driverConn)
		return nil
	})
	return found, err
}

// errOpen is the error of a CAS that was made inside a transaction.
var errOpen = errors.New("it is not committed: other code that uses the same sql.DB left the connection inside a " +
	"transaction")

// settle ensures, on the connection of an applied CAS, that it is committed.
func (s *store) settle(ctx context.Context, conn *sql.Conn) (warned []string, err error) {
	if s.dialect.warnings != nil {
		if warned, err = s.dialect.warnings(ctx, conn); err != nil {
			return nil, err
		}
	}
	if s.dialect.commit != "" {
		if _, err := conn.ExecContext(ctx, s.dialect.commit); err != nil {
			return nil, err
		}
	}
	if s.dialect.settle == "" {
		return warned, nil
	}
	var state int64
	var committed bool
	if err := conn.QueryRowContext(ctx, s.expand(s.dialect.settle)).Scan(&state, &committed); err != nil {
		return nil, err
	}
	if !committed {
		return nil, errOpen
	}
	return warned, s.stale(state)
}

// readRows makes a call that reads rows. If there are none, the server is asked
// whether it can be trusted.
func (s *store) readRows(ctx context.Context, query string, args ...any) (rows []row, err error) {
	err = s.read(ctx, func(conn *sql.Conn) (state int64, err error) {
		rows, err = readRows(ctx, conn, query, args...)
		switch {
		case err != nil:
			return 0, err
		case len(rows) > 0:
			return rows[0].state, nil
		}
		err = conn.QueryRowContext(ctx, "SELECT "+s.primary).Scan(&state)
		return state, err
	})
	return rows, err
}

// GetMany returns the values of all keys. Each group of 128 keys is read at one
// moment, later keys later.
func (s *store) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	call, leave, err := s.enter(ctx, keys...)
	if err != nil {
		return nil, err
	}
	defer leave()
	found := make(map[string][]byte, len(keys))
	for some := range slices.Chunk(keys, maxKeys) {
		args := make([]any, len(some))
		for i, key := range some {
			args[i] = key
		}
		// A session may have a lower limit.
		query := s.expand(fmt.Sprintf("SELECT k, v, {P} FROM {T} WHERE k IN (?%s) LIMIT %d",
			strings.Repeat(", ?", len(some)-1), len(some)))
		rows, err := s.readRows(call, query, args...)
		if err != nil {
			return nil, failed(ctx, fmt.Sprintf("get %d keys", len(keys)), err)
		}
		for _, r := range rows {
			found[r.key] = s.shown(r)
		}
	}
	values := make([][]byte, len(keys))
	for i, key := range keys {
		values[i] = bytes.Clone(found[key]) // a key may occur twice
	}
	return values, nil
}

// shown returns the value of one of many keys or, for an empty one, the text of
// the error.
func (s *store) shown(r row) []byte {
	if len(r.value) == 0 {
		return []byte(s.empty(r.key).Error())
	}
	return r.value
}

// List calls yield for every key with the prefix.
func (s *store) List(ctx context.Context, prefix string, yield func(key string, value []byte) bool) error {
	call, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	what := fmt.Sprintf("list keys with %q", prefix)
	// Keys are ASCII, so whatever follows them is below ~, and before them
	// comes only !.
	if strings.ContainsFunc(prefix, func(c rune) bool { return c <= '!' || c >= '~' }) {
		return nil // no key has this prefix, and some databases reject some bytes
	}
	from, below := prefix, prefix+"~"
	if prefix == "" {
		from = "0" // after the identity
	}
	for {
		rows, err := s.readRows(call, s.expand(listStatement), from, below, page) // no connection is held while yield runs
		if err != nil {
			return failed(ctx, what, err)
		}
		for _, r := range rows {
			if err := call.Err(); err != nil {
				return failed(ctx, what, err)
			}
			if grant.CheckKey(r.key) == nil && !yield(r.key, s.shown(r)) {
				return nil
			}
		}
		if len(rows) < page {
			return nil
		}
		from = rows[len(rows)-1].key + "!" // the next possible key
	}
}

// Lineage returns the identity of the table and the number of writes to its
// rows.
func (s *store) Lineage(ctx context.Context) (identity string, revision int64, err error) {
	var name []byte
	if err := s.readRow(ctx, "read the revision", lineageStatement, nil, &name, &revision); err != nil {
		return "", 0, err
	}
	if len(name) == 0 {
		return "", 0, fmt.Errorf("%w: table %s has no row %s, or an empty one: it was emptied, or something other than "+
			"Firn has removed rows. Stop all members, restore the table and fence; "+
			"if no other row is missing, INSERT INTO %s (k, v, n) VALUES ('%s', 'a new random text', 1) and fence",
			grant.ErrUnfit, s.table, identityKey, s.table, identityKey)
	}
	s.newest.mu.Lock()
	defer s.newest.mu.Unlock()
	if n := s.newest.trusted; n > 0 {
		return fmt.Sprintf("%s %d", name, n), revision, nil
	}
	return string(name), revision, nil
}

// Time returns the time of the server's clock, at the resolution of the
// dialect.
func (s *store) Time(ctx context.Context) (now time.Time, resolution time.Duration, err error) {
	var micros int64
	if err := s.readRow(ctx, "read the clock", s.dialect.clock, nil, &micros); err != nil {
		return time.Time{}, 0, err
	}
	return time.UnixMicro(micros).UTC(), s.dialect.clockResolution, nil
}

// Close closes the store. Calls in progress end with an error.
func (s *store) Close() error {
	s.once.Do(func() {
		s.cancel()
		s.done.Wait()
		if s.options.CloseDB {
			s.err = s.db.Close()
		}
	})
	return s.err
}
