// Package sqlstore keeps grants in a table of PostgreSQL, MySQL or MariaDB. It
// is for sequencers on many machines that already have such a database.
//
// The database must have one primary that handles all reads and writes, and
// whose commits are on disk when they return. Do not use it if replicas are
// promoted without the commits that the primary has acknowledged: the new
// primary forgets grants, and IDs repeat unless they are fenced before any
// member reaches it. A commit that waits for a synchronous standby of PostgreSQL is
// safe (with synchronous_standby_names, and a driver that passes warnings on;
// see Options.Warnings), and so is a commit in a group that commits together
// (Galera, group replication). MySQL's semi-synchronous replication is not
// safe: it stops waiting without an error.
//
// Open rejects a database that is a replica or is configured to lose commits,
// and an unsuitable table. An open Store repeats these checks every 10 seconds,
// except for writing rows, and its calls fail while one of them fails. As a
// grant.Dangers, it reports others, such as replicas for which the primary does
// not wait, or no longer waits; ask it now and then.
//
// Every read and write detects a primary that has become a replica. Its
// connections are then closed, so that the pool finds the new primary if the
// driver does. In PostgreSQL, this also covers a primary that was replaced,
// once the Store has used a server with a later timeline. Otherwise the
// database must ensure that there is only one primary.
//
// The package contains no driver: use one that is registered with database/sql.
// With pgx, the following code keeps the warnings of a connection and returns
// them for Options.Warnings:
//
//	config.OnNotice = func(c *pgconn.PgConn, n *pgconn.Notice) {
//		if n.SeverityUnlocalized == "WARNING" {
//			kept, _ := c.CustomData()["warnings"].([]string)
//			c.CustomData()["warnings"] = append(kept, n.Message)
//		}
//	}
//	options.Warnings = func(driverConn any) []string {
//		data := driverConn.(*stdlib.Conn).Conn().PgConn().CustomData()
//		kept, _ := data["warnings"].([]string)
//		delete(data, "warnings")
//		return kept
//	}
//
// # The table
//
// Each key has one row: k, its bytes; v, the value; n, the number of writes.
// The row with the k !identity identifies the table by a random text that is
// created with it. Rows are never deleted. Do not delete them by hand: IDs
// repeat if a record is missing. Options.Create creates the table with the
// statements that Schema returns. Open rejects a table whose types, collations,
// indexes or triggers change or lose what is written: it writes rows that it
// rolls back, and looks in the catalog for what these may not show.
//
// The identity and the sum of all n are the Lineage, from which members detect
// that the table was restored from a backup, created again, or emptied. That
// sum reads every row, so the package is for up to a few thousand records; use
// etcd for more.
//
// # Visibility and durability
//
// A value that a read shows may be lost later. PostgreSQL shows a commit once
// it is on this server's disk; if the wait for a standby was canceled, the
// standby may lack it. InnoDB shows a commit a moment before it is on disk, and
// before any replica has it. Both write a single log, so everything visible
// when a CAS was sent to the same server is durable when that CAS is applied.
//
// A CAS is applied if the server has committed it without a warning.
// PostgreSQL's statements set synchronous_commit to on, unless it is
// remote_apply, whatever the session's setting, and enable warnings if the
// session hides them. MySQL is asked for warnings after each CAS.
//
// The program may also use the sql.DB for other purposes. A connection that was
// returned to the pool inside a transaction does no harm: in MySQL, which keeps
// such a connection in the pool, each call ends the open transaction, and a CAS
// commits. In PostgreSQL, pgx discards the connection; with another driver, a
// CAS on it has an unknown result. A connection on which a call fails is
// closed, because the next call may fail for the same reason, such as tables
// locked by another user.
package sqlstore
