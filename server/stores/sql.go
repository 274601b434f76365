//go:build !firn_local

package stores

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/sqlstore"
	"github.com/firnid/firn/server/tlsconf"
)

// A pool is small: renewals are short, and few at a time.
const maxConns = 8

// configPostgreSQL is what a URL says of a PostgreSQL, and of the table.
func configPostgreSQL(u *parsed) (*pgx.ConnConfig, *sqlstore.Options, error) {
	o, err := tableOptions(u, sqlstore.PostgreSQL())
	if err != nil {
		return nil, nil, err
	}
	if u.hosts == "" && u.query.Get("host") == "" {
		return nil, nil, wrong("it is such as postgres://firn@db.example/firn", "postgres: there is no host")
	}
	// PostgreSQL would take the one with the user's name: another for each user.
	if u.path == "" && !slices.ContainsFunc([]string{"dbname", "database", "service"}, u.query.Has) {
		return nil, nil, wrong("it is such as postgres://firn@db.example/firn", "postgres: there is no database after the host")
	}
	if u.hosts != "" {
		if _, err := u.addresses("5432"); err != nil {
			return nil, nil, err
		}
	}
	if strings.Contains(u.hosts, ",") && u.query.Get("target_session_attrs") == "" {
		u.query.Set("target_session_attrs", "read-write") // the primary, whichever it is
	}
	// The password is set apart, as errors of the parser show what they parse.
	plain := url.URL{Scheme: "postgres", Host: u.hosts, Path: "/" + u.path, RawQuery: strings.ReplaceAll(u.query.Encode(), "+", "%20")}
	if u.user != "" {
		plain.User = url.User(u.user)
	}
	c, err := pgx.ParseConfig(plain.String())
	if err != nil {
		return nil, nil, wrong("it is such as postgres://firn@db.example:5432/firn?sslmode=verify-full", "postgres: %w", innermost(err))
	}
	if u.password != "" {
		c.Password = u.password
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = u.timeout
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "firn"
	}
	return c, o, nil
}

func openPostgreSQL(ctx context.Context, u *parsed, warn func(string)) (grant.Store, error) {
	c, o, err := configPostgreSQL(u)
	if err != nil {
		return nil, err
	}
	c.OnNotice = keepWarning
	o.Warnings = takeWarnings
	s, err := openTable(ctx, stdlib.OpenDB(*c), sqlstore.PostgreSQL(), o, u, warn)
	if err == nil {
		return s, nil
	}
	where := fmt.Sprintf("postgres %s", strings.Join(strings.Split(u.hosts, ","), ", "))
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch {
		case pg.Code == "28P01" || pg.Code == "28000":
			return nil, fault("check the user and its password; password-file=PATH reads it from a file", "%s refuses user %q: %s", where, c.User, pg.Message)
		case pg.Code == "3D000":
			return nil, fault("CREATE DATABASE "+c.Database+", or name another after the host", "%s: %s", where, pg.Message)
		case pg.Code == "42501":
			return nil, fault("GRANT SELECT, INSERT, UPDATE on the table; to create it, CREATE on its schema", "%s: user %q: %s", where, c.User, pg.Message)
		case pg.Code == "42704" && pg.Severity == "FATAL": // of a setting, as it connects
			return nil, wrong("there are create, table, password-file, timeout, and what PostgreSQL's own URLs and settings have", "%s: %s", where, pg.Message)
		case pg.Code == "42P05", pg.Code == "26000":
			return nil, fault("behind a pooler such as PgBouncer in transaction mode, add default_query_exec_mode=exec to the URL", "%s: %s", where, pg.Message)
		case pg.Code == "57P03":
			return nil, away(fault("try again in a moment", "%s: %s", where, pg.Message))
		}
	}
	var e *Error
	if errors.As(err, &e) {
		return nil, err
	}
	if strings.Contains(err.Error(), "invalid hex format") { // of a value, from pgx
		return nil, fault("the driver cannot read bytea_output = escape in this exec mode: ALTER ROLE "+c.User+" SET bytea_output = hex", "%s: %w", where, innermost(err))
	}
	if pg != nil { // what was tried before it, such as TLS, matters less
		e = fault("", "%s: %w", where, pg)
		// It shuts down, has too many connections, or lost this one.
		e.Unreachable = pg.Code == "57P01" || pg.Code == "57P02" || pg.Code == "53300" || strings.HasPrefix(pg.Code, "08")
		return nil, e
	}
	return nil, networkFault(where, err, "sslrootcert=FILE", "sslcert=FILE and sslkey=FILE")
}

