// Package sqlstore keeps grants in a table of PostgreSQL, MySQL or MariaDB, for
// sequencers of many machines that have such a database already.
//
// It is for one primary, at which all writes and reads are made, and whose
// commits are on disk when they return. It is not for a database whose replicas
// are promoted without what the primary has acknowledged, which forgets grants:
// then IDs repeat unless they are fenced after the promotion. A commit that
// waits for a synchronous standby of PostgreSQL is safe (with
// synchronous_standby_names, and a driver that passes warnings on: see
// Options.Warnings), and so is one of a group that commits together (Galera,
// group replication). MySQL's semi-synchronous replication is not: it stops
// waiting without an error.
//
// New refuses a database that is a replica or set to forget what it commits.
// Check, and Options.Warn as long as the Store is open, report what is
// dangerous without being certain, such as replicas that the primary does not
// wait for, or no longer. A primary that has become a replica is noticed at
// every read and write, and its connections are given up, so that the pool
// finds the new primary where the driver does. In PostgreSQL that goes for a
// primary that was replaced, too, once the Store has used a server with a later
// timeline. Otherwise it is for the database to keep its primary single.
//
// The package needs no driver: bring one that is registered with database/sql.
// With pgx, a connection keeps its warnings like this, and Options.Warnings
// takes them:
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
// There is one row for each key: k, its bytes; v, the value; n, how often it
// was written. The row whose k is !identity names the table: a random text,
// made with it. Rows are never deleted, and must not be by hand: a record that
// is gone makes IDs repeat. Options.Create makes the table; Schema is what it
// runs. New refuses a table with other types, collations, keys or triggers, and
// tells what to change: it looks at the catalog, and writes rows that it rolls
// back.
//
// The identity and the sum of all n are the Lineage, by which members see that
// the table was restored from a backup, made anew, or emptied. That sum reads
// every row, so the package is for some thousand records; etcd is for more.
//
// # What is visible and not yet durable
//
// What a read shows may be lost. PostgreSQL shows a commit once it is on this
// server's disk; if the wait for a standby was cut short, the standby may lack
// it. InnoDB shows a commit a moment before it is on disk, and before any
// replica has it. Both write one log, so what was visible when a CAS was sent
// to the same server is durable when that CAS is applied.
//
// A CAS is applied if the server has committed it without a warning.
// PostgreSQL's statements set synchronous_commit to on, unless it is
// remote_apply, whatever the session has, and ask for warnings if the session
// hides them. MySQL is asked for warnings after each CAS.
//
// The sql.DB may be one that a program uses for other things too. A connection
// that it gave back inside a transaction does no harm: in MySQL, which keeps
// such a connection in the pool, each call ends what was left open, and a CAS
// commits. In PostgreSQL, pgx throws it away; with another driver, a CAS on it
// has an unknown result. A connection on which a call fails is closed, as the
// next one may fail for the same reason, such as tables that another user has
// locked.
package sqlstore
