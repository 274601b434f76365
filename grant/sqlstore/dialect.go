package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// A Dialect is what a kind of database does in its own way. It must be made by
// PostgreSQL or MySQL.
type Dialect struct {
	name      string
	quote     byte
	get       string // the value of a key, and whether this is a replica
	insert    string
	update    string
	list      string // keys from one on and below another, so many
	lineage   string
	primary   string // whether this is a replica
	exists    string // fails if the table is not there
	create    string
	parameter func(n int) string

	// refused reports whether an error is an answer of the server that says for
	// certain that a statement has changed nothing.
	refused func(error) bool
	// duplicate reports whether an error says that a key is there already.
	duplicate func(error) bool
	// missing reports whether an error says that there is no such table.
	missing func(error) bool
	// check returns what makes the database unfit.
	check func(context.Context, *sql.DB) error
}

func (d *Dialect) String() string { return d.name }

// PostgreSQL is the dialect of PostgreSQL 11 and newer. The errors of its driver
// must have a method SQLState() string, as those of pgx and of lib/pq do.
func PostgreSQL() *Dialect {
	state := func(err error) string {
		var e interface{ SQLState() string }
		if errors.As(err, &e) {
			return e.SQLState()
		}
		return ""
	}
	return &Dialect{
		name:      "PostgreSQL",
		quote:     '"',
		get:       `SELECT (SELECT v FROM {T} WHERE k = $1), pg_is_in_recovery()`,
		insert:    `INSERT INTO {T} (k, v, n) VALUES ($1, $2, 1) ON CONFLICT (k) DO NOTHING`,
		update:    `UPDATE {T} SET v = $1, n = n + 1 WHERE k = $2 AND v = $3`,
		list:      `SELECT k, v FROM {T} WHERE k >= $1 AND k < $2 ORDER BY k LIMIT $3`,
		lineage:   `SELECT (SELECT v FROM {T} WHERE k = '!identity'), (SELECT COALESCE(SUM(n), 0)::bigint FROM {T}), pg_is_in_recovery()`,
		primary:   `SELECT pg_is_in_recovery()`,
		exists:    `SELECT k, v, n FROM {T} LIMIT 0`,
		create:    `CREATE TABLE {T} (k varchar(256) COLLATE "C" PRIMARY KEY, v bytea NOT NULL, n bigint NOT NULL)`,
		parameter: func(n int) string { return fmt.Sprintf("$%d", n) },
		refused: func(err error) bool {
			switch s := state(err); {
			case s == "40001", s == "40P01", s == "55P03", s == "25006": // serialization, deadlock, lock, read only
				return true
			case len(s) == 5:
				switch s[:2] { // bad data, bad reference, syntax or permission, authentication, no such database
				case "22", "23", "42", "28", "3D":
					return true
				}
			}
			return false
		},
		duplicate: func(error) bool { return false }, // ON CONFLICT says so
		missing:   func(err error) bool { return state(err) == "42P01" },
		check:     checkPostgreSQL,
	}
}

// checkPostgreSQL sees that what is committed is on disk.
func checkPostgreSQL(ctx context.Context, db *sql.DB) error {
	var fsync, synchronous, full string
	if err := db.QueryRowContext(ctx, `SELECT current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes')`).Scan(&fsync, &synchronous, &full); err != nil {
		return err
	}
	switch {
	case fsync != "on":
		return fmt.Errorf("%w: fsync is %s: a power loss would take back what is committed; set fsync = on", ErrUnfit, fsync)
	case full != "on":
		return fmt.Errorf("%w: full_page_writes is %s: a power loss may damage the table; set full_page_writes = on", ErrUnfit, full)
	case synchronous == "off":
		return fmt.Errorf("%w: synchronous_commit is off for this user: a crash would take back what is committed; ALTER ROLE … SET synchronous_commit = on", ErrUnfit)
	}
	return nil
}

// MySQL is the dialect of MySQL 5.7 and MariaDB 10.3 and newer, with InnoDB. Number
// returns the server's number of a driver's error, and 0 where it has none.
func MySQL(number func(error) uint16) *Dialect {
	return &Dialect{
		name:      "MySQL",
		quote:     '`',
		get:       "SELECT (SELECT v FROM {T} WHERE k = ?), @@global.read_only",
		insert:    "INSERT INTO {T} (k, v, n) VALUES (?, ?, 1)",
		update:    "UPDATE {T} SET v = ?, n = n + 1 WHERE k = ? AND v = ?",
		list:      "SELECT k, v FROM {T} WHERE k >= ? AND k < ? ORDER BY k LIMIT ?",
		lineage:   "SELECT (SELECT v FROM {T} WHERE k = '!identity'), (SELECT CAST(COALESCE(SUM(n), 0) AS SIGNED) FROM {T}), @@global.read_only",
		primary:   "SELECT @@global.read_only",
		exists:    "SELECT k, v, n FROM {T} LIMIT 0",
		create:    "CREATE TABLE {T} (k VARBINARY(256) PRIMARY KEY, v VARBINARY(4096) NOT NULL, n BIGINT NOT NULL) ENGINE=InnoDB",
		parameter: func(int) string { return "?" },
		refused: func(err error) bool {
			switch number(err) {
			case 1205, 1213, // lock wait, deadlock
				1290, 1792, 1836, // read only
				1044, 1045, 1049, 1142, 1146, // who, which database and table
				1054, 1064, 1364, 1366, 1406: // columns, syntax, data
				return true
			}
			return false
		},
		duplicate: func(err error) bool { return number(err) == 1062 },
		missing:   func(err error) bool { return number(err) == 1146 },
		check:     checkMySQL,
	}
}

// checkMySQL sees that what is committed is on disk.
func checkMySQL(ctx context.Context, db *sql.DB) error {
	var flush int
	if err := db.QueryRowContext(ctx, "SELECT @@global.innodb_flush_log_at_trx_commit").Scan(&flush); err != nil {
		return err
	}
	if flush != 1 {
		return fmt.Errorf("%w: innodb_flush_log_at_trx_commit is %d: a power loss would take back what is committed; set it to 1", ErrUnfit, flush)
	}
	return nil
}

// quoted is the name of a table as it stands in a statement.
func (d *Dialect) quoted(table string) (string, error) {
	parts := strings.Split(table, ".")
	for i, p := range parts {
		ok := len(p) > 0 && len(p) <= 63 && (p[0] < '0' || p[0] > '9')
		for _, c := range []byte(p) {
			ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_')
		}
		if !ok || len(parts) > 2 {
			return "", fmt.Errorf("sqlstore: table %q: a name has 1 to 63 of a-z, 0-9 and _, begins with no digit, and may follow a schema and a dot", table)
		}
		parts[i] = string(d.quote) + p + string(d.quote)
	}
	return strings.Join(parts, "."), nil
}
