// Package sequencer opens named ID spaces whose node IDs are kept in a
// grant.Store.
//
// A sequencer is known by its name. Its layout and a few settings are fixed
// when it is created, and the same for everybody who opens it. Every process
// that opens one gets a node ID of its own, for as long as it makes IDs; nobody
// has to think of one. No two IDs of a sequencer are ever equal, whatever
// clocks do, however long a process is paused, and over destroy and
// re-creation. IDs of two names can be equal, and so can those of one name in
// two stores.
//
// Where one process makes IDs with a number that somebody else keeps unique, a
// firn.Generator with a firn.StaticGrant is all that is needed.
package sequencer
