// Package kubestore keeps grants in Kubernetes, in Leases of the cluster's own
// API server.
//
// It is for programs that run in a cluster, or can reach one. Each record is
// one Lease of coordination.k8s.io/v1, and kubectl get leases shows who holds
// which node ID. It is not for a cluster whose etcd runs with
// --unsafe-no-fsync, which forgets what it has acknowledged, and not for a
// virtual cluster that replicates its state asynchronously.
//
// # Leases
//
// The value of a key is the annotation firn/record of a Lease whose name is
// PREFIX.KEY, where slashes are dots and whatever no name may have is escaped:
// firn.v1.orders.n.0042. Holder, renewal time, duration and labels repeat what
// the record says, for people; Firn does not read them. A Lease that has ended
// does not end anything: only the record counts.
//
// Firn never deletes a Lease, and no one else may: a record that is gone makes
// IDs repeat. Firn needs no permission to delete, and sets no owner references.
// The role:
//
//   - apiGroups: [coordination.k8s.io]
//     resources: [leases]
//     verbs: [get, list, watch, create, update]
//
// The UID of the Lease firn-identity is the store's identity: a namespace that
// was deleted and made again has another, which Lineage shows. A cluster whose
// etcd was restored from a backup keeps it: fence.
//
// # Unknown results
//
// A write is sent once. When the answer is lost, is an error of a server or a
// proxy, or is a refusal for want of capacity, the result is unknown, and stays
// so: the error is then not grant.ErrNotSent. It is ErrNotSent where the
// request was never handed to a connection, and where the API server has denied
// it: by permissions, validation or admission.
//
// A write that was refused may have been applied nevertheless, when something
// between has sent it twice. So every write has a mark of its own, and CAS
// looks at what took its place before it returns false.
package kubestore
