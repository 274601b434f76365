// Package etcdstore keeps grants in etcd, for sequencers of many machines.
//
// It is for an etcd of version 3.5.5 or newer, on one or more members; three or
// five of them outlive the loss of one or two. It is not for one machine alone:
// package dirstore needs no service there. Nor is it for an etcd that runs with
// --unsafe-no-fsync, which forgets what it has acknowledged.
//
// # What lies in etcd
//
// The value of a key K lies under /P/K, where P is Options.Prefix. All
// sequencers of a prefix share their node IDs; two prefixes know nothing of
// each other, unless one lies within the other: do not use both firn and
// firn/v1. Nothing in a prefix is ever deleted, and nothing must be by hand:
// a record that is gone makes IDs repeat. An etcd that is restored from a
// backup has gone back, which Lineage shows.
//
// Neither leases nor locks are used: etcd's may end early as well as late. A
// user needs the permission to read and write the prefix:
//
//	etcdctl role grant-permission firn readwrite --prefix=true /firn/
//
// # One cluster
//
// Open refuses endpoints of two clusters. A member that was away then may come
// back as a cluster of its own, without data or with those of a backup. So each
// answer is looked at: one of another cluster than the first is not used, and
// the endpoints of the other are left out for a minute. If most endpoints are
// of the other, the cluster was replaced, which Lineage shows. Behind one
// address for all members nothing can be told apart: name each.
//
// # What etcd needs
//
// Each CAS is a revision, of about 200 bytes. Out of the box etcd keeps all
// revisions, until its database reaches the quota and it refuses writes. Have
// it compact: --auto-compaction-mode=periodic --auto-compaction-retention=5m.
// Check tells whether that seems to be missing.
//
// # Unknown results
//
// A CAS is sent once, and never again unless etcd has said that the first was
// refused. When the answer is lost, the result is unknown, and stays so: the
// error is then not grant.ErrNotSent. It is ErrNotSent where the request was
// never handed to a connection, and where etcd has refused it before doing
// anything. A full database is not such a refusal: etcd has said that it has no
// space for requests that it did apply.
package etcdstore
