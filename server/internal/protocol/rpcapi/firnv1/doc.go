// Package firnv1 is Firn's gRPC API: services that make IDs, and services that
// administer sequencers. All files except this one are generated from
// server/proto by scripts/proto.sh.
package firnv1
