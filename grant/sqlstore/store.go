package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firnid/firn/grant"
)

var (
	_ grant.Store       = (*Store)(nil)
	_ grant.MultiGetter = (*Store)(nil)
	_ grant.Lineage     = (*Store)(nil)
	_ grant.Clock       = (*Store)(nil)
)

// Errors of New, and of calls, that a caller may want to tell apart.
var (
	// ErrNoTable means that the table is not there. Options.Create makes it.
	ErrNoTable = errors.New("sqlstore: there is no table")

	// ErrReplica means that the database is a replica, or read-only: what it shows
	// may be old.
	ErrReplica = errors.New("sqlstore: the database is a replica or read-only")

	// ErrUnfit means that the database is set to forget what it has committed.
	ErrUnfit = errors.New("sqlstore: the database would lose what is committed")

	// ErrSchema means that the table does not keep keys and values as they are: it
	// was made with other types, collations, indexes or triggers than Schema has.
	ErrSchema = errors.New("sqlstore: the table is not made as it must be")

	// ErrDamaged means that the table was emptied, or has lost the row that names
	// it.
	ErrDamaged = errors.New("sqlstore: the table has lost rows")
)

// DefaultTable is the table where Options name none.
const DefaultTable = "firn_grants"

// identityKey is the row that names the table. No key of a Store begins with !.
const identityKey = "!identity"

// page is how many rows a List fetches at once: 2 MB if all are as long as can
// be.
const page = 512

// maxKeys is how many keys GetMany asks for at once.
const maxKeys = 128

// checkEvery is how often the settings of the database are looked at.
const checkEvery = 10 * time.Second

// Options are what New can be told. The zero Options and nil mean the defaults.
type Options struct {
	// Table is the name of the table, with its schema and a dot before it if it is
	// not in the user's own: DefaultTable if it is empty.
	Table string

	// Create makes the table if it does not exist, and names it if it is empty. It
	// is wrong if there should be a table: an empty one does not know which
	// numbers are in use.
	Create bool

	// CloseDB lets Close close the database too.
	CloseDB bool

	// Warnings takes the warnings that the server has sent on a driver's
	// connection (as of sql.Conn.Raw) since it was last asked about this
	// connection. A CAS asks before and after its statement, on a connection that
	// it has to itself, and its result is unknown if there is one. Notices below a
	// warning are not for it.
	//
	// PostgreSQL reports with a warning alone that a commit is on the primary and
	// perhaps on no standby, because an administrator has cut the wait short. If
	// Warnings is nil, such a CAS is taken for durable, and a failover to a
	// standby may repeat IDs. MySQL needs no Warnings: it can be asked in SQL.
	Warnings func(driverConn any) []string

	// Warn is called with what Check finds, in New, and with what changes later,
	// within CheckEvery, until Close. It is called by one goroutine at a time and
	// must not call the Store. Nil means that the settings are not looked at.
	Warn func(string)

	// CheckEvery is how often the settings are looked at for Warn. Zero means 10
	// seconds.
	CheckEvery time.Duration
}

// A Store is a grant.Store in a table. It must be made by New. It is safe for
// use by many goroutines at once, and any number of Stores of any number of
// processes may use one table.
//
// Get, List and Lineage are linearizable on one primary; List shows each key as
// it is when its page of 512 keys is read. What they show may not be durable
// yet, see the package's comment. A CAS is one statement that is committed
// before CAS returns, at whatever isolation the session has: see CAS.
//
// Reads from a replica are an error that is ErrReplica; a CAS there is one that
// is grant.ErrNotSent too. In PostgreSQL a primary counts as a replica once the
// Store has used one that was promoted later. A call that finds a dead
// connection, or others in the way, begins again for at most half a second or
// so, and never beyond its context.
type Store struct {
	db    *sql.DB
	d     *Dialect
	o     Options
	table string // quoted, with its schema

	primary                                  string // as in Dialect
	get, insert, update, list, lineage, time string

	promoted atomic.Int64 // the greatest that primary was

	ctx    context.Context // done when Close begins
	cancel context.CancelFunc
	done   sync.WaitGroup // watch
	once   sync.Once
	err    error // of Close
}

