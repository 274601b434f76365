// Package etcdstore keeps grants in etcd, for sequencers on many machines.
//
// It needs etcd 3.5.5 or later, with one or more members; three or five of them
// survive the loss of one or two. On a single machine, use package dirstore,
// which needs no service. Do not use an etcd that runs with --unsafe-no-fsync,
// because it forgets acknowledged writes.
//
// # Data in etcd
//
// The value of a key K is stored under /P/K, where P is Options.Prefix. All
// sequencers of a prefix share their node IDs. Two prefixes are independent,
// unless one contains the other: do not use both firn and firn/v1. Nothing
// under a prefix is ever deleted. Do not delete anything by hand: IDs repeat if
// a record is missing. An etcd that is restored from a backup has gone back,
// which Lineage shows.
//
// The package uses neither leases nor locks, because those of etcd may end too
// early or too late. A user needs permission to read and write the prefix:
//
//	etcdctl role grant-permission firn readwrite --prefix=true /firn/
//
// # One cluster
//
// Open rejects endpoints of two clusters. But a member that was unreachable at
// that time may come back as a cluster of its own, without data or with those
// of a backup. So each answer is checked: one from a different cluster than the
// first is not used. A read is repeated; a CAS has an unknown result, and so has
// its share of those to come until the endpoint is removed. If most endpoints
// belong to the other cluster, the cluster was replaced, which Lineage shows.
// None of this works behind one address for all members: name each of them.
//
// # Requirements
//
// Each CAS creates a revision of about 200 bytes. By default etcd keeps all
// revisions, until its database reaches the quota and it refuses writes.
// Configure it to compact: --auto-compaction-mode=periodic
// --auto-compaction-retention=5m. Dangers reports a quota that is used by 60 %.
//
// # Unknown results
//
// A CAS is sent once, and sent again only if etcd has answered that it refused
// the first. If the answer is lost, the result is unknown and stays so: the
// error then does not match grant.ErrNotSent. It matches ErrNotSent if the
// request was never passed to a connection, and if etcd refused it before doing
// anything. A full database is not such a refusal: etcd returns that error also
// for requests that it has applied.
package etcdstore
