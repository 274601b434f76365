package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/firnid/firn/grant"
)

// settings makes the commit of a statement independent of the session's
// settings: it is flushed to disk, it waits for the standbys in
// synchronous_standby_names, and the warning that it may not be replicated is
// sent. That holds for this transaction only. PostgreSQL reads the setting when
// it commits, before it resets it. The session's settings are not reliable:
// behind a pooler such as PgBouncer, another client may have set them.
const settings = `(SELECT
	set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true) AS flush,
	set_config('client_min_messages', 'warning', true) AS warn) AS settings`

// PostgreSQL returns the dialect of PostgreSQL 11 and later. The errors of its
// driver must have a method SQLState() string, as those of pgx and lib/pq do. A
// CAS needs Options.Warnings to detect that a wait for a standby was canceled.
func PostgreSQL() *Dialect {
	return &Dialect{
		quote:    `"`,
		numbered: true,
		schema:   "public",
		insert: `INSERT INTO {T} (k, v, n) SELECT ?::varchar, ?::bytea, 1 FROM ` + settings + `
			WHERE settings.flush <> '' AND settings.warn <> '' ON CONFLICT (k) DO NOTHING`,
		update: `UPDATE {T} SET v = ?::bytea, n = n + 1 FROM ` + settings + `
			WHERE k = ? AND v = ?::bytea AND settings.flush <> '' AND settings.warn <> ''`,
		create: `CREATE TABLE {T} (k varchar(256) COLLATE "C" PRIMARY KEY, v bytea NOT NULL, n bigint NOT NULL)`,
		primary: []string{
			// The timeline; each promotion begins a new one.
			`CASE WHEN pg_is_in_recovery() THEN -1 ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint END`,
			`CASE WHEN pg_is_in_recovery() THEN -1 ELSE 0 END`, // for services that hide the WAL
		},
		clock:           `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, {P}`,
		clockResolution: time.Microsecond,
		code: func(err error) string {
			var e interface{ SQLState() string }
			if errors.As(err, &e) {
				return e.SQLState()
			}
			return ""
		},
		refused: codes{"40001", "40P01", "55P03", "25006", // serialization, deadlock, lock, read only
			"22", "23", "42", "28", "3D"}, // bad data, bad reference, syntax or permission, authentication, no such database
		again:    codes{"40001", "40P01"},
		readOnly: codes{"25006"}, // a duplicate is handled by ON CONFLICT
		missing:  codes{"42P01"},
		denied:   codes{"42501"},
		down:     codes{"57P01", "57P02", "57P03", "53300", "08"}, // stopping, starting, too many connections, lost
		settle:   `SELECT {P}, txid_current_if_assigned() IS NULL`,
		faults:   faultsPostgreSQL,
		check:    checkPostgreSQL,
		dangers:  dangersPostgreSQL,
	}
}

// faultsPostgreSQL finds what changes or hides rows, or loses them in a crash.
// A copy accepts writes, and does not report that it is a replica; while its
// worker is down, or the other server, it only waits to go on.
const faultsPostgreSQL = `SELECT fault, copy FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace, LATERAL (VALUES
	(c.relkind <> 'r', false, 'is a view, or a partitioned or foreign table; name an ordinary one'),
	(c.relpersistence <> 'p', false, 'is unlogged or temporary: a crash empties it; ALTER TABLE … SET LOGGED'),
	(row_security_active(c.oid), false, 'has row security, which hides rows from this user; ALTER TABLE … DISABLE ROW LEVEL SECURITY'),
	(EXISTS (SELECT FROM pg_inherits WHERE c.oid IN (inhparent, inhrelid)), false, 'inherits from a table, or is inherited from; create one without inheritance'),
	(EXISTS (SELECT FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal AND tgenabled IN ('O', 'A')), false, 'has triggers, which may change what is written: drop them'),
	(EXISTS (SELECT FROM pg_rewrite WHERE ev_class = c.oid AND ev_type <> '1'), false, 'has rules, which may change what is written: drop them'),
	(EXISTS (SELECT FROM pg_constraint WHERE conrelid = c.oid AND contype IN ('f', 'x')), false, 'has constraints that depend on other rows: drop them'),
	(EXISTS (SELECT FROM pg_subscription_rel r
		JOIN pg_stat_subscription v ON v.subid = r.srsubid -- before PostgreSQL 14, users cannot read pg_subscription.oid
		JOIN pg_subscription u ON u.subname = v.subname AND u.subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())
		WHERE r.srrelid = c.oid AND u.subenabled), true,
		'is a copy that a subscription replicates from another server: connect to that server; once nothing writes there any more, ALTER SUBSCRIPTION … DISABLE')
	) AS faults (bad, copy, fault) WHERE bad AND s.nspname = {S} AND c.relname = {N}`

