//go:build !firn_local

package stores

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/sqlstore"
	"github.com/firnid/firn/server/internal/access/tlsconf"
)

// maxConns keeps the pool small: renewals are short and rarely concurrent.
const maxConns = 8

// configPostgreSQL converts a URL to the options of PostgreSQL and of the
// table.
func configPostgreSQL(u *parsed) (*pgx.ConnConfig, *sqlstore.Options, error) {
	o, err := tableOptions(u, sqlstore.PostgreSQL())
	if err != nil {
		return nil, nil, err
	}
	// These would replace a part of the URL without a word.
	for _, key := range []string{"user", "dbname", "database", "service", "servicefile", "host", "port"} {
		if u.query.Has(key) && (u.hosts != "" || key != "host" && key != "port") {
			return nil, nil, wrong("write postgres://USER@HOST:PORT/DATABASE; only the directory and port of a socket are "+
				"parameters: postgres://USER@/DATABASE?host=/run/postgresql&port=5433",
				"postgres: parameter %q is not allowed: name user, host, port and database before the ?", key)
		}
	}
	if u.hosts == "" && u.query.Get("host") == "" {
		return nil, nil, wrong("write a URL such as postgres://firn@db.example/firn", "postgres: the host is missing")
	}
	// PostgreSQL would use the database with the user's name: a different one for
	// each user.
	if u.path == "" {
		return nil, nil, wrong("write a URL such as postgres://firn@db.example/firn",
			"postgres: the database after the host is missing")
	}
	hosts := u.hosts
	if hosts != "" {
		addresses, err := u.addresses("5432")
		if err != nil {
			return nil, nil, err
		}
		hosts = strings.Join(addresses, ",") // a host without a port would get that of another host, or $PGPORT
	}
	if strings.Contains(u.hosts, ",") && u.query.Get("target_session_attrs") == "" {
		u.query.Set("target_session_attrs", "read-write") // whichever host is the primary
	}
	// Set the password separately, because errors of the parser show their input.
	plain := url.URL{Scheme: "postgres", Host: hosts, Path: "/" + u.path,
		RawQuery: strings.ReplaceAll(u.query.Encode(), "+", "%20")}
	if u.user != "" {
		plain.User = url.User(u.user)
	}
	c, err := pgx.ParseConfig(plain.String())
	if err != nil {
		return nil, nil, wrong("write a URL such as postgres://firn@db.example:5432/firn?sslmode=verify-full",
			"postgres: %w", innermost(err))
	}
	c.Password = cmp.Or(u.password, c.Password)
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, u.timeout)
	c.RuntimeParams["application_name"] = cmp.Or(c.RuntimeParams["application_name"], "firn")
	return c, o, nil
}

func preparePostgreSQL(u *parsed) (opener, error) {
	c, o, err := configPostgreSQL(u)
	if err != nil {
		return nil, err
	}
	c.OnNotice = keepWarning
	o.Warnings = takeWarnings
	return openTable(func() *sql.DB { return stdlib.OpenDB(*c) }, sqlstore.PostgreSQL(), o, u, func(err error) *Error {
		where := "postgres " + u.hosts
		pg, answered := errors.AsType[*pgconn.PgError](err)
		if !answered {
			return networkFault(where, err, "sslrootcert=FILE", "sslcert=FILE and sslkey=FILE")
		}
		e := fault(hintsPostgreSQL[pg.Code], "%s: %s", where, pg.Message) // earlier errors, such as of TLS, matter less
		e.InvalidURL = pg.Code == "42704" && pg.Severity == "FATAL"       // an unknown setting, when connecting
		return e
	}), nil
}

// hintsPostgreSQL says what to do, by the server's code.
var hintsPostgreSQL = map[string]string{
	"28P01": checkPassword, "28000": checkPassword,
	"3D000": "CREATE DATABASE, or name another one after the host",
	"42501": grantTable,
	"42704": "the parameters are create, table, password-file, timeout, and those of PostgreSQL's own URLs and settings",
	"42P05": usePooler, "26000": usePooler,
}

const (
	checkPassword = "check the user and its password; password-file=PATH reads it from a file"
	grantTable    = "GRANT SELECT, INSERT, UPDATE on the table; to create it, CREATE on its schema"
	usePooler     = "behind a pooler such as PgBouncer in transaction mode, add default_query_exec_mode=exec to the URL"
)

// warningsKey is where a pgx connection keeps the server's warnings. The data
// of a connection needs no lock: the goroutine that uses the connection also
// reads its notices.
const warningsKey = "firn.warnings"

// keepWarning keeps a notice that matters. The levels that do not are listed,
// so that an unknown level counts.
func keepWarning(c *pgconn.PgConn, n *pgconn.Notice) {
	level := n.SeverityUnlocalized
	if level == "" { // from a proxy, or a very old server
		level = n.Severity
	}
	switch level {
	case "NOTICE", "INFO", "LOG", "DEBUG":
		return
	}
	kept, _ := c.CustomData()[warningsKey].([]string)
	c.CustomData()[warningsKey] = append(kept, fmt.Sprintf("%s (%s)", n.Message, n.Code))
}

// takeWarnings implements sqlstore.Options.Warnings.
func takeWarnings(driverConn any) []string {
	data := driverConn.(*stdlib.Conn).Conn().PgConn().CustomData()
	kept, _ := data[warningsKey].([]string)
	delete(data, warningsKey)
	return kept
}

