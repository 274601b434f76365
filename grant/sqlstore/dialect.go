package sqlstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/firnid/firn/grant"
)

// The statements that all databases have in common. {T} stands for the table,
// {P} for one of Dialect.primary.
const (
	getStatement     = `SELECT (SELECT v FROM {T} WHERE k = ?), {P}`
	listStatement    = `SELECT k, v, {P} FROM {T} WHERE k >= ? AND k < ? ORDER BY k LIMIT ?`
	lineageStatement = `SELECT (SELECT v FROM {T} WHERE k = '` + identityKey + `'), (SELECT COALESCE(SUM(n), 0) FROM {T}), {P}`
	existsStatement  = `SELECT k, v, n FROM {T} LIMIT 0` // fails if the table does not exist
	filledStatement  = `SELECT EXISTS (SELECT 1 FROM {T})`
)

// A Dialect is what is specific to a kind of database. It must be made by
// PostgreSQL or MySQL.
type Dialect struct {
	quote    string
	numbered bool   // parameters are $1, $2 and so on, not ?
	schema   string // of a table whose name has none; "" is the database of the connection

	insert, update, create string

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

	// code returns the server's code of an error, or "".
	code func(error) string

	refused   codes // a statement that certainly has changed nothing
	again     codes // of these, those due only to concurrent access: another attempt may succeed
	readOnly  codes // because the server accepts no writes
	duplicate codes // because the key already exists
	missing   codes // because the table does not exist
	denied    codes // because the user lacks a permission
	down      codes // the server may answer later

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

	// faults returns a row for each reason not to use the table that writing to
	// it may not show: a text, and whether the table is a copy of another. {S}
	// and {N} stand for the table's schema and name.
	faults string
	// check returns an error if the database is unsuitable.
	check func(context.Context, *sql.DB) error
	// dangers returns those that do not prevent the use of the database. It sets
	// waited once commits wait for a standby of PostgreSQL.
	dangers func(_ context.Context, _ *sql.DB, waited *atomic.Bool) ([]string, error)
}

// codes are codes of a server, or their beginnings.
type codes []string

// hasCode reports whether an error is an answer of the server with one of the
// codes.
func (d *Dialect) hasCode(err error, among codes) bool {
	if err == nil {
		return false
	}
	code := d.code(err)
	return code != "" && slices.ContainsFunc(among, func(c string) bool { return strings.HasPrefix(code, c) })
}

// isDown reports whether a server does not answer, or says that it cannot yet,
// and not that it and the client do not agree on TLS.
func (d *Dialect) isDown(err error) bool {
	if d.code(err) != "" {
		return d.hasCode(err, d.down)
	}
	op, isOp := errors.AsType[*net.OpError](err)
	switch {
	case isOp && op.Op == "remote error", // an alert, as crypto/tls says
		errors.As(err, new(*tls.CertificateVerificationError)), errors.As(err, new(tls.RecordHeaderError)),
		errors.As(err, new(x509.UnknownAuthorityError)), errors.As(err, new(x509.HostnameError)),
		errors.As(err, new(x509.CertificateInvalidError)):
		return false
	}
	_, isNetwork := errors.AsType[net.Error](err) // a deadline is one too
	return isNetwork || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, driver.ErrBadConn)
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
			return "", "", fmt.Errorf("%w: table %q: use 1 to 63 characters of a-z, 0-9 and _, not beginning with a digit, "+
				"optionally after a schema and a dot", grant.ErrOptions, table)
		}
	}
	if len(parts) == 2 {
		return parts[0], parts[1], nil
	}
	return d.schema, table, nil
}

// quoted returns the name of a table in the form for statements. Its parts have
// no quotes.
func (d *Dialect) quoted(schema, name string) string {
	quoted := d.quote + name + d.quote
	if schema != "" {
		quoted = d.quote + schema + d.quote + "." + quoted
	}
	return quoted
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
