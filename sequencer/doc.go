// Package sequencer opens named ID spaces whose node IDs are kept in a
// grant.Store.
//
// A sequencer is identified by its name. Its layout and a few settings are
// fixed when it is created, and are the same for every process that opens it.
// Each process that opens a sequencer gets its own node ID for as long as it
// makes IDs, so node IDs need no configuration. No two IDs of a sequencer are
// ever equal, whatever clocks do, however long a process is suspended, and even
// if the sequencer is destroyed and created again. IDs of two names can be
// equal, and so can those of one name in two stores.
//
// If a single process makes IDs, with a node ID that is unique by other means,
// a firn.Generator with a firn.StaticGrant is enough.
package sequencer
