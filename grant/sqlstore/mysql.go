package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/firnid/firn/grant"
)

// MySQL returns the dialect of MySQL 5.7 and MariaDB 10.3 and later, with
// InnoDB. The function number returns the server's error number for an error of
// the driver, 2013 if the error means that the connection was lost, or 0.
//
// Connections must commit each statement by itself: Open rejects a database
// whose sessions begin with autocommit = 0, so set it to 1 in the driver's
// options. A connection that other code left inside a transaction, or with
// autocommit off, does no harm: each call begins with ROLLBACK, and a CAS ends
// with COMMIT. The database user should not be allowed to write to a server
// that is read_only, as root is: a CAS there has an unknown result, and leaves
// a transaction that other servers lack.
func MySQL(number func(error) uint16) *Dialect {
	return &Dialect{
		quote:  "`",
		insert: "INSERT INTO {T} (k, v, n) VALUES (?, ?, 1)",
		update: "UPDATE {T} SET v = ?, n = n + 1 WHERE k = ? AND v = ?",
		create: "CREATE TABLE {T} (k VARBINARY(256) PRIMARY KEY, v VARBINARY(4096) NOT NULL, n BIGINT NOT NULL) " +
			"ENGINE=InnoDB",
		// It is a number in most versions and a word in some of MariaDB. Two
		// servers that both accept writes cannot be ordered.
		primary:         []string{"CASE WHEN CAST(@@global.read_only AS CHAR) IN ('0', 'OFF') THEN 0 ELSE -1 END"},
		clock:           "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)), {P}",
		clockResolution: time.Millisecond,
		code: func(err error) string {
			if n := number(err); n != 0 {
				return strconv.Itoa(int(n))
			}
			return ""
		},
		refused: codes{"1205", "1213", "1020", // lock wait, deadlock, snapshot
			"1290", "1792", "1836", // read only
			"1044", "1045", "1049", "1142", "1143", "1146", // who, which database and table
			"1054", "1064", "1364", "1366", "1406", "1906", "3105", "4025"}, // columns, syntax, data
		again:     codes{"1213", "1020"},
		readOnly:  codes{"1290", "1792", "1836"},
		duplicate: codes{"1062"},
		missing:   codes{"1146"},
		denied:    codes{"1142", "1143"},
		down:      codes{"1040", "1203", "1053", "1077", "2013"}, // too many connections, shutting down, lost
		begin:     "ROLLBACK",
		commit:    "COMMIT",
		// A privileged user can write even to a server that is read_only: to one
		// that was replaced, over an older connection. The server is asked after
		// the commit, because the setting may have changed while the statement
		// was executed.
		settle:   "SELECT {P}, TRUE",
		warnings: warningsMySQL,
		faults:   faultsMySQL,
		check:    checkMySQL,
		dangers:  dangersMySQL,
	}
}

// faultsMySQL finds what changes rows or loses them in a crash. It sees
// triggers only if the user has the permission.
const faultsMySQL = `SELECT 'is not an ordinary table of InnoDB: a crash may damage it; ALTER TABLE … ENGINE=InnoDB', FALSE
		FROM information_schema.tables WHERE table_schema = {S} AND table_name = {N} AND NOT (table_type = 'BASE TABLE' AND COALESCE(engine, '') = 'InnoDB')
	UNION ALL SELECT 'has triggers, which may change what is written: drop them', FALSE
		FROM information_schema.triggers WHERE event_object_schema = {S} AND event_object_table = {N}
	UNION ALL SELECT 'has foreign keys, through which others change it: drop them', FALSE
		FROM information_schema.key_column_usage WHERE table_schema = {S} AND table_name = {N} AND referenced_table_name IS NOT NULL`

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
	session, err := variablesMySQL(ctx, db, "SESSION VARIABLES", "autocommit", "transaction_isolation", "tx_isolation",
		"sql_log_bin", "wsrep_on")
	if err != nil {
		return err
	}
	set, err := variablesMySQL(ctx, db, "GLOBAL VARIABLES", "innodb_flush_log_at_trx_commit", "innodb_flush_method",
		"log_bin", "sync_binlog", "wsrep_on")
	if err != nil {
		return err
	}
	switch flush := set["innodb_flush_log_at_trx_commit"]; {
	case session["autocommit"] != "ON":
		return fmt.Errorf("%w: autocommit is %s: nothing would be committed; set it to 1 in the driver's options",
			grant.ErrUnfit, session["autocommit"])
	case session["transaction_isolation"] == "READ-UNCOMMITTED", session["tx_isolation"] == "READ-UNCOMMITTED":
		return fmt.Errorf("%w: the isolation level is READ UNCOMMITTED: reads show uncommitted data; set "+
			"transaction_isolation to REPEATABLE-READ", grant.ErrUnfit)
	case session["sql_log_bin"] == "OFF":
		return fmt.Errorf("%w: sql_log_bin is OFF in this user's sessions: no replica receives the commits; remove it "+
			"from the driver's options and from init_connect", grant.ErrUnfit)
	case session["wsrep_on"] == "OFF" && set["wsrep_on"] == "ON":
		return fmt.Errorf("%w: wsrep_on is OFF in this user's sessions: no other node of the Galera cluster receives the "+
			"commits; remove it from the driver's options and from init_connect", grant.ErrUnfit)
	case flush != "1":
		return fmt.Errorf("%w: innodb_flush_log_at_trx_commit is %s: a power loss would undo commits; set it to 1",
			grant.ErrUnfit, flush)
	case slices.Contains([]string{"nosync", "littlesync"}, strings.ToLower(set["innodb_flush_method"])):
		return fmt.Errorf("%w: innodb_flush_method is %s, which does not wait for the disk: a power loss would undo "+
			"commits; set it to fsync or O_DIRECT", grant.ErrUnfit, set["innodb_flush_method"])
	case set["log_bin"] == "ON" && set["sync_binlog"] != "1":
		// After a crash, InnoDB undoes what the binary log does not contain.
		return fmt.Errorf("%w: the binary log is enabled and sync_binlog is %s: a power loss would undo commits; set it "+
			"to 1", grant.ErrUnfit, set["sync_binlog"])
	}
	return nil
}

