package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MySQL returns the dialect of MySQL 5.7 and MariaDB 10.3 and later, with
// InnoDB. The function number returns the server's error number for an error of
// the driver, or 0 if it has none.
//
// Connections must commit each statement by itself: New rejects a database
// whose sessions begin with autocommit = 0, so set it to 1 in the driver's
// options. A connection that other code left inside a transaction, or with
// autocommit off, does no harm: each call begins with ROLLBACK, and a CAS ends
// with COMMIT. The database user should not be allowed to write to a server
// that is read_only, as root is: a CAS there has an unknown result, and leaves
// a transaction that other servers lack.
func MySQL(number func(error) uint16) *Dialect {
	is := func(numbers ...uint16) func(error) bool {
		return func(err error) bool { return slices.Contains(numbers, number(err)) }
	}
	return &Dialect{
		name:      "MySQL",
		quote:     '`',
		get:       "SELECT (SELECT v FROM {T} WHERE k = ?), {P}",
		insert:    "INSERT INTO {T} (k, v, n) VALUES (?, ?, 1)",
		update:    "UPDATE {T} SET v = ?, n = n + 1 WHERE k = ? AND v = ?",
		list:      "SELECT k, v, {P} FROM {T} WHERE k >= ? AND k < ? ORDER BY k LIMIT ?",
		lineage:   "SELECT (SELECT v FROM {T} WHERE k = '!identity'), (SELECT CAST(COALESCE(SUM(n), 0) AS SIGNED) FROM {T}), {P}",
		exists:    "SELECT k, v, n FROM {T} LIMIT 0",
		rows:      "SELECT EXISTS (SELECT 1 FROM {T})",
		create:    "CREATE TABLE {T} (k VARBINARY(256) PRIMARY KEY, v VARBINARY(4096) NOT NULL, n BIGINT NOT NULL) ENGINE=InnoDB",
		parameter: func(int) string { return "?" },
		// It is a number in most versions and a word in some of MariaDB. Two
		// servers that both accept writes cannot be ordered.
		primary:         []string{"CASE WHEN CAST(@@global.read_only AS CHAR) IN ('0', 'OFF') THEN 0 ELSE -1 END"},
		clock:           "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)), {P}",
		clockResolution: time.Millisecond,
		refused: is(1205, 1213, 1020, // lock wait, deadlock, snapshot
			1290, 1792, 1836, // read only
			1044, 1045, 1049, 1142, 1143, 1146, // who, which database and table
			1054, 1064, 1364, 1366, 1406), // columns, syntax, data
		again:    is(1213, 1020),
		readOnly: is(1290, 1792, 1836),
		begin:    "ROLLBACK",
		commit:   "COMMIT",
		// A privileged user can write even to a server that is read_only: to one
		// that was replaced, over an older connection. The server is asked after
		// the commit, because the setting may have changed while the statement
		// was executed.
		settle:     "SELECT {P}, TRUE",
		duplicate:  is(1062),
		missing:    is(1146),
		denied:     is(1142, 1143),
		warnings:   warningsMySQL,
		schemas:    schemasMySQL,
		checkTable: checkTableMySQL,
		check:      checkMySQL,
		dangers:    dangersMySQL,
	}
}

// warningsMySQL returns the warnings about the last statement of a connection,
// such as a truncated value. Notes do not count as warnings.
func warningsMySQL(ctx context.Context, conn *sql.Conn) (found []string, err error) {
	var n int
	if err := conn.QueryRowContext(ctx, "SHOW COUNT(*) WARNINGS").Scan(&n); err != nil || n == 0 {
		return nil, err
	}
	shown := 0
	err = eachRow(ctx, conn, "SHOW WARNINGS", nil, func(rows *sql.Rows) error {
		shown++
		var level, text string
		var code int
		err := rows.Scan(&level, &code, &text)
		if level != "Note" {
			found = append(found, fmt.Sprintf("%s (%d)", text, code))
		}
		return err
	})
	if shown < n && len(found) == 0 { // max_error_count hides them
		found = append(found, fmt.Sprintf("%d warnings", n))
	}
	return found, err
}

