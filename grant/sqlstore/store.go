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

	// ErrDamaged means that the table is there and is not one of this package, or
	// that it was emptied.
	ErrDamaged = errors.New("sqlstore: the table is not as it was made")
)

// DefaultTable is the table where Options name none.
const DefaultTable = "firn_grants"

// identityKey is the row that names the table. No key of a Store begins with !.
const identityKey = "!identity"

// page is how many rows a List fetches at once: 2 MB if all are as long as can be.
const page = 512

// maxKeys is how many keys GetMany asks for at once.
const maxKeys = 128

// Options are what New can be told. The zero Options and nil mean the defaults.
type Options struct {
	// Table is the name of the table, with its schema and a dot before it where that
	// is not the user's own: DefaultTable if it is empty.
	Table string

	// Create makes the table if it is not there. It is wrong where a table should be:
	// an empty one knows nothing of the numbers that are in use.
	Create bool

	// CloseDB lets Close close the database too.
	CloseDB bool
}

// A Store is a grant.Store in a table. It must be made by New. It is safe for use by
// many goroutines at once, and any number of Stores of any number of processes may
// use one table.
//
// Get, List and Lineage are linearizable; List shows each key as it is when its page
// of 512 keys is read. A CAS is one statement that commits by itself, at whatever
// isolation the session has: see CAS.
//
// Reads and List of a server that is a replica are an error that is ErrReplica; a CAS
// is one that is grant.ErrNotSent too. A call that finds a dead connection, or others
// in the way, begins again for at most half a second or so, and never beyond its context.
type Store struct {
	db    *sql.DB
	d     *Dialect
	close bool
	table string // quoted

	get, insert, update, list, lineage, primary string

	ctx    context.Context // done when Close begins
	cancel context.CancelFunc
	once   sync.Once
	err    error // of Close
}

// Schema returns the statements that make a table, with what names it.
func Schema(d *Dialect, table string) ([]string, error) {
	if table == "" {
		table = DefaultTable
	}
	quoted, err := d.quoted(table)
	if err != nil {
		return nil, err
	}
	return []string{
		strings.ReplaceAll(d.create, "{T}", quoted),
		fmt.Sprintf("INSERT INTO %s (k, v, n) VALUES ('%s', '%s', 1)", quoted, identityKey, rand.Text()),
	}, nil
}

