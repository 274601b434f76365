package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
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

	// clock returns the microseconds since 1970 by the server's clock, at a moment
	// between request and answer, and whether this is a replica. It must depend
	// neither on the time zone nor on when a transaction began.
	clock           string
	clockResolution time.Duration

	// refused reports whether an error is an answer of the server that says for
	// certain that a statement has changed nothing.
	refused func(error) bool
	// again reports whether an error is one that is refused only because others were
	// at work at that moment, so that it may go well at the next try.
	again func(error) bool
	// readOnly reports whether an error is one that is refused because the server
	// takes no writes.
	readOnly func(error) bool
	// duplicate reports whether an error says that a key is there already.
	duplicate func(error) bool
	// missing reports whether an error says that there is no such table.
	missing func(error) bool
	// check returns what makes the database unfit, and checkTable what makes the
	// table unfit, whose name it gets plain.
	check      func(context.Context, *sql.DB) error
	checkTable func(ctx context.Context, db *sql.DB, table string) error
	// findings returns what is dangerous although the database can be used.
	findings func(context.Context, *sql.DB) ([]string, error)
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
		clock:     `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, pg_is_in_recovery()`,

		clockResolution: time.Microsecond,
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
		again:      func(err error) bool { return state(err) == "40001" || state(err) == "40P01" },
		readOnly:   func(err error) bool { return state(err) == "25006" },
		duplicate:  func(error) bool { return false }, // ON CONFLICT says so
		missing:    func(err error) bool { return state(err) == "42P01" },
		check:      checkPostgreSQL,
		checkTable: checkTablePostgreSQL,
		findings:   findingsPostgreSQL,
	}
}

// checkPostgreSQL sees that what is committed is on disk.
func checkPostgreSQL(ctx context.Context, db *sql.DB) error {
	var fsync, synchronous, full, readOnly string
	if err := db.QueryRowContext(ctx, `SELECT current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes'), current_setting('transaction_read_only')`).Scan(&fsync, &synchronous, &full, &readOnly); err != nil {
		return err
	}
	switch {
	case readOnly != "off":
		return fmt.Errorf("%w: default_transaction_read_only is %s for this user; set it to off", ErrReplica, readOnly)
	case fsync != "on":
		return fmt.Errorf("%w: fsync is %s: a power loss would take back what is committed; set fsync = on", ErrUnfit, fsync)
	case full != "on":
		return fmt.Errorf("%w: full_page_writes is %s: a power loss may damage the table; set full_page_writes = on", ErrUnfit, full)
	case synchronous == "off":
		return fmt.Errorf("%w: synchronous_commit is off for this user: a crash would take back what is committed; ALTER ROLE … SET synchronous_commit = on", ErrUnfit)
	}
	return nil
}

// checkTablePostgreSQL sees that the table is there after a crash.
func checkTablePostgreSQL(ctx context.Context, db *sql.DB, table string) error {
	name := `"` + strings.ReplaceAll(table, ".", `"."`) + `"`
	var kind string
	err := db.QueryRowContext(ctx, `SELECT COALESCE((SELECT relpersistence::text FROM pg_class WHERE oid = to_regclass($1)), 'p')`, name).Scan(&kind)
	if err == nil && kind != "p" {
		return fmt.Errorf("%w: table %s is unlogged or temporary: a crash empties it; ALTER TABLE … SET LOGGED", ErrUnfit, table)
	}
	return err
}

// findingsPostgreSQL looks for replicas that may lack what was committed.
func findingsPostgreSQL(ctx context.Context, db *sql.DB) ([]string, error) {
	var names, commit string
	var replicas int
	err := db.QueryRowContext(ctx, `SELECT current_setting('synchronous_standby_names'), current_setting('synchronous_commit'), (SELECT count(*) FROM pg_stat_replication)`).Scan(&names, &commit, &replicas)
	switch {
	case err != nil:
		return nil, err
	case names == "" && replicas > 0:
		return []string{"PostgreSQL has replicas and waits for none (synchronous_standby_names is empty): one that is promoted may lack what was committed, and then IDs repeat unless they are fenced"}, nil
	case names != "" && (commit == "local" || commit == "remote_write"):
		return []string{fmt.Sprintf("synchronous_commit is %s: a replica that is promoted may lack what was committed, and then IDs repeat unless they are fenced; ALTER ROLE … SET synchronous_commit = on", commit)}, nil
	}
	return nil, nil
}

// mysqlReadOnly is whether MySQL takes no writes: a number in most versions, a word in
// some of MariaDB.
const mysqlReadOnly = "CAST(@@global.read_only AS CHAR) NOT IN ('0', 'OFF')"

