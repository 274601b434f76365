// Package grant assigns node IDs so that no two generators ever have the same
// one for the same time, whatever clocks do and however long a process is
// suspended.
//
// A node ID is held for a window of time that is recorded in a [Store] before
// it is used, and the next owner begins where the previous window ended. That
// relies only on the store's compare-and-swap, not on leases, locks or clocks.
//
// This package does no I/O and knows no database. Each kind of store has a
// package that does, such as dirstore, sqlstore or etcdstore. A program that
// only wants IDs opens a sequencer with package sequencer, and needs neither a
// [Keeper] nor a [Holder].
//
// # Members
//
// A member is a process that holds a node ID of a sequencer, or wants one.
// Begin with [NewKeeper]. A [Keeper] acquires a node ID, renews its window and
// gives the node ID back, on behalf of a [Holder], which is usually a
// generator. [MemberOptions] are the settings of the process. [Status] says
// what the Keeper is doing and [IsFinal] whether to wait longer; [KeeperStats]
// counts, also each [Alarm].
//
// # Operators
//
// Begin with [DefaultConfig] and [Create]. [Lookup], [Sequencers], [LookupNode]
// and [Nodes] read what a store knows. [SetWindow] and [SetNodes] change a
// sequencer while its members run; [Detach] ends their use of it until
// [Attach], [Destroy] until it is created again, and [Purge] permits another
// layout then. [Move] takes a sequencer to another store. [Fence] makes it safe
// after the store went back, and [Repair] gives back what wrong clocks have
// claimed.
//
// Operations are safe to repeat: call one that was interrupted again. Several
// may run at once, in any processes. [WithOperator] names the person who runs
// them.
//
// # Authors of stores
//
// Begin with [Store], the contract. Package storetest checks implementations of
// it. A store can also be a [MultiGetter], a [Watcher], a [Lineage], a [Clock],
// [Dangers] or [Paced]. [CheckKey], [CheckValue] and [NotSent] help to
// implement it, and [ErrNotSent], [ErrDamaged], [ErrOptions], [ErrUnreachable]
// and [ErrUnfit] are its errors. Programs call the optional methods of a
// Store by [As], and see its requests with [Observe].
package grant