// variablesMySQL returns settings or figures of the server by their names in
// lower case. what is GLOBAL VARIABLES, SESSION VARIABLES or GLOBAL STATUS.
func variablesMySQL(ctx context.Context, db *sql.DB, what string, names ...string) (map[string]string, error) {
	set := make(map[string]string)
	query := "SHOW " + what + " WHERE Variable_name IN ('" + strings.Join(names, "', '") + "')"
	err := eachRow(ctx, db, query, nil, func(rows *sql.Rows) error {
		var name, value string
		err := rows.Scan(&name, &value)
		set[strings.ToLower(name)] = value
		return err
	})
	return set, err
}

// checkMySQL checks that statements are committed and that commits are on disk.
func checkMySQL(ctx context.Context, db *sql.DB) error {
	session, err := variablesMySQL(ctx, db, "SESSION VARIABLES", "autocommit", "transaction_isolation", "tx_isolation", "sql_log_bin", "wsrep_on")
	if err != nil {
		return err
	}
	set, err := variablesMySQL(ctx, db, "GLOBAL VARIABLES", "innodb_flush_log_at_trx_commit", "innodb_flush_method", "log_bin", "sync_binlog", "wsrep_on")
	if err != nil {
		return err
	}
	switch flush := set["innodb_flush_log_at_trx_commit"]; {
	case session["autocommit"] != "ON":
		return fmt.Errorf("%w: autocommit is %s: nothing would be committed; set it to 1 in the driver's options", ErrUnfit, session["autocommit"])
	case session["transaction_isolation"] == "READ-UNCOMMITTED", session["tx_isolation"] == "READ-UNCOMMITTED":
		return fmt.Errorf("%w: the isolation level is READ UNCOMMITTED: reads show uncommitted data; set transaction_isolation to REPEATABLE-READ", ErrUnfit)
	case session["sql_log_bin"] == "OFF":
		return fmt.Errorf("%w: sql_log_bin is OFF in this user's sessions: no replica receives the commits; remove it from the driver's options and from init_connect", ErrUnfit)
	case session["wsrep_on"] == "OFF" && set["wsrep_on"] == "ON":
		return fmt.Errorf("%w: wsrep_on is OFF in this user's sessions: no other node of the Galera cluster receives the commits; remove it from the driver's options and from init_connect", ErrUnfit)
	case flush != "1":
		return fmt.Errorf("%w: innodb_flush_log_at_trx_commit is %s: a power loss would undo commits; set it to 1", ErrUnfit, flush)
	case strings.EqualFold(set["innodb_flush_method"], "nosync"), strings.EqualFold(set["innodb_flush_method"], "littlesync"):
		return fmt.Errorf("%w: innodb_flush_method is %s, which does not wait for the disk: a power loss would undo commits; set it to fsync or O_DIRECT", ErrUnfit, set["innodb_flush_method"])
	case set["log_bin"] == "ON" && set["sync_binlog"] != "1":
		// After a crash, InnoDB undoes what the binary log does not contain.
		return fmt.Errorf("%w: the binary log is enabled and sync_binlog is %s: a power loss would undo commits; set it to 1", ErrUnfit, set["sync_binlog"])
	}
	return nil
}

func schemasMySQL(ctx context.Context, db *sql.DB, _ string) ([]string, error) {
	return texts(ctx, db, "SELECT DATABASE()")
}