// Schema returns the statements that make a table, with what names it.
func Schema(d *Dialect, table string) ([]string, error) {
	if table == "" {
		table = DefaultTable
	}
	schema, name, err := d.split(table)
	if err != nil {
		return nil, err
	}
	quoted := d.quoted(schema, name)
	return []string{
		strings.ReplaceAll(d.create, "{T}", quoted),
		fmt.Sprintf("INSERT INTO %s (k, v, n) VALUES ('%s', '%s', 1)", quoted, identityKey, rand.Text()),
	}, nil
}

// New returns a Store over a database, once it has seen that the database is
// fit to keep it, a primary that writes to disk what it commits, and that the
// table is as Schema makes it. It tries the latter with rows that it takes
// back. The errors of a database that cannot be reached are its driver's.
func New(ctx context.Context, db *sql.DB, d *Dialect, o *Options) (*Store, error) {
	s := &Store{db: db, d: d}
	if o != nil {
		s.o = *o
	}
	if s.o.Table == "" {
		s.o.Table = DefaultTable
	}
	if s.o.CheckEvery <= 0 {
		s.o.CheckEvery = checkEvery
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	err := s.open(ctx, s.o.Table, s.o.Create)
	if err == nil && s.o.Warn != nil {
		err = s.startWatch(ctx)
	}
	if err != nil {
		s.cancel()
		return nil, err
	}
	return s, nil
}

// name makes the statements for a table.
func (s *Store) name(table string) {
	s.table = table
	s.get, s.insert, s.update = s.in(s.d.get), s.in(s.d.insert), s.in(s.d.update)
	s.list, s.lineage, s.time = s.in(s.d.list), s.in(s.d.lineage), s.in(s.d.clock)
}

// in is a statement of the dialect for this table and server.
func (s *Store) in(statement string) string {
	return strings.NewReplacer("{T}", s.table, "{P}", s.primary).Replace(statement)
}

// errClosed is of calls after Close.
var errClosed = fmt.Errorf("%w: sqlstore: the store is closed", grant.ErrNotSent)

// notSent makes err one that is grant.ErrNotSent.
func notSent(what string, err error) error {
	return fmt.Errorf("%w: sqlstore: %s: %w", grant.ErrNotSent, what, err)
}

// enter begins a call. Its context is done when Close begins, too.
func (s *Store) enter(ctx context.Context) (_ context.Context, leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", grant.ErrNotSent, err)
	}
	if s.ctx.Err() != nil {
		return nil, nil, errClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.ctx, cancel)
	return ctx, func() { stop(); cancel() }, nil
}

// failed is what a call of the caller's context ctx that ended with err
// returns.
func failed(ctx context.Context, what string, err error) error {
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("sqlstore: %s: %w: %w", what, cause, err)
	}
	return fmt.Errorf("sqlstore: %s: %w", what, err)
}

const (
	// maxDead is how many connections of one call may be found dead, or at a
	// server that is the primary no more: as many as are likely to be idle after a
	// failover.
	maxDead = 3

	// maxAgain is how often a call begins again because others were in the way.
	// Each time one of them has gone on.
	maxAgain = 12
)