// MySQL is the dialect of MySQL 5.7 and MariaDB 10.3 and newer, with InnoDB. Number
// returns the server's number of a driver's error, and 0 where it has none.
//
// Connections must commit each statement by itself: New refuses a database whose
// sessions begin with autocommit = 0, so set it to 1 in the driver's options. The user
// must not be one that may write to a server that is read_only.
func MySQL(number func(error) uint16) *Dialect {
	return &Dialect{
		name:      "MySQL",
		quote:     '`',
		get:       "SELECT (SELECT v FROM {T} WHERE k = ?), " + mysqlReadOnly,
		insert:    "INSERT INTO {T} (k, v, n) VALUES (?, ?, 1)",
		update:    "UPDATE {T} SET v = ?, n = n + 1 WHERE k = ? AND v = ?",
		list:      "SELECT k, v FROM {T} WHERE k >= ? AND k < ? ORDER BY k LIMIT ?",
		lineage:   "SELECT (SELECT v FROM {T} WHERE k = '!identity'), (SELECT CAST(COALESCE(SUM(n), 0) AS SIGNED) FROM {T}), " + mysqlReadOnly,
		primary:   "SELECT " + mysqlReadOnly,
		exists:    "SELECT k, v, n FROM {T} LIMIT 0",
		create:    "CREATE TABLE {T} (k VARBINARY(256) PRIMARY KEY, v VARBINARY(4096) NOT NULL, n BIGINT NOT NULL) ENGINE=InnoDB",
		parameter: func(int) string { return "?" },
		clock:     "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)), " + mysqlReadOnly,

		clockResolution: time.Millisecond,
		refused: func(err error) bool {
			switch number(err) {
			case 1205, 1213, 1020, // lock wait, deadlock, snapshot
				1290, 1792, 1836, // read only
				1044, 1045, 1049, 1142, 1146, // who, which database and table
				1054, 1064, 1364, 1366, 1406: // columns, syntax, data
				return true
			}
			return false
		},
		again: func(err error) bool { return number(err) == 1213 || number(err) == 1020 },
		readOnly: func(err error) bool {
			switch number(err) {
			case 1290, 1792, 1836:
				return true
			}
			return false
		},
		duplicate:  func(err error) bool { return number(err) == 1062 },
		missing:    func(err error) bool { return number(err) == 1146 },
		check:      checkMySQL,
		checkTable: checkTableMySQL,
		findings:   findingsMySQL,
	}
}

// settingsMySQL returns those of some global settings that the server has.
func settingsMySQL(ctx context.Context, db *sql.DB, names ...string) (_ map[string]string, err error) {
	rows, err := db.QueryContext(ctx, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('"+strings.Join(names, "', '")+"')")
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := rows.Close(); err == nil {
			err = e
		}
	}()
	settings := make(map[string]string)
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		settings[strings.ToLower(name)] = value
	}
	return settings, rows.Err()
}

// checkMySQL sees that what is executed is committed, and what is committed on disk.
func checkMySQL(ctx context.Context, db *sql.DB) error {
	var autocommit int
	if err := db.QueryRowContext(ctx, "SELECT @@session.autocommit").Scan(&autocommit); err != nil {
		return err
	}
	set, err := settingsMySQL(ctx, db, "innodb_flush_log_at_trx_commit", "log_bin", "sync_binlog")
	if err != nil {
		return err
	}
	switch flush := set["innodb_flush_log_at_trx_commit"]; {
	case autocommit != 1:
		return fmt.Errorf("%w: autocommit is %d: nothing would be committed; set it to 1 in the driver's options", ErrUnfit, autocommit)
	case flush != "1":
		return fmt.Errorf("%w: innodb_flush_log_at_trx_commit is %s: a power loss would take back what is committed; set it to 1", ErrUnfit, flush)
	case set["log_bin"] == "ON" && set["sync_binlog"] != "1":
		// After a crash InnoDB takes back what the binary log does not have.
		return fmt.Errorf("%w: there is a binary log, and sync_binlog is %s: a power loss would take back what is committed; set it to 1", ErrUnfit, set["sync_binlog"])
	}
	return nil
}

// checkTableMySQL sees that the table is there after a crash.
func checkTableMySQL(ctx context.Context, db *sql.DB, table string) error {
	schema, name, ok := strings.Cut(table, ".")
	if !ok {
		schema, name = "", table
	}
	var engine sql.NullString
	err := db.QueryRowContext(ctx, "SELECT engine FROM information_schema.tables WHERE table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND table_name = ?", schema, name).Scan(&engine)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil // a temporary one of this session cannot be: it has just connected
	case err == nil && !strings.EqualFold(engine.String, "InnoDB"):
		return fmt.Errorf("%w: table %s has the engine %s: ALTER TABLE … ENGINE=InnoDB", ErrUnfit, table, engine.String)
	}
	return err
}

// findingsMySQL looks for what may lack, or not show, what was committed.
func findingsMySQL(ctx context.Context, db *sql.DB) (found []string, err error) {
	set, err := settingsMySQL(ctx, db, "innodb_doublewrite", "wsrep_on", "wsrep_sync_wait", "group_replication_group_name", "group_replication_consistency")
	if err != nil {
		return nil, err
	}
	var replicas int
	var name string
	err = db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Slaves_connected'").Scan(&name, &replicas) // of MariaDB
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	if replicas > 0 {
		found = append(found, "MariaDB has replicas: one that is promoted may lack what was committed, and then IDs repeat unless they are fenced")
	}
	if set["innodb_doublewrite"] == "OFF" {
		found = append(found, "innodb_doublewrite is OFF: a power loss may damage the table, unless the file system writes pages as a whole")
	}
	if wait, _ := strconv.Atoi(set["wsrep_sync_wait"]); set["wsrep_on"] == "ON" && wait&1 == 0 {
		found = append(found, "this is a Galera cluster, and wsrep_sync_wait is "+set["wsrep_sync_wait"]+": a node may show what is old; set it to 7")
	}
	if set["group_replication_group_name"] != "" && set["group_replication_consistency"] == "EVENTUAL" {
		found = append(found, "group_replication_consistency is EVENTUAL: a new primary may show what is old; set it to BEFORE_ON_PRIMARY_FAILOVER")
	}
	return found, nil
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
