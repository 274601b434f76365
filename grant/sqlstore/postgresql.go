package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
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
	state := func(err error) string {
		var e interface{ SQLState() string }
		if errors.As(err, &e) {
			return e.SQLState()
		}
		return ""
	}
	return &Dialect{
		name:  "PostgreSQL",
		quote: '"',
		get:   `SELECT (SELECT v FROM {T} WHERE k = $1), {P}`,
		insert: `INSERT INTO {T} (k, v, n) SELECT $1::varchar, $2::bytea, 1 FROM ` + settings + `
			WHERE settings.flush <> '' AND settings.warn <> '' ON CONFLICT (k) DO NOTHING`,
		update: `UPDATE {T} SET v = $1::bytea, n = n + 1 FROM ` + settings + `
			WHERE k = $2 AND v = $3::bytea AND settings.flush <> '' AND settings.warn <> ''`,
		list:      `SELECT k, v, {P} FROM {T} WHERE k >= $1 AND k < $2 ORDER BY k LIMIT $3`,
		lineage:   `SELECT (SELECT v FROM {T} WHERE k = '!identity'), (SELECT COALESCE(SUM(n), 0)::bigint FROM {T}), {P}`,
		exists:    `SELECT k, v, n FROM {T} LIMIT 0`,
		rows:      `SELECT EXISTS (SELECT 1 FROM {T})`,
		create:    `CREATE TABLE {T} (k varchar(256) COLLATE "C" PRIMARY KEY, v bytea NOT NULL, n bigint NOT NULL)`,
		parameter: func(n int) string { return fmt.Sprintf("$%d", n) },
		primary: []string{
			// The timeline; each promotion begins a new one.
			`CASE WHEN pg_is_in_recovery() THEN -1 ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint END`,
			`CASE WHEN pg_is_in_recovery() THEN -1 ELSE 0 END`, // for services that hide the WAL
		},
		clock:           `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, {P}`,
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
		settle:     `SELECT {P}, txid_current_if_assigned() IS NULL`,
		duplicate:  func(error) bool { return false }, // handled by ON CONFLICT
		missing:    func(err error) bool { return state(err) == "42P01" },
		denied:     func(err error) bool { return state(err) == "42501" },
		schemas:    schemasPostgreSQL,
		elsewhere:  elsewherePostgreSQL,
		checkTable: checkTablePostgreSQL,
		check:      checkPostgreSQL,
		dangers:    dangersPostgreSQL,
	}
}

// checkPostgreSQL checks that commits are on disk. The statements of a Store set
// synchronous_commit themselves.
func checkPostgreSQL(ctx context.Context, db *sql.DB) error {
	var fsync, full, readOnly string
	if err := db.QueryRowContext(ctx, `SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('transaction_read_only')`).Scan(&fsync, &full, &readOnly); err != nil {
		return err
	}
	switch {
	case readOnly != "off":
		return fmt.Errorf("%w: default_transaction_read_only is %s for this user; set it to off", ErrReplica, readOnly)
	case fsync != "on":
		return fmt.Errorf("%w: fsync is %s: a power loss would undo commits; set fsync = on", ErrUnfit, fsync)
	case full != "on":
		return fmt.Errorf("%w: full_page_writes is %s: a power loss may damage the table; set full_page_writes = on", ErrUnfit, full)
	}
	return nil
}

// schemasPostgreSQL follows the search path, without the schema of temporary
// tables, which differs between sessions.
func schemasPostgreSQL(ctx context.Context, db *sql.DB, name string) ([]string, error) {
	return texts(ctx, db, `SELECT n.nspname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relname = $1 AND n.nspname = ANY (current_schemas(false)) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
		ORDER BY array_position(current_schemas(false), n.nspname)`, name)
}

// elsewherePostgreSQL finds tables even in schemas that the user may not use:
// the catalog shows them all.
func elsewherePostgreSQL(ctx context.Context, db *sql.DB, name string) ([]string, error) {
	return texts(ctx, db, `SELECT n.nspname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relname = $1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relpersistence <> 't'
			AND n.nspname <> ALL (current_schemas(false)) ORDER BY n.nspname`, name)
}

