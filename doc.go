// Package firn makes unique, time-ordered IDs without asking anybody: an ID
// holds the time, the number of the node that made it and a sequence.
//
// A Layout says how an ID's bits are cut into these fields. There is Firn's own
// (Default), one for each of a dozen formats in wide use, and any of one's own
// (ParseLayout). A Generator makes IDs of a layout for a node ID; no two are
// equal, whatever the clock does while it runs, and where the layout is Ordered
// each is greater than the one before. A Layout also reads IDs (Decompose) and
// tells the IDs of a time range (Range).
//
//	g, err := firn.NewGenerator(firn.Default(), firn.StaticGrant(7), nil)
//	...
//	id, err := g.Next(ctx)
//
// Two generators must not have the same node ID at the same time. Who has
// which is not this package's business: it takes a Grant, which may be a fixed
// number (StaticGrant) or come from a store that several processes share.
//
// Do not use it for numbers without gaps, for IDs that must not tell when they
// were made, or as keys of a database that splits its tables by ranges of keys:
// there IDs in order of time all meet at one server.
package firn
