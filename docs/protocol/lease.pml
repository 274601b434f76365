/* For contrast, the usual way: a lease that is kept alive, and a local timer.
 * It repeats ticks unless clocks are perfect and nothing ever stops. See
 * README.md; grants.pml is the model of what Firn does.
 *
 * The coordinator has an owner for the one node ID and the time at which
 * the lease runs out. A process makes IDs while its timer, which is exact, says
 * that the lease is good. Ticks are its clock's; it never goes back in itself.
 *
 *   PAUSE   a process may stop between the look at the timer and the ID
 *   SKEW    the clock of a process may be one tick ahead, as ever
 *   CAREFUL a new owner does not use the tick of the hand-over
 */
#ifndef T
#define T 6
#endif
#define LEASE 2

unsigned now : 4;               /* the true time, and the coordinator's clock */
unsigned owner : 2;             /* 0: nobody, else the process + 1 */
unsigned expires : 4;
int issued;

active proctype Clock() {
	do
	:: now < T - 1 -> now++
	:: else -> break
	od
}

active [2] proctype Process() {
	byte me = _pid - 1;
	byte t, skew, until, next;
	bool own, good;
#ifdef SKEW
	if :: skew = 0 :: skew = 1 fi;
#endif
	do
	:: atomic { !own && (owner == 0 || expires <= now) ->   /* acquire */
		own = true; owner = me + 1; expires = now + LEASE; until = expires;
#ifdef CAREFUL
		next = now + 1
#else
		next = 0
#endif
		}
	:: atomic { own && now < T - 1 ->                       /* keep alive */
		if
		:: owner == me + 1 && expires > now -> expires = now + LEASE; until = expires
		:: else -> own = false
		fi }
	:: own ->                                               /* make an ID */
		good = (now < until);
		atomic {
#ifndef PAUSE
			good = (now < until);
#endif
			t = now + skew;
			if
			:: good && t < T && t >= next ->
				assert(!((issued >> t) & 1));
				issued = issued | (1 << t); next = t + 1
			:: !good -> own = false
			:: else
			fi;
			good = false; t = 0 }
	:: atomic { own ->                                      /* give back */
		if :: owner == me + 1 -> owner = 0 :: else fi;
		own = false }
	:: now >= T - 1 && !own -> break
	od
}
