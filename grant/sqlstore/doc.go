// Package sqlstore keeps grants in a table of PostgreSQL, MySQL or MariaDB, for
// sequencers of many machines that have such a database already.
//
// It is for one primary, at which all writes and reads are made, and whose commits
// are on disk when they return. It is not for a database whose replicas are promoted
// without what the primary has acknowledged, which forgets grants: then IDs repeat
// unless fence is run after the promotion. Replication that waits for the replica is
// well (synchronous_commit = on with synchronous_standby_names, group replication).
// New refuses a database that is a replica or set to forget what it commits; Check tells
// of what is dangerous without being certain, such as replicas that nobody waits for.
// A primary that has become a replica is noticed at every read and write, and its
// connections are given up, so that the pool finds the new primary where the driver
// does. Which server is the primary is for the database to keep single.
//
// The package needs no driver: bring one that is registered with database/sql.
//
// # The table
//
// There is one row for each key: k, its bytes; v, the value; n, how often it was
// written. The row whose k is !identity names the table: a random text, made with
// it. Rows are never deleted, and must not be by hand: a record that is gone makes
// IDs repeat. Options.Create makes the table; Schema is what it runs.
//
// The identity and the sum of all n are the Lineage, by which members see that the
// table was restored from a backup, made anew, or emptied. That sum reads every row,
// so the package is for some thousand records; etcd is for more.
//
// # What is visible and not yet durable
//
// PostgreSQL shows a change once it is on disk. MySQL without a binary log shows it
// a moment before: a read at this moment, just before a power loss, may see a value that
// comes to nothing. CAS is not concerned, and so the uniqueness of IDs is not.
package sqlstore
