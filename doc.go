// Package firn makes unique, time-ordered IDs without coordination between
// generators: an ID holds the time, the ID of the node that made it, and a
// sequence number.
//
// A Layout defines how the bits of an ID are divided into these fields. There
// is Firn's own layout (Default), a preset for each of a dozen widely used
// formats (Presets), and a text form for custom ones (ParseLayout). A Generator
// makes IDs of one layout for one node ID. No two of its IDs are equal,
// whatever the clock does while it runs, and if the layout is Ordered, each is
// greater than the one before. A Layout also reads IDs (Decompose) and returns
// the IDs of a time range (Range).
//
//	g, err := firn.NewGenerator(firn.Default(), firn.StaticGrant(7), nil)
//	...
//	id, err := g.Next(ctx)
//
// Two generators must not have the same node ID at the same time. This package
// does not assign node IDs: a generator takes a Grant, which is either a fixed
// number (StaticGrant) or comes from a store that several processes share
// (package grant).
//
// Most programs need IDs of 64 bits only. Those of 128 bits (ID128) have the
// same operations, in one of three forms:
//
//   - One generic type: Generator is an alias of GeneratorOf[ID], and
//     NewGenerator128 returns a GeneratorOf[ID128]. The methods are listed at
//     the generic type.
//   - Methods that end in 128, where one type serves both sizes: Layout has
//     Compose and Compose128.
//   - Generic functions, where the arguments tell the size: NewPrefetcher takes
//     a SourceOf either.
//
// Do not use firn for numbers without gaps, or for IDs that must not reveal
// when they were made. Do not use time-ordered IDs as keys of a database that
// partitions tables by key range: all new rows would go to one server.
package firn