// galeraAlone finds settings that let a minority of a cluster continue alone.
var galeraAlone = regexp.MustCompile(`(?i)\b(pc\.ignore_sb|pc\.ignore_quorum) *= *(?:true|yes|on|1)\b`)

// dangersMySQL looks for servers that may lack, or not show, committed data.
func dangersMySQL(ctx context.Context, db *sql.DB, _ *atomic.Bool) (found []string, err error) {
	set, err := variablesMySQL(ctx, db, "GLOBAL VARIABLES", "innodb_doublewrite", "wsrep_on", "wsrep_sync_wait",
		"wsrep_provider_options", "group_replication_group_name", "group_replication_consistency",
		"rpl_semi_sync_master_enabled", "rpl_semi_sync_source_enabled", "rpl_semi_sync_master_timeout",
		"rpl_semi_sync_source_timeout")
	if err != nil {
		return nil, err
	}
	// The first three are of MariaDB.
	status, err := variablesMySQL(ctx, db, "GLOBAL STATUS", "Slaves_connected", "Slave_running", "Slave_heartbeat_period",
		"Rpl_semi_sync_master_status", "Rpl_semi_sync_source_status")
	if err != nil {
		return nil, err
	}
	const repeat = "a promoted replica may lack commits, and then IDs repeat unless they are fenced"
	either := func(of map[string]string, format string) string {
		return of[fmt.Sprintf(format, "master")] + of[fmt.Sprintf(format, "source")] // the server has one of them
	}
	replicas, _ := strconv.Atoi(status["slaves_connected"])
	semi := either(set, "rpl_semi_sync_%s_enabled")
	switch {
	case semi == "ON" || semi == "1":
		found = append(found, fmt.Sprintf("semi-synchronous replication stops waiting for a replica after %s ms, without "+
			"an error: %s",
			either(set, "rpl_semi_sync_%s_timeout"), repeat))
		if either(status, "rpl_semi_sync_%s_status") == "OFF" {
			found = append(found, "semi-synchronous replication has stopped waiting for a replica, so a failover is not "+
				"safe: "+repeat)
		}
	case replicas > 0:
		found = append(found, "MariaDB has replicas: "+repeat)
	}
	// A replica whose threads have stopped still has the heartbeat that it asks
	// for.
	if heartbeat, _ := strconv.ParseFloat(status["slave_heartbeat_period"], 64); status["slave_running"] == "ON" ||
		heartbeat > 0 {
		// Most replicas are read_only only if configured.
		found = append(found, "this MariaDB replicates from another server, or did, and takes writes: if members use that "+
			"server too, each is a store of its own, and IDs repeat; set read_only on all but one")
	}
	if set["innodb_doublewrite"] == "OFF" {
		found = append(found, "innodb_doublewrite is OFF: a power loss may damage the table, unless the file system "+
			"writes pages as a whole")
	}
	if wait, _ := strconv.Atoi(set["wsrep_sync_wait"]); set["wsrep_on"] == "ON" && wait&1 == 0 {
		found = append(found, "this is a Galera cluster, and wsrep_sync_wait is "+set["wsrep_sync_wait"]+": a node may "+
			"show stale data; set it to 7")
	}
	if part := galeraAlone.FindStringSubmatch(set["wsrep_provider_options"]); set["wsrep_on"] == "ON" && part != nil {
		found = append(found, "this is a Galera cluster, and "+part[1]+" is true: a part that is cut off continues by "+
			"itself, and IDs repeat; set it to false")
	}
	if set["group_replication_group_name"] != "" && set["group_replication_consistency"] == "EVENTUAL" {
		found = append(found, "group_replication_consistency is EVENTUAL: a new primary may show stale data; set it to "+
			"BEFORE_ON_PRIMARY_FAILOVER")
	}
	return found, nil
}