// pause waits before try n, from 1 on, and reports whether there may be one.
func pause(ctx context.Context, n int) bool {
	if n > maxAgain {
		return false
	}
	timer := time.NewTimer(time.Millisecond/2 + mathrand.N(time.Millisecond<<min(n, 6)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// discard takes a connection out of the pool: what it leads to is not what is
// wanted.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = conn.Close()
}

// back gives a connection back to the pool after a call that ended with err.
// One that has failed is not used again, unless it was because others were in
// the way: it may have been left by another user in a state in which every call
// fails, with tables locked for instance, and the pool hands out first what
// came back last.
func (s *Store) back(conn *sql.Conn, err error) {
	if err == nil || s.d.again(err) {
		_ = conn.Close()
		return
	}
	discard(conn)
}

// stale returns an error if a server is not to be believed that says of itself
// what primary does: it is a replica, or was replaced by one that was promoted.
func (s *Store) stale(state int64) error {
	for {
		newest := s.promoted.Load()
		switch {
		case state < 0:
			return fmt.Errorf("%w: what it shows may be old", ErrReplica)
		case state < newest:
			return fmt.Errorf("%w: its timeline is %d, and a server with timeline %d was promoted in its place, or it was restored from a backup: then fence, and start this process again",
				ErrReplica, state, newest)
		case state == newest || s.promoted.CompareAndSwap(newest, state):
			return nil
		}
	}
}

// begin ends what was left open on a connection.
func (s *Store) begin(ctx context.Context, conn *sql.Conn) (err error) {
	if s.d.begin != "" {
		_, err = conn.ExecContext(ctx, s.d.begin)
	}
	return err
}

// read runs f, which only reads, on a connection to the primary, and again
// where it must. F returns what primary was when it had read.
func (s *Store) read(ctx context.Context, f func(*sql.Conn) (state int64, err error)) error {
	for dead, again := 0, 0; ; {
		conn, err := s.db.Conn(ctx)
		if err != nil {
			return err
		}
		err = s.begin(ctx, conn)
		var state int64
		if err == nil {
			state, err = f(conn)
		}
		if err == nil {
			if err = s.stale(state); err != nil {
				// Others of the pool may lead to the primary: after a failover, the
				// name of the host does, and this connection is older.
				discard(conn)
				if dead++; dead > maxDead {
					return err
				}
				continue
			}
		}
		s.back(conn, err)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, driver.ErrBadConn):
			if dead++; dead > maxDead {
				return err
			}
		case s.d.again(err):
			if again++; !pause(ctx, again) {
				return err
			}
		default:
			return err
		}
	}
}

// Get returns the value of a key, or nil.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	if err := grant.CheckKey(key); err != nil {
		return nil, err
	}
	call, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var value []byte
	err = s.read(call, func(conn *sql.Conn) (state int64, err error) {
		err = conn.QueryRowContext(call, s.get, key).Scan(&value, &state)
		return state, err
	})
	if err != nil {
		return nil, failed(ctx, fmt.Sprintf("get key %q", key), err)
	}
	if value != nil && len(value) == 0 {
		return nil, s.empty(key)
	}
	return value, nil
}

// empty is the error of a key with a value that no Store writes. Without it, a
// caller would take the key for absent.
func (s *Store) empty(key string) error {
	return fmt.Errorf("%w: sqlstore: key %q in table %s has an empty value: another program writes to it: %w", grant.ErrNotSent, key, s.table, grant.ErrDamaged)
}

// CAS puts next in the place of old.
//
// It is sent on a connection that it has to itself, so that database/sql does
// not send it again. It is sent again where the database has refused it only
// because others were at work, as it does at the stricter isolations, for then
// nothing was applied. Where the driver says that a connection was dead before
// anything was sent (driver.ErrBadConn), it is sent on another; should that one
// be refused, the result is unknown, for the driver may have been wrong.
//
// The result is unknown too if the server has applied it with a warning, and if
// the server turns out to be one that was replaced by another.
func (s *Store) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	if err := grant.CheckKey(key); err != nil {
		return false, err
	}
	if err := grant.CheckValue(next); err != nil {
		return false, err
	}
	call, leave, err := s.enter(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	what := fmt.Sprintf("replace key %q", key)
	var dead error // of a try of which it is not certain that nothing was applied
	for deads, again := 0, 0; ; {
		conn, err := s.db.Conn(call)
		if err != nil {
			if dead != nil {
				return false, failed(ctx, what, err)
			}
			return false, notSent(what, failed(ctx, "connect", err))
		}
		changed, err := s.send(call, conn, key, old, next)
		var doubt *doubtError
		switch {
		case err == nil && changed == 0 && dead != nil:
			return false, failed(ctx, what, fmt.Errorf("refused at the second try, and the first is not certain to have come to nothing: %w", dead))
		case err == nil:
			return changed > 0, nil
		case errors.As(err, &doubt):
			return false, failed(ctx, what, err)
		case errors.Is(err, driver.ErrBadConn):
			dead = err
			if deads++; deads > maxDead {
				return false, failed(ctx, what, dead)
			}
		case len(old) == 0 && s.d.duplicate(err):
			if dead == nil {
				return false, nil
			}
			return false, failed(ctx, what, err)
		case s.d.refused(err):
			if again++; s.d.again(err) && pause(call, again) {
				continue
			}
			if dead == nil {
				return false, notSent(what, failed(ctx, s.d.name, err))
			}
			return false, failed(ctx, what, err)
		default:
			return false, failed(ctx, what, err)
		}
	}
}