// checkPostgreSQL checks that commits are on disk. The statements of a Store set
// synchronous_commit themselves.
func checkPostgreSQL(ctx context.Context, db *sql.DB) error {
	var fsync, full, readOnly string
	const query = `SELECT current_setting('fsync'), current_setting('full_page_writes'),
		current_setting('transaction_read_only')`
	if err := db.QueryRowContext(ctx, query).Scan(&fsync, &full, &readOnly); err != nil {
		return err
	}
	switch {
	case readOnly != "off":
		return fmt.Errorf("%w: default_transaction_read_only is %s for this user; set it to off", ErrReplica, readOnly)
	case fsync != "on":
		return fmt.Errorf("%w: fsync is %s: a power loss would undo commits; set fsync = on", grant.ErrUnfit, fsync)
	case full != "on":
		return fmt.Errorf("%w: full_page_writes is %s: a power loss may damage the table; set full_page_writes = on",
			grant.ErrUnfit, full)
	}
	return nil
}

// dangersPostgreSQL looks for replicas that may lack commits.
func dangersPostgreSQL(ctx context.Context, db *sql.DB, waited *atomic.Bool) (found []string, err error) {
	var names, others string
	var replicas int
	// Any process that streams the log may count as a standby. A user without
	// the role pg_monitor does not see sync_state.
	err = db.QueryRowContext(ctx, `SELECT names,
		(SELECT count(*) FROM pg_stat_replication) + (SELECT count(*) FROM pg_replication_slots WHERE slot_type = 'physical' AND NOT active),
		(SELECT COALESCE(string_agg(DISTINCT COALESCE(r.application_name, 'a logical subscriber'), ', '), '')
			FROM pg_stat_replication r LEFT JOIN pg_replication_slots s ON s.active_pid = r.pid
			WHERE (s.slot_type = 'logical' OR r.application_name IN ('pg_receivewal', 'pg_basebackup', 'pg_recvlogical'))
				AND COALESCE(r.sync_state <> 'async', strpos(names, '*') > 0 OR strpos(lower(names), lower(r.application_name)) > 0))
		FROM current_setting('synchronous_standby_names') AS names`).
		Scan(&names, &replicas, &others)
	if err != nil {
		return nil, err
	}
	const repeat = "a promoted replica may lack commits, and then IDs repeat unless they are fenced"
	switch {
	case names == "" && waited.Load():
		found = append(found, "synchronous_standby_names is empty now: PostgreSQL no longer waits for any replica, so a "+
			"failover is not safe: "+repeat)
	case names == "" && replicas > 0:
		found = append(found, "PostgreSQL has replicas and waits for none (synchronous_standby_names is empty): "+repeat)
	}
	if names != "" && others != "" {
		found = append(found, fmt.Sprintf("synchronous_standby_names is %q, so %s may confirm a commit in place of a "+
			"standby: %s; name the standbys there",
			names, others, repeat))
	}
	if names != "" {
		waited.Store(true)
	}
	return found, nil
}