// New returns a Store over a database, once it has seen that the table is there and
// that the database is fit to keep it: a primary, which writes to disk what it
// commits. The errors of a database that cannot be reached are its driver's.
func New(ctx context.Context, db *sql.DB, d *Dialect, o *Options) (*Store, error) {
	if o == nil {
		o = new(Options)
	}
	name := o.Table
	if name == "" {
		name = DefaultTable
	}
	table, err := d.quoted(name)
	if err != nil {
		return nil, err
	}
	in := func(statement string) string { return strings.ReplaceAll(statement, "{T}", table) }
	s := &Store{
		db: db, d: d, table: table, close: o.CloseDB,
		get: in(d.get), insert: in(d.insert), update: in(d.update), list: in(d.list), lineage: in(d.lineage), primary: d.primary,
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	var replica bool
	if err := db.QueryRowContext(ctx, s.primary).Scan(&replica); err != nil {
		return nil, err
	}
	if replica {
		return nil, fmt.Errorf("%w: connect to the primary", ErrReplica)
	}
	if err := d.check(ctx, db); err != nil {
		return nil, err
	}
	_, err = db.ExecContext(ctx, in(d.exists))
	if o.Create && (err == nil || d.missing(err)) {
		err = s.make(ctx, err != nil, in)
	}
	if d.missing(err) {
		return nil, fmt.Errorf("%w %s", ErrNoTable, name)
	}
	if err != nil {
		return nil, fmt.Errorf("sqlstore: table %s: %w", name, err)
	}
	if err := d.checkTable(ctx, db, name); err != nil {
		return nil, err
	}
	if _, _, err := s.Lineage(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// make makes the table, and names it if it has no rows. Others may do so at the same
// time, or may have stopped half way.
func (s *Store) make(ctx context.Context, missing bool, in func(string) string) error {
	if missing {
		_, refused := s.db.ExecContext(ctx, in(s.d.create))
		if _, err := s.db.ExecContext(ctx, in(s.d.exists)); err != nil {
			if refused != nil {
				return fmt.Errorf("create it: %w", refused)
			}
			return err
		}
	}
	var rows []row
	err := s.read(ctx, func(conn *sql.Conn) (replica bool, err error) {
		rows, err = s.rows(ctx, conn, s.list, "", "~", 1)
		return false, err
	})
	if err != nil || len(rows) > 0 {
		return err
	}
	_, err = s.db.ExecContext(ctx, s.insert, identityKey, []byte(rand.Text()))
	if s.d.duplicate(err) {
		return nil
	}
	return err
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

// failed is what a call of the caller's context ctx that ended with err returns.
func failed(ctx context.Context, what string, err error) error {
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("sqlstore: %s: %w: %w", what, cause, err)
	}
	return fmt.Errorf("sqlstore: %s: %w", what, err)
}

// Check returns what is dangerous about the database although it can be used, each in
// a sentence: replicas that may lack what was committed when they are promoted, nodes
// that may show what is old. What New refuses is not among it.
func (s *Store) Check(ctx context.Context) ([]string, error) {
	call, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	found, err := s.d.findings(call, s.db)
	if err != nil {
		return nil, failed(ctx, "look at the settings", err)
	}
	return found, nil
}

const (
	// maxDead is how many connections of one call may be found dead, or at a server
	// that is the primary no more: as many as are likely to be idle after a failover.
	maxDead = 3

	// maxAgain is how often a call begins again because others were in the way. Each
	// time one of them has gone on.
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

// discard takes a connection out of the pool: what it leads to is not what is wanted.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = conn.Close()
}

// read runs f, which only reads, on a connection to the primary, and again where it
// must. F says whether the server was a replica when it had read.
func (s *Store) read(ctx context.Context, f func(*sql.Conn) (replica bool, err error)) error {
	for dead, again := 0, 0; ; {
		conn, err := s.db.Conn(ctx)
		if err != nil {
			return err
		}
		replica, err := f(conn)
		if err == nil && replica {
			// Others of the pool may lead to the primary: after a failover, the name
			// of the host does, and this connection is older.
			discard(conn)
			err = fmt.Errorf("%w: what it shows may be old", ErrReplica)
			if dead++; dead > maxDead {
				return err
			}
			continue
		}
		_ = conn.Close() // back to the pool, which throws a broken one away
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
	err = s.read(call, func(conn *sql.Conn) (replica bool, err error) {
		err = conn.QueryRowContext(call, s.get, key).Scan(&value, &replica)
		return replica, err
	})
	if err != nil {
		return nil, failed(ctx, fmt.Sprintf("get key %q", key), err)
	}
	return value, nil
}

// CAS puts next in the place of old.
//
// It is sent on a connection that it has to itself, so that database/sql does not send
// it again. It is sent again where the database has refused it only because others
// were at work, as it does at the stricter isolations, for then nothing was applied.
// Where the driver says that a connection was dead before anything was sent
// (driver.ErrBadConn), it is sent on another; should that one be refused, the result is
// unknown, for the driver may have been wrong.
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
		var result sql.Result
		if len(old) == 0 {
			result, err = conn.ExecContext(call, s.insert, key, next)
		} else {
			result, err = conn.ExecContext(call, s.update, next, key, old)
		}
		if s.d.readOnly(err) {
			discard(conn)
			err = fmt.Errorf("%w: %w", ErrReplica, err)
		} else {
			_ = conn.Close() // back to the pool, which throws a broken one away
		}
		changed := int64(0)
		switch {
		case err == nil:
			if changed, err = result.RowsAffected(); err != nil {
				return false, failed(ctx, what, err)
			}
		case errors.Is(err, driver.ErrBadConn):
			dead = err
			if deads++; deads > maxDead {
				return false, failed(ctx, what, dead)
			}
			continue
		case len(old) == 0 && s.d.duplicate(err):
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
		if changed == 0 && dead != nil {
			return false, failed(ctx, what, fmt.Errorf("refused at the second try, and the first is not certain to have come to nothing: %w", dead))
		}
		return changed > 0, nil
	}
}

// GetMany returns the values of all keys, of one moment for each 128 of them.
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
		query.WriteString("SELECT k, v FROM " + s.table + " WHERE k IN (")
		args := make([]any, len(some))
		for i, key := range some {
			if i > 0 {
				query.WriteString(", ")
			}
			query.WriteString(s.d.parameter(i + 1))
			args[i] = key
		}
		query.WriteString(")")
		var rows []row
		err := s.read(call, func(conn *sql.Conn) (replica bool, err error) {
			rows, err = s.rows(call, conn, query.String(), args...)
			return false, err // a replica's will do
		})
		if err != nil {
			return nil, failed(ctx, fmt.Sprintf("get %d keys", len(keys)), err)
		}
		for _, r := range rows {
			found[r.key] = r.value
		}
	}
	values := make([][]byte, len(keys))
	for i, key := range keys {
		values[i] = append([]byte(nil), found[key]...) // a key may be there twice
	}
	return values, nil
}

// A row is a key with its value.
type row struct {
	key   string
	value []byte
}

// rows returns all rows of a query.
func (s *Store) rows(ctx context.Context, conn *sql.Conn, query string, args ...any) (all []row, err error) {
	rows, err := conn.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := rows.Close(); err == nil {
			err = e
		}
	}()
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.key, &r.value); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
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
		err := s.read(call, func(conn *sql.Conn) (replica bool, err error) {
			if rows, err = s.rows(call, conn, s.list, from, below, page); err != nil {
				return false, err
			}
			// Asked behind the rows: what was the primary then was it before.
			err = conn.QueryRowContext(call, s.primary).Scan(&replica)
			return replica, err
		})
		if err != nil {
			return failed(ctx, what, err)
		}
		for _, r := range rows {
			if err := call.Err(); err != nil {
				return failed(ctx, what, err)
			}
			if grant.CheckKey(r.key) == nil && !yield(r.key, r.value) {
				return nil
			}
		}
		if len(rows) < page {
			return nil
		}
		from = rows[len(rows)-1].key + "!" // no key is between
	}
}

