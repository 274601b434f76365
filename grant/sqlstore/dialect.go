package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// A Dialect is what is specific to a kind of database. It must be made by
// PostgreSQL or MySQL.
//
// In its statements, {T} stands for the table, and {P} for one of primary.
type Dialect struct {
	name      string
	quote     byte
	get       string // the value of a key, {P}
	insert    string
	update    string
	list      string // a limited number of keys from one on and below another, with {P}
	lineage   string // the identity, the number of writes to rows, {P}
	exists    string // fails if the table does not exist
	rows      string // whether the table has any rows
	create    string
	parameter func(n int) string

	// primary lists expressions that describe the answering server; the first
	// one that the server understands is used. Each is -1 on a replica.
	// Otherwise it is 0, or a number that is greater on a server that was
	// promoted in place of another.
	primary []string

	// clock returns the microseconds since 1970 by the server's clock, at a
	// moment between request and answer, and {P}. It must not depend on the
	// time zone, nor on when a transaction began.
	clock           string
	clockResolution time.Duration

	// refused reports whether an error is an answer of the server that
	// guarantees that a statement has changed nothing.
	refused func(error) bool
	// again reports whether an error is a refusal due only to concurrent
	// access, so that another attempt may succeed.
	again func(error) bool
	// readOnly reports whether an error is a refusal because the server accepts
	// no writes.
	readOnly func(error) bool
	// duplicate reports whether an error means that a key already exists.
	duplicate func(error) bool
	// missing reports whether an error means that the table does not exist.
	missing func(error) bool
	// denied reports whether an error means that the user lacks a permission.
	denied func(error) bool

	// begin and commit are statements around one that reads or writes. They end
	// a transaction left open on a connection, and commit what a CAS has
	// changed, whatever the settings of the connection. They may be empty.
	begin, commit string
	// settle returns what {P} does, and whether a CAS just made on this
	// connection is committed. It is empty if commit ensures that.
	settle string

	// warnings returns the server's warnings about the last statement of a
	// connection. It is nil if only the driver has them; see Options.Warnings.
	warnings func(context.Context, *sql.Conn) ([]string, error)

	// schemas returns the schemas in which the user's sessions look for a table
	// of this name and find one, in search order.
	schemas func(ctx context.Context, db *sql.DB, name string) ([]string, error)
	// elsewhere returns the other schemas of the database with a table of this
	// name. It is nil if there is only one schema.
	elsewhere func(ctx context.Context, db *sql.DB, name string) ([]string, error)
	// checkTable returns an error if the table is unsuitable.
	checkTable func(ctx context.Context, db *sql.DB, schema, name string) error
	// check returns an error if the database is unsuitable.
	check func(context.Context, *sql.DB) error
	// dangers returns those that do not prevent the use of the database.
	dangers func(context.Context, *sql.DB, *memory) ([]string, error)
}

// split splits the name of a table in Options; the schema may be empty.
func (d *Dialect) split(table string) (schema, name string, err error) {
	parts := strings.Split(table, ".")
	for _, p := range parts {
		ok := len(p) > 0 && len(p) <= 63 && (p[0] < '0' || p[0] > '9')
		for _, c := range []byte(p) {
			ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_')
		}
		if !ok || len(parts) > 2 {
			return "", "", fmt.Errorf("sqlstore: table %q: use 1 to 63 characters of a-z, 0-9 and _, not beginning with a digit, optionally after a schema and a dot", table)
		}
	}
	if len(parts) == 2 {
		return parts[0], parts[1], nil
	}
	return "", table, nil
}

// quoted returns the name of a table in the form for statements.
func (d *Dialect) quoted(schema, name string) string {
	q := string(d.quote)
	one := func(s string) string { return q + strings.ReplaceAll(s, q, q+q) + q }
	if schema == "" {
		return one(name)
	}
	return one(schema) + "." + one(name)
}

// texts returns the first column of a query's result.
func texts(ctx context.Context, db *sql.DB, query string, args ...any) (found []string, err error) {
	err = eachRow(ctx, db, query, args, func(rows *sql.Rows) error {
		var text string
		err := rows.Scan(&text)
		found = append(found, text)
		return err
	})
	return found, err
}

// A querier is a database, a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// eachRow calls scan for every row of a query's result, until it returns an
// error.
func eachRow(ctx context.Context, q querier, query string, args []any, scan func(*sql.Rows) error) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
