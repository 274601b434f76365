// Package dirstore keeps grants in a local directory that the processes of one
// machine share.
//
// It needs only a file system, and a value that CAS has applied is on disk when
// CAS returns. It is not for several machines: locks and fsync of network file
// systems do not give the guarantees that this package needs, so Open rejects
// them. Use etcd or a database there. Nor is it for a directory that is private
// to a container, or that does not survive a restart of the machine. Open
// rejects these too, unless Options allow them.
//
// # Files
//
// All files of a store are in its directory. Do not change them by hand.
// Removing a file, even a lock, while a process uses the store makes IDs
// repeat.
//
//	firn-store    the marker: "firn dirstore format 1" and a few words
//	rec+NAME      the record of a key; see record.go
//	lock+NAME     its lock, an empty file that stays
//	tmp+NAME      its next record while it is written; otherwise ignored
//	lock+, tmp+   the same for the marker
//
// NAME is the key in lower case, so that keys differ even if file names are
// case-insensitive: / becomes +, a capital letter becomes ! and the small
// letter, : becomes !0, and a dot at the end, which Windows would drop, becomes
// !1. For a long key, NAME is its beginning, ~, and the SHA-256 of the key in
// hexadecimal.
//
// # Durability
//
// CAS takes the lock of its record, compares, writes the new record beside the
// old one, and makes it durable in two steps: fsync of the file and, after the
// rename, fsync of the directory. A crash at any moment leaves either the old
// record or the new one intact; TestCrashStates checks every state that a disk
// may have then.
//
// Between the rename and the second fsync, others can see a record that a loss
// of power would undo, and must not act on it. So a record that is not yet
// durable is marked: its file is read-only. Get and List almost always find a
// writable file and need neither lock nor fsync. Otherwise they wait for the
// lock, and so for the process that is writing. If the file is then still
// read-only, its writer or the machine died before it was done: the record is
// written once more, with both fsyncs, and only then trusted.
//
// It is written again, not just synced again, because after a failed fsync the
// next one may succeed although nothing was written. For the same reason, after
// the first failed fsync a Store refuses all calls until the program restarts:
// what the page cache shows of the disk may differ from what the disk holds.
//
// Data that a disk reports as durable although it is not (a write cache without
// a battery, a virtual machine that ignores flushes) is lost nevertheless. A
// directory restored from a backup, or a machine cloned with it, has old
// values: see grant.Store for the consequences.
//
// # A disk that does not answer
//
// The system cannot interrupt a request to a disk that hangs. A call returns
// soon after its context is done all the same; the result of a CAS is then
// unknown. The request is left in a goroutine of the Store's, which keeps the
// record's lock until the disk answers, so no other process can write the record
// before it is known what became of it. After 8 such calls others fail at once.
// When the disk answers, the Store continues; it has failed only if the disk
// then reports an error of fsync. A process cannot end while it is inside such
// a request.
//
// # Systems
//
// Linux and macOS lock with flock, Windows with LockFileEx. On Windows a
// directory cannot be synced: the rename itself is written through, and every
// read takes the lock. On other systems, Open returns an error.
package dirstore