// checkTableMySQL checks that the table survives a crash and stores bytes
// unchanged. It sees triggers only if the user has the permission.
func checkTableMySQL(ctx context.Context, db *sql.DB, schema, name string) error {
	table := schema + "." + name
	var kind, engine string
	err := db.QueryRowContext(ctx, "SELECT table_type, COALESCE(engine, '') FROM information_schema.tables WHERE table_schema = ? AND table_name = ?", schema, name).Scan(&kind, &engine)
	switch {
	case err != nil:
		return err
	case kind != "BASE TABLE":
		return fmt.Errorf("%w: %s is a %s; name an ordinary table", errSchema, table, strings.ToLower(kind))
	case !strings.EqualFold(engine, "InnoDB"):
		return fmt.Errorf("%w: table %s has the engine %s; ALTER TABLE %s ENGINE=InnoDB", ErrUnfit, table, engine, table)
	}
	if err := checkColumnsMySQL(ctx, db, schema, name); err != nil {
		return err
	}
	for what, query := range map[string]string{
		"unique indexes on more than column k, or on its beginning": `SELECT index_name FROM information_schema.statistics WHERE table_schema = ? AND table_name = ? AND non_unique = 0
			GROUP BY index_name HAVING COUNT(*) <> 1 OR MAX(LOWER(column_name) = 'k' AND sub_part IS NULL) = 0`,
		"triggers, which may change what is written": "SELECT trigger_name FROM information_schema.triggers WHERE event_object_schema = ? AND event_object_table = ?",
		"foreign keys, through which others change it": `SELECT constraint_name FROM information_schema.key_column_usage
			WHERE table_schema = ? AND table_name = ? AND referenced_table_name IS NOT NULL`,
	} {
		names, err := texts(ctx, db, query, schema, name)
		if err != nil {
			return err
		}
		if len(names) > 0 {
			return fmt.Errorf("%w: table %s has %s: drop %s", errSchema, table, what, strings.Join(names, ", "))
		}
	}
	keys, err := texts(ctx, db, `SELECT index_name FROM information_schema.statistics WHERE table_schema = ? AND table_name = ? AND non_unique = 0`, schema, name)
	if err == nil && len(keys) == 0 {
		return fmt.Errorf("%w: column k of table %s is not unique; ALTER TABLE %s ADD PRIMARY KEY (k)", errSchema, table, table)
	}
	return err
}

func checkColumnsMySQL(ctx context.Context, db *sql.DB, schema, name string) error {
	table := schema + "." + name
	return eachRow(ctx, db, `SELECT LOWER(column_name), LOWER(data_type), LOWER(column_type), is_nullable = 'YES', COALESCE(character_octet_length, 0),
			column_default IS NULL, UPPER(extra) LIKE '%AUTO_INCREMENT%', UPPER(extra) LIKE '%VIRTUAL%' OR UPPER(extra) LIKE '%STORED%' OR UPPER(extra) LIKE '%PERSISTENT%'
		FROM information_schema.columns WHERE table_schema = ? AND table_name = ?`, []any{schema, name}, func(rows *sql.Rows) error {
		var column, kind, full string
		var null, unset, counts, generated bool
		var length uint64
		if err := rows.Scan(&column, &kind, &full, &null, &length, &unset, &counts, &generated); err != nil {
			return err
		}
		wrong := func(what, mend string) error {
			return fmt.Errorf("%w: column %s of table %s %s; %s", errSchema, column, table, what, mend)
		}
		bytes := kind == "varbinary" || kind == "blob" || kind == "mediumblob" || kind == "longblob"
		switch want := map[string]string{"k": "VARBINARY(256)", "v": "VARBINARY(4096)", "n": "BIGINT"}[column]; {
		case want == "" && !null && unset && !counts && !generated:
			return wrong("has no default and must not be null, so nothing can be inserted", "drop it, or give it a default")
		case want == "":
			return nil
		case generated:
			return wrong("is generated", "make it one of "+want)
		case column == "k" && (kind != "varbinary" || length < 256),
			column == "v" && (!bytes || length < 4096),
			column == "n" && kind != "bigint":
			return wrong("is of type "+full+", which does not keep what is written", "ALTER TABLE "+table+" MODIFY "+column+" "+want+" NOT NULL")
		case null:
			return wrong("may be null", "ALTER TABLE "+table+" MODIFY "+column+" "+want+" NOT NULL")
		}
		return nil
	})
}

// galeraAlone finds settings that let a minority of a cluster continue alone.
var galeraAlone = regexp.MustCompile(`(?i)\b(pc\.ignore_sb|pc\.ignore_quorum) *= *(?:true|yes|on|1)\b`)

