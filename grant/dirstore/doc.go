// Package dirstore keeps grants in a local directory that the processes of one
// machine share.
//
// It is for one machine: nothing but a file system is needed, and a value that
// CAS has applied is on the disk when it returns. It is not for several
// machines. Locks and fsync of network file systems do not hold what this
// package needs, so Open refuses them: use etcd or a database there. Nor is it
// for a directory that is private to a container, or that is gone when the
// machine starts again; Open refuses those too, unless told that this is known.
//
// # Files
//
// All files of a store lie in its directory, and are not to be changed by hand.
// Taking one away, a lock too, while a process uses the store makes IDs repeat.
//
//	firn-store    the marker: "firn dirstore format 1" and a few words
//	rec+NAME      the record of a key, as record.go has it
//	lock+NAME     its lock, an empty file that stays
//	tmp+NAME      its next record while that is written; of no account
//	lock+, tmp+   of the marker
//
// NAME is the key in lower case, so that keys differ also where file names that
// differ in case do not: / is +, a capital letter is ! and the small one, : is
// !0, and a dot at the end, which Windows would drop, is !1. Of a long key it
// is the beginning, ~, and the SHA-256 of the key in hexadecimal.
//
// # What is durable
//
// CAS takes the lock of its record, compares, writes the new record beside the
// old one, and makes it durable in two steps: fsync of the file, and after the
// rename fsync of the directory. A crash at any moment leaves the old record or
// the new one, whole; TestCrashStates looks at all that a disk may hold then.
//
// Between the rename and the second fsync others can see a record that a loss
// of power would take back. Whoever acted on it would have acted on something
// that never was. So a record that is not durable yet can be told: its file is
// read-only. Get and List find almost always that it is writable and need
// neither lock nor fsync. Where it is not, they wait for the lock, and so for
// whoever is writing. If it is still read-only then, its writer died before it
// was done, or the machine did: the record is written once more, with both
// fsyncs, and only then believed.
//
// It is written again, and not only synced again, because after an fsync that
// failed the next one may succeed though nothing was written. For the same
// reason a Store refuses service after the first fsync that fails, until the
// program starts again: what memory shows of the disk is not what it holds.
//
// What a disk says is durable that is not (a write cache without a battery, a
// virtual machine that ignores flushes) is lost all the same. A directory that
// was restored from a backup, or a machine cloned with it, has old values: see
// grant.Store for what that means.
//
// # A disk that does not answer
//
// The system cannot interrupt a request to a disk that hangs. A call returns
// soon after its context is done all the same, with an error that is
// grant.ErrNotSent unless the new record may have been renamed into its place.
// The request is left in a goroutine of the Store's, which keeps the record's
// lock until the disk answers, so no other process can write the record before
// it is known which of the two it is. After 8 such calls others fail at once.
// When the disk answers, the Store continues; it has failed only if the disk
// then reports an error of fsync. A process cannot end while it is inside such
// a request.
//
// # Systems
//
// Linux and macOS lock with flock, Windows with LockFileEx. On Windows a
// directory cannot be synced: the rename itself is written through, and every
// read takes the lock. Elsewhere Open returns an error.
package dirstore