// checkTablePostgreSQL checks that the table survives a crash and stores bytes
// unchanged.
func checkTablePostgreSQL(ctx context.Context, db *sql.DB, schema, name string) error {
	table := schema + "." + name
	var oid int64
	var kind, persistence string
	var secured, inherits bool
	var triggers, rules, foreign, subscriptions string
	err := db.QueryRowContext(ctx, `SELECT c.oid::bigint, c.relkind::text, c.relpersistence::text, row_security_active(c.oid),
			EXISTS (SELECT 1 FROM pg_inherits WHERE inhparent = c.oid OR inhrelid = c.oid),
			(SELECT COALESCE(string_agg(tgname::text, ', '), '') FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal AND tgenabled IN ('O', 'A')),
			(SELECT COALESCE(string_agg(rulename::text, ', '), '') FROM pg_rewrite WHERE ev_class = c.oid AND ev_type <> '1'),
			(SELECT COALESCE(string_agg(conname::text, ', '), '') FROM pg_constraint WHERE conrelid = c.oid AND contype IN ('f', 'x')),
			(SELECT COALESCE(string_agg(DISTINCT s.subname::text, ', '), '') FROM pg_subscription_rel r
				JOIN pg_stat_subscription v ON v.subid = r.srsubid -- before PostgreSQL 14, users cannot read pg_subscription.oid
				JOIN pg_subscription s ON s.subname = v.subname AND s.subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())
				WHERE r.srrelid = c.oid AND s.subenabled)
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2`, schema, name).
		Scan(&oid, &kind, &persistence, &secured, &inherits, &triggers, &rules, &foreign, &subscriptions)
	switch {
	case err != nil:
		return err
	case kind != "r":
		return fmt.Errorf("%w: %s is a view, or a partitioned or foreign table; name an ordinary one", errSchema, table)
	case persistence != "p":
		return fmt.Errorf("%w: table %s is unlogged or temporary: a crash empties it; ALTER TABLE %s SET LOGGED", ErrUnfit, table, table)
	case secured:
		return fmt.Errorf("%w: row security hides rows of table %s from this user; ALTER TABLE %s DISABLE ROW LEVEL SECURITY", errSchema, table, table)
	case inherits:
		return fmt.Errorf("%w: table %s inherits from a table, or is inherited from; create one without inheritance", errSchema, table)
	case triggers != "":
		return fmt.Errorf("%w: table %s has triggers, which may change what is written: drop %s", errSchema, table, triggers)
	case rules != "":
		return fmt.Errorf("%w: table %s has rules, which may change what is written: drop %s", errSchema, table, rules)
	case subscriptions != "":
		// It accepts writes, and does not report that it is a replica. While its
		// worker is down, or the other server, it only waits to go on.
		return fmt.Errorf("%w: table %s is a copy that the subscription %s replicates from another server: connect to that server; once nothing writes there any more, ALTER SUBSCRIPTION %s DISABLE",
			ErrReplica, table, subscriptions, subscriptions)
	case foreign != "":
		return fmt.Errorf("%w: table %s has constraints that depend on other rows: drop %s", errSchema, table, foreign)
	}
	if err := checkColumnsPostgreSQL(ctx, db, table, oid); err != nil {
		return err
	}
	return checkIndexesPostgreSQL(ctx, db, table, oid)
}

// bytewise tests whether a collation compares the bytes of a text. The
// database's default collation does if the database was created that way.
const bytewise = `EXISTS (SELECT 1 FROM pg_collation l JOIN pg_namespace s ON s.oid = l.collnamespace
	WHERE l.oid = %s AND s.nspname = 'pg_catalog' AND (l.collname IN ('C', 'POSIX', 'ucs_basic', 'pg_c_utf8') OR l.collname = 'default' AND
		(SELECT CASE COALESCE(to_jsonb(d)->>'datlocprovider', 'c') WHEN 'c' THEN d.datcollate IN ('C', 'POSIX') WHEN 'b' THEN true ELSE false END
			FROM pg_database d WHERE d.datname = current_database())))`

var varchar = regexp.MustCompile(`^character varying(?:\((\d+)\))?$`)