// dangersMySQL looks for servers that may lack, or not show, committed data.
func dangersMySQL(ctx context.Context, db *sql.DB, m *memory) (found []string, err error) {
	set, err := variablesMySQL(ctx, db, "GLOBAL VARIABLES", "innodb_doublewrite", "wsrep_on", "wsrep_sync_wait", "wsrep_provider_options", "group_replication_group_name", "group_replication_consistency",
		"rpl_semi_sync_master_enabled", "rpl_semi_sync_source_enabled", "rpl_semi_sync_master_timeout", "rpl_semi_sync_source_timeout")
	if err != nil {
		return nil, err
	}
	status, err := variablesMySQL(ctx, db, "GLOBAL STATUS", "Slaves_connected", "Slave_running", "Slave_heartbeat_period", // in MariaDB
		"Rpl_semi_sync_master_status", "Rpl_semi_sync_source_status", "Rpl_semi_sync_master_no_tx", "Rpl_semi_sync_source_no_tx")
	if err != nil {
		return nil, err
	}
	const repeat = "a promoted replica may lack commits, and then IDs repeat unless they are fenced"
	either := func(of map[string]string, format string) string {
		return of[fmt.Sprintf(format, "master")] + of[fmt.Sprintf(format, "source")] // the server has one of them
	}
	replicas, _ := strconv.Atoi(status["slaves_connected"])
	semi := either(set, "rpl_semi_sync_%s_enabled")
	alone, _ := strconv.ParseInt(either(status, "rpl_semi_sync_%s_no_tx"), 10, 64)
	switch {
	case semi == "ON" || semi == "1":
		found = append(found, fmt.Sprintf("semi-synchronous replication stops waiting for a replica after %s ms, without an error: %s",
			either(set, "rpl_semi_sync_%s_timeout"), repeat))
		if either(status, "rpl_semi_sync_%s_status") == "OFF" {
			found = append(found, "semi-synchronous replication has stopped waiting for a replica, so a failover is not safe: "+repeat)
		}
		if m.known && alone > m.alone {
			found = append(found, "semi-synchronous replication did not wait for a replica in some transactions since this process started, which a failover may lose: IDs then repeat unless they are fenced")
		}
	case replicas > 0:
		found = append(found, "MariaDB has replicas: "+repeat)
	}
	// A replica whose threads have stopped still has the heartbeat that it asks
	// for.
	if heartbeat, _ := strconv.ParseFloat(status["slave_heartbeat_period"], 64); status["slave_running"] == "ON" || heartbeat > 0 {
		// Most replicas are read_only only if configured.
		found = append(found, "this MariaDB replicates from another server, or did, and takes writes: if members use that server too, each is a store of its own, and IDs repeat; set read_only on all but one")
	}
	if !m.known || alone < m.alone { // it was restarted
		m.known, m.alone = true, alone
	}
	if set["innodb_doublewrite"] == "OFF" {
		found = append(found, "innodb_doublewrite is OFF: a power loss may damage the table, unless the file system writes pages as a whole")
	}
	if wait, _ := strconv.Atoi(set["wsrep_sync_wait"]); set["wsrep_on"] == "ON" && wait&1 == 0 {
		found = append(found, "this is a Galera cluster, and wsrep_sync_wait is "+set["wsrep_sync_wait"]+": a node may show stale data; set it to 7")
	}
	if part := galeraAlone.FindStringSubmatch(set["wsrep_provider_options"]); set["wsrep_on"] == "ON" && part != nil {
		found = append(found, "this is a Galera cluster, and "+part[1]+" is true: a part that is cut off continues by itself, and IDs repeat; set it to false")
	}
	if set["group_replication_group_name"] != "" && set["group_replication_consistency"] == "EVENTUAL" {
		found = append(found, "group_replication_consistency is EVENTUAL: a new primary may show stale data; set it to BEFORE_ON_PRIMARY_FAILOVER")
	}
	return found, nil
}