func prepareMySQL(u *parsed) (opener, error) {
	number := func(err error) uint16 {
		if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
			return e.Number
		}
		if errors.Is(err, mysql.ErrInvalidConn) {
			return lostMySQL
		}
		return 0
	}
	dialect := sqlstore.MySQL(number)
	o, err := tableOptions(u, dialect)
	if err != nil {
		return nil, err
	}
	c := mysql.NewConfig()
	if c.TLS, err = u.tls(); err != nil {
		return nil, err
	}
	socket := u.take("socket")
	if err := u.nothingElse("create, table, tls, ca, cert, key, socket, password-file and timeout"); err != nil {
		return nil, err
	}
	c.User, c.Passwd, c.DBName = u.user, u.password, u.path
	c.Timeout = u.timeout
	// Otherwise nothing would be committed on a server whose sessions begin with
	// autocommit=0.
	c.Params = map[string]string{"autocommit": "1"}
	c.Logger = log.New(io.Discard, "", 0) // errors are returned
	switch {
	case socket != "" && u.hosts != "":
		return nil, wrong("leave one of them out", "mysql: both a host and a socket are given")
	case socket != "":
		c.Net, c.Addr = "unix", socket
	default:
		addresses, err := u.addresses("3306")
		if err != nil {
			return nil, err
		}
		if len(addresses) > 1 {
			return nil, wrong("name the primary, or a proxy that finds it",
				"mysql: %d hosts are given, but only one is allowed", len(addresses))
		}
		c.Net, c.Addr = "tcp", addresses[0]
		if host, _, _ := net.SplitHostPort(c.Addr); c.TLS != nil && c.TLS.ServerName == "" {
			c.TLS.ServerName = host
		}
	}
	if c.DBName == "" {
		return nil, wrong("write a URL such as mysql://firn@db.example/firn", "mysql: the database after the host is missing")
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, wrong("", "mysql: %w", err)
	}
	return openTable(func() *sql.DB { return sql.OpenDB(connector) }, dialect, o, u, func(err error) *Error {
		where, n := "mysql "+c.Addr, number(err)
		if hint := hintsMySQL[n]; hint != "" {
			return fault(hint, "%s: %w", where, innermost(err))
		}
		return networkFault(where, err, "tls=true and ca=FILE", "cert=FILE and key=FILE")
	}), nil
}

// lostMySQL is the number of a lost connection, as sqlstore.MySQL wants it.
const lostMySQL = 2013

// hintsMySQL says what to do, by the server's number.
var hintsMySQL = map[uint16]string{
	1045: checkPassword, 1698: checkPassword,
	1044: grantTable, 1142: grantTable,
	1049: "CREATE DATABASE, or name another one after the host",
}

// tableOptions returns the options that all tables have.
func tableOptions(u *parsed, d *sqlstore.Dialect) (*sqlstore.Options, error) {
	create, err := u.flag("create")
	if err != nil {
		return nil, err
	}
	o := &sqlstore.Options{Table: u.take("table"), Create: create, CloseDB: true}
	_, err = sqlstore.Schema(d, o.Table)
	return o, err
}

// openTable returns what opens the table of a database, and closes the database
// if that fails. explain makes an *Error of an error that is not sqlstore's.
func openTable(connect func() *sql.DB, d *sqlstore.Dialect, o *sqlstore.Options, u *parsed,
	explain func(error) *Error) opener {
	return func(ctx context.Context) (grant.Store, error) {
		ctx, cancel := context.WithTimeout(ctx, u.timeout)
		defer cancel()
		db := connect()
		db.SetMaxOpenConns(maxConns)
		db.SetMaxIdleConns(maxConns)
		db.SetConnMaxIdleTime(5 * time.Minute)
		s, err := sqlstore.Open(ctx, db, d, o)
		if err == nil {
			return s, nil
		}
		_ = db.Close()
		switch {
		case errors.Is(err, sqlstore.ErrNoTable):
			schema, _ := sqlstore.Schema(d, o.Table)
			return nil, fault("check the database name; to create the table, add ?create=true once, "+
				"or run: "+strings.Join(schema, "; "),
				"%s: %w in database %q", u.scheme, err, u.path)
		case errors.Is(err, sqlstore.ErrReplica), errors.Is(err, grant.ErrUnfit):
			return nil, fault("do not drop the table: IDs would repeat; see docs/stores.md for what Firn needs of a database",
				"%s: %w", u.scheme, err)
		}
		e := explain(err)
		e.Unreachable = errors.Is(err, grant.ErrUnreachable)
		return nil, e
	}
}

// innermost returns the error of the network, which names the address, or the
// last one of a chain: drivers prefix it with the URL.
func innermost(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op
	}
	for {
		next := errors.Unwrap(err)
		if several, ok := err.(interface{ Unwrap() []error }); ok && len(several.Unwrap()) > 0 {
			next = several.Unwrap()[0]
		}
		if next == nil {
			return err
		}
		err = next
	}
}

// networkFault returns the error for a server that could not be reached, or an
// unknown error. ca and cert name the URL parameters for TLS files.
func networkFault(where string, err error, ca, cert string) *Error {
	_, isNetworkOp := errors.AsType[*net.OpError](err)
	hint := tlsconf.Hint(err, ca, cert)
	if hint == "" && (isNetworkOp || errors.Is(err, context.DeadlineExceeded)) {
		hint = "check that it is running, that host and port are right, and that no firewall is in between"
	}
	return fault(hint, "%s: %w", where, innermost(err))
}
