// Package firnv1 is Firn's gRPC API: services that make IDs, and services that
// administer sequencers. All but this file is made from server/proto by
// scripts/proto.sh.
package firnv1