// A doubtError is of a CAS that the server has answered, and that may be
// applied or not, or not for good.
type doubtError struct{ error }

func (e *doubtError) Unwrap() error { return e.error }

// send makes one try of a CAS on a connection, which it gives back. It returns
// how many rows were changed for good.
func (s *Store) send(ctx context.Context, conn *sql.Conn, key string, old, next []byte) (changed int64, err error) {
	defer func() {
		if err != nil && s.d.duplicate(err) {
			_ = conn.Close()
			return
		}
		s.back(conn, err)
	}()
	if _, err := s.warnings(conn); err != nil { // of what came before
		return 0, err
	}
	if err := s.begin(ctx, conn); err != nil {
		return 0, err
	}
	var result sql.Result
	if len(old) == 0 {
		result, err = conn.ExecContext(ctx, s.insert, key, next)
	} else {
		result, err = conn.ExecContext(ctx, s.update, next, key, old)
	}
	if s.d.readOnly(err) {
		err = fmt.Errorf("%w: %w", ErrReplica, err)
	}
	if err != nil {
		return 0, err
	}
	if changed, err = result.RowsAffected(); err != nil {
		return 0, &doubtError{err}
	}
	warned, err := s.warnings(conn)
	if changed == 0 && s.d.begin != "" {
		// Or what it has looked at stays locked, where autocommit was left off.
		if err := s.begin(ctx, conn); err != nil {
			return 0, err
		}
	}
	if err == nil && changed > 0 {
		var more []string
		more, err = s.settle(ctx, conn)
		warned = append(warned, more...)
	}
	switch {
	case err != nil:
		return 0, &doubtError{fmt.Errorf("applied, and perhaps not for good: %w", err)}
	case len(warned) > 0:
		return 0, &doubtError{fmt.Errorf("the server has warned, so it may be applied and not for good: %s", strings.Join(warned, "; "))}
	}
	return changed, nil
}

// warnings takes those that the driver has got on a connection.
func (s *Store) warnings(conn *sql.Conn) (found []string, err error) {
	if s.o.Warnings == nil {
		return nil, nil
	}
	err = conn.Raw(func(driverConn any) error {
		found = s.o.Warnings(driverConn)
		return nil
	})
	return found, err
}

// errOpen is of a CAS that was made inside a transaction.
var errOpen = errors.New("it is not committed: the connection was left inside a transaction, by another user of the same sql.DB")

// settle sees to it, on the connection of a CAS that was applied, that it
// counts.
func (s *Store) settle(ctx context.Context, conn *sql.Conn) (warned []string, err error) {
	if s.d.warnings != nil {
		if warned, err = s.d.warnings(ctx, conn); err != nil {
			return nil, err
		}
	}
	if s.d.commit != "" {
		if _, err := conn.ExecContext(ctx, s.d.commit); err != nil {
			return nil, err
		}
	}
	if s.d.settle == "" {
		return warned, nil
	}
	var state int64
	var committed bool
	if err := conn.QueryRowContext(ctx, s.in(s.d.settle)).Scan(&state, &committed); err != nil {
		return nil, err
	}
	if !committed {
		return nil, errOpen
	}
	return warned, s.stale(state)
}