// Lineage returns the identity of the table, and how often its rows were written.
func (s *Store) Lineage(ctx context.Context) (identity string, revision int64, err error) {
	call, leave, err := s.enter(ctx)
	if err != nil {
		return "", 0, err
	}
	defer leave()
	var name []byte
	err = s.read(call, func(conn *sql.Conn) (replica bool, err error) {
		err = conn.QueryRowContext(call, s.lineage).Scan(&name, &revision, &replica)
		return replica, err
	})
	if err != nil {
		return "", 0, failed(ctx, "read the revision", err)
	}
	if len(name) == 0 {
		return "", 0, fmt.Errorf("%w: table %s has no row %s: it was emptied, or made by something else", ErrDamaged, s.table, identityKey)
	}
	return string(name), revision, nil
}

// Time returns the time of the server's clock, to the resolution of the dialect.
func (s *Store) Time(ctx context.Context) (now time.Time, resolution time.Duration, err error) {
	call, leave, err := s.enter(ctx)
	if err != nil {
		return time.Time{}, 0, err
	}
	defer leave()
	var micros int64
	err = s.read(call, func(conn *sql.Conn) (replica bool, err error) {
		err = conn.QueryRowContext(call, s.d.clock).Scan(&micros, &replica)
		return replica, err
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
		if s.close {
			s.err = s.db.Close()
		}
	})
	return s.err
}
