// Package kubestore keeps grants in Kubernetes, in Leases of the cluster's own
// API server.
//
// It is for programs that run in a cluster or can reach one. Each record is one
// Lease of coordination.k8s.io/v1, and kubectl get leases shows the holder of
// each node ID. Do not use it with a cluster whose etcd runs with
// --unsafe-no-fsync and so forgets acknowledged writes, nor with a virtual
// cluster that replicates its state asynchronously.
//
// # Leases
//
// The value of a key is the annotation firn/record of a Lease with the name
// PREFIX.KEY, in which slashes become dots: firn.v1.orders.n.0042. If that is
// not a valid name, a hash takes the place of the key. Holder, renewal time,
// duration and labels repeat the contents of the record for people; Firn does
// not read them. A Lease that has expired ends nothing: only the record counts.
//
// Firn never deletes a Lease. Do not delete one by hand: IDs repeat if a record
// is missing. Firn needs no permission to delete, and sets no owner references.
// The role:
//
//	rules:
//	- apiGroups: [coordination.k8s.io]
//	  resources: [leases]
//	  verbs: [get, list, watch, create, update]
//
// The UID of the Lease firn-identity is the store's identity: a namespace that
// was deleted and created again has a different one, which Lineage shows. A
// cluster whose etcd was restored from a backup keeps it: fence.
//
// # Unknown results
//
// A write is sent once. If the answer is lost, is an error of a server or a
// proxy, or is a refusal due to overload, the result is unknown and stays so:
// the error then does not match grant.ErrNotSent. It matches ErrNotSent if the
// request was never passed to a connection, and if the API server has denied
// it, by permissions, validation or admission.
//
// A refused write may have been applied nevertheless, if a proxy has sent it
// twice. So every write has its own mark, and CAS checks which write took its
// place before it returns false.
package kubestore
