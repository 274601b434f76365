package sqlstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"strings"

	"github.com/firnid/firn/grant"
)

// defaultTable is the table that is used if Options name none.
const defaultTable = "firn_grants"

// Options configure Open. Nil and the zero Options mean the defaults.
type Options struct {
	// Table is the name of the table, optionally after its schema and a dot. A
	// name without a schema is in the schema public of PostgreSQL, and in
	// MySQL's database of the connection. An empty string means firn_grants.
	Table string

	// Create creates the table if it does not exist, and its identity if it is
	// empty. Do not set it if the table should exist: an empty one does not
	// contain the node IDs in use.
	Create bool

	// CloseDB makes Close close the database too.
	CloseDB bool

	// Warnings returns the warnings that the server has sent on a driver's
	// connection (as in sql.Conn.Raw) since the last call for this connection.
	// A CAS calls it before and after its statement, on a connection of its
	// own, and its result is unknown if there is a warning. Notices below the
	// level of a warning must be left out.
	//
	// If an administrator cancels a commit's wait for a standby, PostgreSQL
	// reports only with a warning that the commit is on the primary and perhaps
	// on no standby. If Warnings is nil, such a CAS counts as durable, and a
	// failover to a standby may repeat IDs. MySQL does not need Warnings,
	// because it returns them in SQL.
	Warnings func(driverConn any) []string
}

// Schema returns the statements that create a table and its identity.
func Schema(d *Dialect, table string) ([]string, error) {
	schema, name, err := d.split(cmp.Or(table, defaultTable))
	if err != nil {
		return nil, err
	}
	quoted := d.quoted(schema, name)
	return []string{
		strings.ReplaceAll(d.create, "{T}", quoted),
		fmt.Sprintf("INSERT INTO %s (k, v, n) VALUES ('%s', '%s', 1)", quoted, identityKey, rand.Text()),
	}, nil
}

// Open returns a Store over a database. It checks that the database is
// suitable, a primary that writes its commits to disk, and that the table is
// like one made by Schema. For the latter it writes rows that it rolls back.
//
// The error matches grant.ErrUnreachable and the driver's error if the database
// does not answer, is starting or stopping, or has no more connections,
// grant.ErrUnfit if it is configured to lose commits, or if the table is
// unsuitable: it may change keys and values, was emptied, or has lost the row
// that identifies it, and ErrReplica, ErrNoTable or grant.ErrOptions.
//
// The Store is safe for concurrent use by multiple goroutines, and any number
// of Stores in any number of processes may use one table.
//
// Get, List and Lineage are linearizable on one primary; List shows each key as
// it is when its page of 512 keys is read. What they show may not be durable
// yet; see the package documentation. A CAS is one statement that is committed
// before CAS returns, at any isolation level of the session.
//
// Reads from a replica fail with an error that matches ErrReplica; the error of
// a CAS there also matches grant.ErrNotSent. In PostgreSQL, a primary that
// was replaced counts as a replica once the Store has used the one that was
// promoted later; so does one that was restored from a backup of an earlier
// timeline, until a sequencer is read that was fenced since. While the
// database is in a state in which Open would reject its settings or the table,
// all calls fail with Open's error, from the next check on. A call that
// finds a dead connection, or conflicts with others, retries for about half a
// second, and never beyond its context.
//
// By grant.As, the Store is also a grant.MultiGetter, a Lineage, a Clock and
// Dangers, which finds, for example, replicas that may lack commits when they
// are promoted.
func Open(ctx context.Context, db *sql.DB, d *Dialect, o *Options) (grant.Store, error) {
	s, err := openStore(ctx, db, d, o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func openStore(ctx context.Context, db *sql.DB, d *Dialect, o *Options) (*store, error) {
	s := &store{db: db, dialect: d, options: *cmp.Or(o, new(Options))}
	var err error
	if s.schema, s.name, err = d.split(cmp.Or(s.options.Table, defaultTable)); err != nil {
		return nil, err
	}
	s.table = d.quoted(s.schema, s.name)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.prepare(ctx); err != nil {
		s.cancel()
		if d.isDown(err) {
			err = &unreachable{err}
		}
		return nil, err
	}
	s.done.Go(s.watch)
	return s, nil
}

// An unreachable error is one of a driver that also matches
// grant.ErrUnreachable.
type unreachable struct{ error }

func (e *unreachable) Error() string        { return grant.ErrUnreachable.Error() + ": " + e.error.Error() }
func (e *unreachable) Is(target error) bool { return target == grant.ErrUnreachable }
func (e *unreachable) Unwrap() error        { return e.error }