// GetMany returns the values of all keys, of one moment for each 128 of them,
// and of a later one for later keys.
func (s *Store) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	for _, key := range keys {
		if err := grant.CheckKey(key); err != nil {
			return nil, err
		}
	}
	call, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	found := make(map[string][]byte, len(keys))
	for rest := keys; len(rest) > 0; {
		some := rest[:min(maxKeys, len(rest))]
		rest = rest[len(some):]
		var query strings.Builder
		query.WriteString("SELECT k, v, " + s.primary + " FROM " + s.table + " WHERE k IN (")
		args := make([]any, len(some))
		for i, key := range some {
			if i > 0 {
				query.WriteString(", ")
			}
			query.WriteString(s.d.parameter(i + 1))
			args[i] = key
		}
		fmt.Fprintf(&query, ") LIMIT %d", len(some)) // or a session may have a lower one
		var rows []row
		err := s.read(call, func(conn *sql.Conn) (state int64, err error) {
			rows, err = s.rows(call, conn, query.String(), args...)
			if len(rows) == 0 {
				return s.promoted.Load(), err // that nothing is there may be old
			}
			return stateOf(rows), err
		})
		if err != nil {
			return nil, failed(ctx, fmt.Sprintf("get %d keys", len(keys)), err)
		}
		for _, r := range rows {
			found[r.key] = s.shown(r)
		}
	}
	values := make([][]byte, len(keys))
	for i, key := range keys {
		values[i] = append([]byte(nil), found[key]...) // a key may be there twice
	}
	return values, nil
}

// shown is the value of one of many keys: of an empty one a text that says so.
func (s *Store) shown(r row) []byte {
	if len(r.value) == 0 {
		return []byte(s.empty(r.key).Error())
	}
	return r.value
}

func (s *Store) rows(ctx context.Context, conn *sql.Conn, query string, args ...any) ([]row, error) {
	rows, err := conn.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return scanRows(rows)
}

// List calls yield for every key with the prefix.
func (s *Store) List(ctx context.Context, prefix string, yield func(key string, value []byte) bool) error {
	call, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	what := fmt.Sprintf("list keys with %q", prefix)
	// Keys are of ASCII, so that what follows them is below ~, and what comes
	// before them is !.
	for _, c := range []byte(prefix) {
		if c <= '!' || c >= '~' {
			return nil // no key is like that, and not every database takes every byte
		}
	}
	from, below := prefix, prefix+"~"
	if prefix == "" {
		from = "0" // beyond the identity
	}
	for {
		var rows []row // no connection is held while yield runs
		err := s.read(call, func(conn *sql.Conn) (state int64, err error) {
			if rows, err = s.rows(call, conn, s.list, from, below, page); err != nil || len(rows) > 0 {
				return stateOf(rows), err
			}
			err = conn.QueryRowContext(call, "SELECT "+s.primary).Scan(&state)
			return state, err
		})
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
		from = rows[len(rows)-1].key + "!" // no key is between
	}
}

// Lineage returns the identity of the table, and how often its rows were
// written.
func (s *Store) Lineage(ctx context.Context) (identity string, revision int64, err error) {
	call, leave, err := s.enter(ctx)
	if err != nil {
		return "", 0, err
	}
	defer leave()
	var name []byte
	err = s.read(call, func(conn *sql.Conn) (state int64, err error) {
		err = conn.QueryRowContext(call, s.lineage).Scan(&name, &revision, &state)
		return state, err
	})
	if err != nil {
		return "", 0, failed(ctx, "read the revision", err)
	}
	if len(name) == 0 {
		return "", 0, fmt.Errorf("%w: table %s has no row %s, or an empty one: it was emptied, or something other than Firn has removed rows. Stop all members, restore the table and fence; "+
			"if no other row is missing, INSERT INTO %s (k, v, n) VALUES ('%s', 'a new random text', 1) and fence",
			ErrDamaged, s.table, identityKey, s.table, identityKey)
	}
	return string(name), revision, nil
}

// Time returns the time of the server's clock, to the resolution of the
// dialect.
func (s *Store) Time(ctx context.Context) (now time.Time, resolution time.Duration, err error) {
	call, leave, err := s.enter(ctx)
	if err != nil {
		return time.Time{}, 0, err
	}
	defer leave()
	var micros int64
	err = s.read(call, func(conn *sql.Conn) (state int64, err error) {
		err = conn.QueryRowContext(call, s.time).Scan(&micros, &state)
		return state, err
	})
	if err != nil {
		return time.Time{}, 0, failed(ctx, "read the clock", err)
	}
	return time.UnixMicro(micros).UTC(), s.d.clockResolution, nil
}

// Close ends the use of the store. Calls under way end with an error.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.cancel()
		s.done.Wait()
		if s.o.CloseDB {
			s.err = s.db.Close()
		}
	})
	return s.err
}