// warningsKey is where a connection of pgx keeps what the server has warned of.
// The data of a connection are its own: the goroutine that uses the connection
// reads its notices too.
const warningsKey = "firn.warnings"

// keepWarning keeps a notice that matters. Which do not is known by name, so
// that one of a level that does not exist yet counts.
func keepWarning(c *pgconn.PgConn, n *pgconn.Notice) {
	level := n.SeverityUnlocalized
	if level == "" { // of a proxy, or of a very old server
		level = n.Severity
	}
	switch level {
	case "NOTICE", "INFO", "LOG", "DEBUG":
		return
	}
	kept, _ := c.CustomData()[warningsKey].([]string)
	c.CustomData()[warningsKey] = append(kept, fmt.Sprintf("%s (%s)", n.Message, n.Code))
}

// takeWarnings is sqlstore.Options.Warnings.
func takeWarnings(driverConn any) []string {
	data := driverConn.(*stdlib.Conn).Conn().PgConn().CustomData()
	kept, _ := data[warningsKey].([]string)
	delete(data, warningsKey)
	return kept
}

// configMySQL is what a URL says of a MySQL, and of the table.
func configMySQL(u *parsed) (*mysql.Config, *sqlstore.Options, error) {
	o, err := tableOptions(u, sqlstore.MySQL(func(error) uint16 { return 0 }))
	if err != nil {
		return nil, nil, err
	}
	c := mysql.NewConfig()
	if c.TLS, err = u.tls(); err != nil {
		return nil, nil, err
	}
	socket := u.take("socket")
	if err := u.nothingElse("create, table, tls, ca, cert, key, socket, password-file and timeout"); err != nil {
		return nil, nil, err
	}
	c.User, c.Passwd, c.DBName = u.user, u.password, u.path
	c.Timeout = u.timeout
	// Without it nothing would be committed on a server whose sessions begin with
	// 0.
	c.Params = map[string]string{"autocommit": "1"}
	c.Logger = log.New(io.Discard, "", 0) // errors are returned
	switch {
	case socket != "" && u.hosts != "":
		return nil, nil, wrong("leave one of them out", "mysql: there is a host and a socket")
	case socket != "":
		c.Net, c.Addr = "unix", socket
	default:
		addresses, err := u.addresses("3306")
		if err != nil {
			return nil, nil, err
		}
		if len(addresses) > 1 {
			return nil, nil, wrong("name the primary, or a proxy that finds it", "mysql: there are %d hosts", len(addresses))
		}
		c.Net, c.Addr = "tcp", addresses[0]
		if host, _, _ := net.SplitHostPort(c.Addr); c.TLS != nil && c.TLS.ServerName == "" {
			c.TLS.ServerName = host
		}
	}
	if c.DBName == "" {
		return nil, nil, wrong("it is such as mysql://firn@db.example/firn", "mysql: there is no database after the host")
	}
	return c, o, nil
}