func checkColumnsPostgreSQL(ctx context.Context, db *sql.DB, table string, oid int64) error {
	alter := "ALTER TABLE " + table + " ALTER COLUMN "
	return eachRow(ctx, db, `SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull,
			COALESCE(to_jsonb(a)->>'attgenerated', '') <> '' OR a.attidentity <> '', a.atthasdef,
			COALESCE((SELECT collname::text FROM pg_collation WHERE oid = a.attcollation), ''),
			a.attcollation = 0 OR `+fmt.Sprintf(bytewise, "a.attcollation")+`
		FROM pg_attribute a WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped`, []any{oid}, func(rows *sql.Rows) error {
		var name, kind, collation string
		var notNull, generated, preset, bytes bool
		if err := rows.Scan(&name, &kind, &notNull, &generated, &preset, &collation, &bytes); err != nil {
			return err
		}
		wrong := func(what, mend string) error {
			return fmt.Errorf("%w: column %s of table %s %s; %s", errSchema, name, table, what, mend)
		}
		switch want := map[string]string{"k": `varchar(256) COLLATE "C"`, "v": "bytea", "n": "bigint"}[name]; {
		case want == "" && notNull && !preset && !generated:
			return wrong("has no default and must not be null, so nothing can be inserted", "drop it, or give it a default")
		case want == "":
			return nil
		case generated:
			return wrong("is generated", "make it one of "+want)
		case name == "k" && !wideText(kind), name != "k" && kind != want:
			return wrong("is of type "+kind+", which does not keep what is written", alter+name+" TYPE "+want)
		case !bytes:
			return wrong("has the collation "+strconv.Quote(collation)+", which does not compare bytes", alter+name+" TYPE "+want)
		case !notNull:
			return wrong("may be null", alter+name+" SET NOT NULL")
		}
		return nil
	})
}

// wideText reports whether a type stores every key unchanged.
func wideText(kind string) bool {
	if kind == "text" {
		return true
	}
	m := varchar.FindStringSubmatch(kind)
	if m == nil {
		return false
	}
	n, err := strconv.Atoi(m[1])
	return m[1] == "" || err == nil && n >= 256
}

// checkIndexesPostgreSQL checks that keys are unique, and that no other column
// is.
func checkIndexesPostgreSQL(ctx context.Context, db *sql.DB, table string, oid int64) error {
	var others []string
	found := false
	err := eachRow(ctx, db, `SELECT c.relname::text,
			i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indnatts = 1
				AND (SELECT a.attname FROM pg_attribute a WHERE a.attrelid = i.indrelid AND a.attnum = i.indkey[0]) = 'k'
				AND `+fmt.Sprintf(bytewise, "i.indcollation[0]")+`
		FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = $1::oid AND i.indisunique`, []any{oid}, func(rows *sql.Rows) error {
		var name string
		var ofKeys bool
		err := rows.Scan(&name, &ofKeys)
		if found = found || ofKeys; !ofKeys {
			others = append(others, name)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case len(others) > 0:
		return fmt.Errorf("%w: table %s has unique indexes that cover more than column k, cover only part of the rows, are deferred, or are invalid: drop %s", errSchema, table, strings.Join(others, ", "))
	case !found:
		return fmt.Errorf("%w: column k of table %s is not unique; ALTER TABLE %s ADD PRIMARY KEY (k)", errSchema, table, table)
	}
	return nil
}

// dangersPostgreSQL looks for replicas that may lack commits.
func dangersPostgreSQL(ctx context.Context, db *sql.DB, m *memory) (found []string, err error) {
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
	case names == "" && m.waited:
		found = append(found, "synchronous_standby_names is empty now: PostgreSQL no longer waits for any replica, so a failover is not safe: "+repeat)
	case names == "" && replicas > 0:
		found = append(found, "PostgreSQL has replicas and waits for none (synchronous_standby_names is empty): "+repeat)
	}
	if names != "" && others != "" {
		found = append(found, fmt.Sprintf("synchronous_standby_names is %q, so %s may confirm a commit in place of a standby: %s; name the standbys there",
			names, others, repeat))
	}
	m.waited = m.waited || names != ""
	return found, nil
}
