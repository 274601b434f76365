package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// A Dialect is what a kind of database does in its own way. It must be made by
// PostgreSQL or MySQL.
//
// In its statements {T} stands for the table, and {P} for one of primary.
type Dialect struct {
	name      string
	quote     byte
	get       string // the value of a key, {P}
	insert    string
	update    string
	list      string // keys from one on and below another, so many, with {P}
	lineage   string // the identity, how often rows were written, {P}
	exists    string // fails if the table is not there
	rows      string // whether the table has any
	create    string
	parameter func(n int) string

	// primary are expressions for the server that answers: the first that the
	// server understands is used. Each is -1 on a replica. Otherwise it is 0, or
	// a number that is greater on a server that was promoted in place of another.
	primary []string

	// clock returns the microseconds since 1970 by the server's clock, at a moment
	// between request and answer, and {P}. It must depend neither on the time zone
	// nor on when a transaction began.
	clock           string
	clockResolution time.Duration

	// refused reports whether an error is an answer of the server that says for
	// certain that a statement has changed nothing.
	refused func(error) bool
	// again reports whether an error is one that is refused only because others
	// were at work at that moment, so that it may go well at the next try.
	again func(error) bool
	// readOnly reports whether an error is one that is refused because the server
	// takes no writes.
	readOnly func(error) bool
	// duplicate reports whether an error says that a key is there already.
	duplicate func(error) bool
	// missing reports whether an error says that the table does not exist.
	missing func(error) bool
	// denied reports whether an error says that the user lacks a permission.
	denied func(error) bool

	// begin and commit are statements around one that reads or writes: they end
	// what was left open on a connection, and commit what a CAS has changed,
	// whatever the connection is set to. They may be empty.
	begin, commit string
	// settle returns, as {P} does, what the server is, and whether a CAS just made
	// on this connection is committed. It is empty where commit sees to it.
	settle string

	// warnings returns what the server has warned of in the last statement of a
	// connection. It is nil where the driver alone knows, see Options.Warnings.
	warnings func(context.Context, *sql.Conn) ([]string, error)

	// schemas returns where the sessions of the user look for a table of this
	// name and find one, in their order.
	schemas func(ctx context.Context, db *sql.DB, name string) ([]string, error)
	// elsewhere returns the other schemas of the database with a table of this
	// name. It is nil where there is one only.
	elsewhere func(ctx context.Context, db *sql.DB, name string) ([]string, error)
	// checkTable returns what makes the table unfit.
	checkTable func(ctx context.Context, db *sql.DB, schema, name string) error
	// check returns what makes the database unfit.
	check func(context.Context, *sql.DB) error
	// findings returns what is dangerous although the database can be used.
	findings func(context.Context, *sql.DB, *memory) ([]finding, error)
}

func (d *Dialect) String() string { return d.name }

// split is the name of a table as Options have it, in its parts; the schema may
// be empty.
func (d *Dialect) split(table string) (schema, name string, err error) {
	parts := strings.Split(table, ".")
	for _, p := range parts {
		ok := len(p) > 0 && len(p) <= 63 && (p[0] < '0' || p[0] > '9')
		for _, c := range []byte(p) {
			ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_')
		}
		if !ok || len(parts) > 2 {
			return "", "", fmt.Errorf("sqlstore: table %q: a name has 1 to 63 of a-z, 0-9 and _, begins with no digit, and may follow a schema and a dot", table)
		}
	}
	if len(parts) == 2 {
		return parts[0], parts[1], nil
	}
	return "", table, nil
}

// quoted is the name of a table as it stands in a statement.
func (d *Dialect) quoted(schema, name string) string {
	q := string(d.quote)
	one := func(s string) string { return q + strings.ReplaceAll(s, q, q+q) + q }
	if schema == "" {
		return one(name)
	}
	return one(schema) + "." + one(name)
}

// texts returns the first column of a query's rows.
func texts(ctx context.Context, db *sql.DB, query string, args ...any) (found []string, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		found = append(found, text)
	}
	return found, rows.Err()
}