func openMySQL(ctx context.Context, u *parsed, warn func(string)) (grant.Store, error) {
	c, o, err := configMySQL(u)
	if err != nil {
		return nil, err
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, wrong("", "mysql: %w", err)
	}
	number := func(err error) uint16 {
		var e *mysql.MySQLError
		if errors.As(err, &e) {
			return e.Number
		}
		return 0
	}
	s, err := openTable(ctx, sql.OpenDB(connector), sqlstore.MySQL(number), o, u, warn)
	if err == nil {
		return s, nil
	}
	where := "mysql " + c.Addr
	switch number(err) {
	case 1045, 1698:
		return nil, fault("check the user and its password; password-file=PATH reads it from a file", "%s refuses user %q", where, c.User)
	case 1044:
		return nil, fault("GRANT SELECT, INSERT, UPDATE on the table to it; to create it, CREATE", "%s: user %q may not use database %q", where, c.User, c.DBName)
	case 1142:
		return nil, fault("GRANT SELECT, INSERT, UPDATE on the table to it; to create it, CREATE", "%s: %w", where, innermost(err))
	case 1049:
		return nil, fault("CREATE DATABASE "+c.DBName+", or name another after the host", "%s: there is no database %q", where, c.DBName)
	}
	var e *Error
	if errors.As(err, &e) {
		return nil, err
	}
	e = networkFault(where, err, "tls=true and ca=FILE", "cert=FILE and key=FILE")
	switch number(err) {
	case 1040, 1053, 1077, 1203: // too many connections, or a shutdown
		e.Unreachable = true
	}
	e.Unreachable = e.Unreachable || errors.Is(err, mysql.ErrInvalidConn) // it hung up
	return nil, e
}

// tableOptions takes what all tables have.
func tableOptions(u *parsed, d *sqlstore.Dialect) (*sqlstore.Options, error) {
	create, err := u.flag("create")
	if err != nil {
		return nil, err
	}
	o := &sqlstore.Options{Table: u.take("table"), Create: create, CloseDB: true}
	if _, err := sqlstore.Schema(d, o.Table); err != nil {
		return nil, &Error{Err: err, URL: true}
	}
	return o, nil
}

// openTable opens the table of a database, which it closes if that fails.
func openTable(ctx context.Context, db *sql.DB, d *sqlstore.Dialect, o *sqlstore.Options, u *parsed, warn func(string)) (grant.Store, error) {
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	db.SetConnMaxIdleTime(5 * time.Minute)
	schema, err := sqlstore.Schema(d, o.Table)
	if err != nil {
		_ = db.Close()
		return nil, &Error{Err: err, URL: true}
	}
	o.Warn = warn
	s, err := sqlstore.New(ctx, db, d, o)
	if err == nil {
		return s, nil
	}
	_ = db.Close()
	switch {
	case errors.Is(err, sqlstore.ErrNoTable):
		return nil, fault("is the database right? To make the table, add ?create=true once, or run: "+strings.Join(schema, "; "), "%s: %w in database %q", u.scheme, err, u.path)
	case errors.Is(err, sqlstore.ErrDamaged):
		return nil, fault("do not drop the table: the IDs that it stands for would repeat. docs/operations.md shows how to restore it, and to fence with firn node fence", "%s: %w", u.scheme, err)
	case errors.Is(err, sqlstore.ErrSchema):
		return nil, fault("the right table is as this makes it: "+schema[0], "%s: %w", u.scheme, err)
	case errors.Is(err, sqlstore.ErrReplica), errors.Is(err, sqlstore.ErrUnfit):
		return nil, fault("", "%s: %w", u.scheme, err)
	}
	return nil, err
}

// innermost is the last error of a chain, or the first where there are several:
// what drivers put before it repeats the URL.
func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if several, ok := err.(interface{ Unwrap() []error }); ok && len(several.Unwrap()) > 0 {
			next = several.Unwrap()[0]
		}
		if next == nil {
			return err
		}
		var op *net.OpError
		if !errors.As(next, &op) {
			if _, ok := err.(*net.OpError); ok {
				return err // says what was dialled
			}
		}
		err = next
	}
}

// networkFault is an error of a server that was not reached, or of which more
// is not known. ca and cert are where the URL names files for TLS.
func networkFault(where string, err error, ca, cert string) *Error {
	hint := tlsconf.Hint(err, ca+" in the URL", cert+" in the URL")
	if hint == "" {
		hint = networkHint(err)
	}
	e := fault(hint, "%s: %w", where, innermost(err))
	e.Unreachable = isNetwork(err)
	return e
}

// away marks an error as one that may be over later.
func away(e *Error) *Error {
	e.Unreachable = true
	return e
}

// networkHint says what to do when a server is not reached.
func networkHint(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &dns):
		return "there is no such host: is its name right?"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &op):
		return "is it running, and do host and port name it? Is a firewall between?"
	}
	return ""
}
