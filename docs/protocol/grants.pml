/* The checked model of Firn's time-fenced grants, for the model checker Spin.
 * README.md says what the larger options and the mutants cover;
 * scripts/model.sh runs them.
 *
 * A tick here is one slot (a time and a sequence) of one node ID.
 *
 * The store has one record for each node ID: a mark (until), a state and an
 * owner; and the configuration of the sequencer. Every write of a record or of
 * the configuration puts a fresh random nonce in it, so bytes never come back.
 * Whatever bytes a process remembers are therefore modelled by a single bit,
 * same: the record still is what I remember. It falls when another writes, and
 * stays down. This is exact, and it needs no counter of nonces, so the number
 * of writes in one behaviour needs no bound. Only a restore or a failover
 * brings bytes back: then a second bit, bak, says whether the backup or the
 * standby has what I remember.
 *
 * What may happen, at any moment and in any order:
 *   - every look at a clock gives any tick, whatever it gave before;
 *   - a compare-and-swap is applied late, or never; its answer is lost; it is
 *     applied after its sender gave up on it, or died;
 *   - a process stops between any two steps, for any time;
 *   - a number is acquired whose window has expired by the acquirer's clock,
 *     though its owner lives and its clock disagrees;
 *   - a process dies and starts again with nothing.
 *
 * What must hold, in every configuration that is no mutant:
 *   UNIQUE  no tick of a node ID is handed out twice;
 *   ORDER   the ticks that one process takes grow, over all its terms;
 *   ENDED   (DESTROY) once destroy or detach has returned, no renewal applied
 *           since extends a window, and no number acquired since is used;
 *   NOTICED (NOTICE) a process that has read a record whose owner's grant began
 *           below the end of its own window takes no more slots, and claims
 *           nothing; and it stops so only if the store went back or it was copied.
 */

#ifndef NP
#define NP 2
#endif
#ifndef NI
#define NI 1
#endif
#ifndef T
#define T 4
#endif
#ifndef W
#define W 2
#endif

#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define MIN(a, b) ((a) < (b) -> (a) : (b))

#ifdef ROLLBACK         /* the store goes back, and is not fenced */
#define RESTORE
#define M_NOFENCE
#define WENT (stage == 2)
#else
#define WENT false
#endif
#if defined(RESTORE) || defined(FAILOVER)
#define BACK            /* bytes can come back */
#endif
#if defined(DESTROY) || defined(M_NONONCE) || defined(NOTICE)
#define OWNER
#endif
#if defined(DESTROY) || defined(NOTICE)
#define DEAD
#endif
#if defined(RESTORE) || defined(OLDREADS)
#define THERE
#endif

/* ------------------------------------------------------------------ the store */

#define FREE    0
#define HELD    1
#define CLOSING 2       /* as held, but its owner can extend it no more */

typedef Record {
	unsigned until : 3;
	unsigned state : 2;
#ifdef OWNER
	unsigned owner : 2;     /* 0: no process that lives; else the process + 1 */
#endif
#ifdef NOTICE
	unsigned from : 3;      /* where the grant of its owner began, as it is written */
	unsigned began : 3;     /* the same, in truth; no process sees it */
#ifdef M_WALL
	unsigned wall : 3;      /* the clock of its writer */
#endif
#endif
#ifdef GAP
	unsigned ga : 3;        /* no window ever covered [ga, gb); 0, 0: no gap */
	unsigned gb : 3;
	unsigned sb : 3;        /* windows have covered [sb, sc), above the mark; 0, 0: not spoiled */
	unsigned sc : 3;
#endif
#ifdef THERE
	bit there;              /* it was ever written */
#endif
#ifdef BACK
	bit bak;                /* the backup or the standby has the very same bytes */
#endif
#ifdef REVCAS
	byte rev
#endif
};
Record r[NI];
#ifdef BACK
Record b[NI];           /* in the backup; or on the standby, and durable */
#endif

#ifdef DESTROY
#define ATTACHED 0
#define ENDING   1
#define ENDED    2
unsigned cfg : 2;       /* state of the sequencer */
unsigned ends : 2;      /* destroys or detaches so far */
bit returned;           /* one has returned, and it was not attached or created again since */
bit ocfg;               /* the configuration is what the operator wrote */
bit osame[NI];          /* the record is what the operator saw */
bit oown[NI];           /* the operator knows that the window cannot grow */
unsigned opc : 3;       /* what the operator has done: */
#define LISTED   1      /* it wrote ENDING, and goes through the records */
#define ASKED    2      /* it wrote ENDING again, and will look whether the records are the same */
#define SURE     3      /* no window can grow */
#define FINISHED 4      /* it wrote ENDED */
#define USABLE (cfg == ATTACHED)
#else
#define USABLE true
#endif

#ifdef RESTORE
unsigned stage : 2;     /* 0, 1 backup taken, 2 restored, 3 fenced */
unsigned floor : 3;     /* no grant begins before it */
#ifndef CLOCK
unsigned top : 3;       /* the highest mark granted since the backup; no process sees it */
#endif
#ifdef M_MARKSONLY      /* claims go by the marks alone, where there are any */
#define FLOOR (r[u].there -> 0 : floor)
#else
#define FLOOR floor
#endif
#ifdef M_LATE
#define ONLINE (stage != 2)
#endif
#else
#define FLOOR 0
#endif
#ifndef ONLINE
#define ONLINE true
#endif
#ifdef REVCAS
byte rev, b_rev;        /* the store's revision */
#endif

#ifdef FAILOVER
bit dirty;              /* the primary has something that the standby has not */
unsigned failed : 2;    /* how often a standby was promoted */
#define SAFE (failed >= FAILOVER)       /* it will not happen again */
#ifdef DESTROY
unsigned b_cfg : 2;     /* the configuration on the standby */
bit cfgbak = 1;         /* it has the very same bytes there */
bit b_ocfg;
bit b_osame[NI];
bit b_oown[NI];
bit owait;              /* the operator waits for the answer to its last write */
#ifdef OLDREADS
unsigned oldcfg : 2;    /* the configuration that the old primary still shows */
bit oldabsent[NI];      /* it shows no record */
bit oldsame[NI];        /* it shows the record that the operator saw */
bit onew;               /* a write of the operator was applied since: it is not shown these any more */
#endif
#endif
#endif

#ifdef CLOCK
/* The true time. Clocks show it, or a time SKEW ticks ahead of it. */
#ifndef A
#define A 1             /* how far IDs may run ahead of the clock: max_ahead */
#endif
#ifndef SKEW
#define SKEW 0
#endif
unsigned now : 3;
#ifdef W2
unsigned w : 2 = W;     /* the window of the configuration; it becomes W2 after the backup */
#define WINDOW w
#else
#define WINDOW W
#endif
#ifdef POLL
unsigned fenced : 3;    /* when the fence came */
#endif
#else
#define WINDOW W
#endif

/* -------------------------------------------------------------- the processes */

#define NONE 0
#define SENT 1
#define DONE 2          /* applied and durable */
#define FAIL 3          /* refused */
#define SEEN 4          /* applied on the primary, where reads show it, and not durable yet */

#define ACQUIRE 1
#define RENEW   2
#define RELEASE 3
#define DROP    4       /* give back a claim of which nothing was used */
#ifdef M_LOSTSPOIL      /* a write does not carry the spoiled span on: LOST says which */
#define CLOSE   5
#define FENCE   6
#define REPAIR  7
#define FORGET(n) r[n].sb = 0; r[n].sc = 0
#else
#define FORGET(n) skip
#endif
#ifndef LOST
#define LOST    (-1)
#endif

/* A compare-and-swap on its way. */
typedef Write {
	unsigned st : 3;
	unsigned kind : 3;
	unsigned id : 1;
	bit same;               /* SENT: the record is what was read; later: it is what this wrote */
	unsigned from : 3;      /* of an acquire */
	unsigned until : 3;
	bit cfg;                /* of an acquire: the configuration is what was read */
	bit mine;               /* its sender lives, and has the grant still that it was for */
#ifdef DEAD
	bit dead;               /* its sender died */
#endif
#ifdef M_WALL
	unsigned wall : 3;
#endif
#ifdef DESTROY
	bit late;               /* it was applied after destroy had returned */
#ifdef FAILOVER
	bit cfgbak;
#endif
#ifdef OLDREADS
	bit cfgold;             /* the configuration on the old primary is what was read */
	bit old;                /* the old primary has this write, and it is durable */
#endif
#endif
#ifdef M_NONONCE
	unsigned vu : 3; unsigned vs : 2; unsigned vo : 2;      /* what the record said */
#endif
#ifdef BACK
	bit bak;
#endif
#ifdef REVCAS
	byte rev
#endif
};
Write rq[NP];           /* the one that is waited for */
Write zb[NP];           /* one of unknown result: it was given up, and lives on in the network */

#define LOOKED  1       /* a slot was looked at, not taken */
#define TAKEN   2       /* taken, not handed out */
#define WAITING 3       /* taken, and beyond the limit of its term so far */

typedef Memory {
	bit own;                /* there is a term */
	bit sealed;             /* it takes no more slots */
	bit lost;               /* its record is another's; what is left may be used */
	unsigned id : 1;
	bit same;
	unsigned next : 3;      /* the next slot */
	unsigned until : 3;     /* exclusive end */
	unsigned used : 3;      /* exclusive end of what this process took in its life */
#ifdef NOTICE
	bit frozen;             /* it claims nothing */
	bit over;               /* it has read of a grant that overlaps its own; no process sees this */
#ifdef CLONE
	bit copy;               /* it has the name of process 0 */
#endif
#endif
	unsigned p : 2;         /* the slot under way */
	unsigned pn : 1;
	unsigned ps : 3;
#ifdef POLL
	bit knows;              /* it has read the floor of the fence */
#endif
#ifdef M_NONONCE
	unsigned vu : 3; unsigned vs : 2; unsigned vo : 2;      /* what the record said */
#endif
#ifdef BACK
	bit bak;
#endif
#ifdef REVCAS
	byte rev
#endif
};
Memory m[NP];

#ifdef MAXCAS
byte sent;
#define MAYSEND (ONLINE && sent < MAXCAS)
#define COUNT   sent++
#else
#define MAYSEND ONLINE
#define COUNT   skip
#endif

/* All processes are alike, and all numbers: so it is no loss that the first to
 * act is process 0, the next other one process 1, and the first number is 0. */
unsigned begun : 2;
bit second;
#ifdef CLONE
#define TURN    true
#else
#define TURN    (me <= begun)
#endif

int issued;             /* bit id*T + tick: it was handed out */

#ifdef CLONE
/* What may be repeated: the one window held at the moment of cloning, and what
 * was taken from it and not handed out yet. */
bit cloned; unsigned c_id : 1; unsigned c_lo : 3; unsigned c_until : 3;
#ifdef BOUND
#define ALLOWED(i, t) (cloned && (i) == c_id && (t) >= c_lo && (t) < c_until)
#endif
#endif
#ifndef ALLOWED
#define ALLOWED(i, t) WENT
#endif
#if defined(NOTICE) && defined(CLONE)
#define NAME (m[me].copy -> 1 : me + 1)
#else
#define NAME (me + 1)
#endif

/* ------------------------------------------------------------------- steps */

/* A look at the clock. */
#ifdef CLOCK
inline any_tick(x) {
#if SKEW > 0
	if :: x = now :: x = now + SKEW fi
#else
	x = now
#endif
}
#else
inline any_tick(x) {
	if
	:: x = 0 :: x = 1 :: x = 2
#if T > 3
	:: x = 3
#endif
#if T > 4
	:: x = 4
#endif
#if T > 5
	:: x = 5
#endif
#if T > 6
	:: x = 6
#endif
	fi
}
#endif

/* The end of a window whose writer has used everything before tick x, and whose
 * clock says y: at most a window beyond max_ahead.
 * M_UNCAPPED: at most a window beyond what was used. */
#if defined(CLOCK) && !defined(M_UNCAPPED)
#define END(x, y) MIN(T, MIN(MAX(x, y), (y) + A) + WINDOW)
#else
#define END(x, y) MIN(T, MAX(x, y) + WINDOW)
#endif

/* ANYWINDOW: a window may be as long as its writer likes. */
inline longer(x) {
#ifdef ANYWINDOW
	do
	:: x < T -> x++
	:: break
	od
#else
	skip
#endif
}

inline clear(q) {
	q.st = NONE; q.kind = 0; q.id = 0; q.same = 0; q.from = 0; q.until = 0; q.cfg = 0; q.mine = 0;
#ifdef DEAD
	q.dead = 0;
#endif
#ifdef M_WALL
	q.wall = 0;
#endif
#ifdef DESTROY
	q.late = 0;
#ifdef FAILOVER
	q.cfgbak = 0;
#endif
#ifdef OLDREADS
	q.cfgold = 0; q.old = 0;
#endif
#endif
#ifdef M_NONONCE
	q.vu = 0; q.vs = 0; q.vo = 0;
#endif
#ifdef BACK
	q.bak = 0;
#endif
#ifdef REVCAS
	q.rev = 0;
#endif
}

/* A write that is given up, and that the store can only refuse, changes nothing
 * any more and is left out. */
#if defined(M_BLIND) || defined(M_FOREIGN) || defined(REVCAS) || defined(M_NONONCE)
#define HOPELESS(q) false
#elif defined(BACK)
#define HOPELESS(q) (!q.same && !q.bak)
#else
#define HOPELESS(q) (!q.same)
#endif

/* Record rec has new bytes, which no process remembers. */
inline wrote(rec) {
	k = 0;
	do
	:: k < NP ->
		if :: m[k].own && m[k].id == rec -> m[k].same = 0 :: else fi;
		if :: rq[k].st != NONE && rq[k].id == rec -> rq[k].same = 0 :: else fi;
		if
		:: zb[k].st != NONE && zb[k].id == rec ->
			zb[k].same = 0;
			if :: HOPELESS(zb[k]) -> clear(zb[k]) :: else fi
		:: else
		fi;
		k++
	:: else -> break
	od;
	k = 0;
#ifdef THERE
	r[rec].there = 1;
#endif
#ifdef BACK
	r[rec].bak = 0;
#endif
#ifdef FAILOVER
	dirty = !SAFE;
#endif
#ifdef DESTROY
	osame[rec] = 0;
#endif
#ifdef REVCAS
	rev++; r[rec].rev = rev;
#endif
}

/* The configuration has new bytes. */
inline configured() {
	k = 0;
	do
	:: k < NP -> rq[k].cfg = 0; zb[k].cfg = 0; k++
	:: else -> break
	od;
	k = 0;
#ifdef DESTROY
	ocfg = 0;
#ifdef FAILOVER
	cfgbak = 0; dirty = !SAFE;
#endif
#endif
}

/* q1 becomes q2, which is no more. */
inline move(q1, q2) {
	q1.st = q2.st; q1.kind = q2.kind; q1.id = q2.id; q1.same = q2.same;
	q1.from = q2.from; q1.until = q2.until; q1.cfg = q2.cfg; q1.mine = q2.mine;
#ifdef DEAD
	q1.dead = q2.dead;
#endif
#ifdef M_WALL
	q1.wall = q2.wall;
#endif
#ifdef DESTROY
	q1.late = q2.late;
#ifdef FAILOVER
	q1.cfgbak = q2.cfgbak;
#endif
#ifdef OLDREADS
	q1.cfgold = q2.cfgold; q1.old = q2.old;
#endif
#endif
#ifdef M_NONONCE
	q1.vu = q2.vu; q1.vs = q2.vs; q1.vo = q2.vo;
#endif
#ifdef BACK
	q1.bak = q2.bak;
#endif
#ifdef REVCAS
	q1.rev = q2.rev;
#endif
	clear(q2)
}

/* The sender gives up waiting: its write lives on in the network. */
inline give_up() {
	move(zb[me], rq[me]);
	if :: HOPELESS(zb[me]) -> clear(zb[me]) :: else fi
}

#ifdef REVCAS
#define EQUAL(q) (q.rev == r[q.id].rev)
#elif defined(M_NONONCE)        /* records have no nonce: what they say may come back */
#define EQUAL(q) (q.vu == r[q.id].until && q.vs == r[q.id].state && q.vo == r[q.id].owner)
#else
#define EQUAL(q) q.same
#endif
/* M_BLIND: a renewal overwrites whatever the record has.
 * M_FOREIGN: so does a release, though the record is not ours any more. */
#ifdef M_BLIND
#define ANYHOW(q) (q.kind == RENEW)
#elif defined(M_FOREIGN)
#define ANYHOW(q) (q.kind == RELEASE)
#else
#define ANYHOW(q) false
#endif

#ifdef GAP
#define SPOILED(n) (r[n].sc > 0)
#ifndef CROSS
#define CROSS   (-1)
#endif

/* Record rec takes the gap [lo, hi) in place of its own, or keeps its own: the
 * protocol keeps the longer one, and either will do. */
inline gap(rec, lo, hi) {
	if
	:: lo < hi ->
		if
		:: r[rec].ga = lo; r[rec].gb = hi
		:: r[rec].gb > 0
		fi
	:: else
	fi
}

/* Write q is being applied: what becomes of gap and spoiled span. Its sender
 * has read both, or it would be refused. */
inline carry(q) {
	if
	:: q.kind == ACQUIRE && SPOILED(q.id) && q.from >= r[q.id].sb ->        /* it begins beyond what is spoiled */
#ifdef M_GAPSPOIL       /* all that lies between is taken for a gap */
		gap(q.id, r[q.id].until, q.from);
#else
		gap(q.id, r[q.id].until, r[q.id].sb);
		gap(q.id, r[q.id].sc, q.from);
#endif
		r[q.id].sb = 0; r[q.id].sc = 0
	:: q.kind == ACQUIRE && !(SPOILED(q.id) && q.from >= r[q.id].sb) ->
		gap(q.id, r[q.id].until, q.from)
#ifdef M_GAPRENEW       /* a renewal of a window that lapsed records a gap too */
	:: q.kind == RENEW ->
		gap(q.id, r[q.id].until, q.from)
#endif
	:: else
	fi;
	if                      /* M_CROSS: a claim's or a renewal's window (CROSS) reaches into what is spoiled */
	:: (q.kind == ACQUIRE || q.kind == RENEW) && q.kind != CROSS && SPOILED(q.id) -> q.until = MIN(q.until, r[q.id].sb)
	:: else
	fi;
	if :: q.kind == LOST -> FORGET(q.id) :: else fi;
	q.from = (q.kind == ACQUIRE -> q.from : 0)
}
#endif

/* The store judges a write: all or nothing, one after the other. */
inline apply(q) {
	if
	:: EQUAL(q) || ANYHOW(q) ->
#ifdef GAP
		carry(q);
#endif
#ifdef DESTROY
		q.late = returned;
#endif
#ifdef NOTICE           /* only a claim writes where its grant begins */
		if
		:: q.kind == ACQUIRE -> r[q.id].from = q.from; r[q.id].began = q.from
#ifdef M_FROMLOST       /* so does a renewal */
		:: q.kind == RENEW -> r[q.id].from = r[q.id].until
#endif
		:: else
		fi;
#ifdef M_WALL
		r[q.id].wall = q.wall;
#endif
#endif
#ifdef DEAD
		r[q.id].owner = (q.dead -> 0 : NAME);
#elif defined(OWNER)
		r[q.id].owner = me + 1;
#endif
		r[q.id].until = q.until;
		r[q.id].state = (q.kind == ACQUIRE || q.kind == RENEW -> HELD : FREE);
		q.st = NONE;
		wrote(q.id);
#ifdef FAILOVER
		q.st = (SAFE -> DONE : SEEN);
#else
		q.st = DONE;
#endif
		q.same = 1;
#ifdef M_NONONCE
		q.vu = r[q.id].until; q.vs = r[q.id].state; q.vo = r[q.id].owner;
#endif
#ifdef BACK
		q.bak = 0;
#endif
#if defined(RESTORE) && !defined(CLOCK) && !defined(ROLLBACK)
		if :: stage > 0 -> top = MAX(top, q.until) :: else fi;
#endif
#ifdef REVCAS
		q.rev = r[q.id].rev;
#endif
	:: else -> q.st = FAIL; q.same = 0
	fi
}

/* No slot is under way. */
inline unpend() { m[me].p = 0; m[me].ps = 0; m[me].pn = 0 }

/* The term takes no more slots. Sealing swaps the very word that slots are
 * taken from, so a slot that was only looked at is not taken. */
inline seal() {
	m[me].sealed = 1;
#ifdef M_SEAL   /* a flag says sealed, and the word lives on */
	if :: m[me].p == WAITING -> unpend() :: else fi
#else
	if :: m[me].p == LOOKED || m[me].p == WAITING -> unpend() :: else fi
#endif
}

/* The sender of the write of unknown result has no use for it any more. */
inline disown() {
	if
	:: zb[me].st == DONE || zb[me].st == SEEN -> clear(zb[me])
	:: else ->
		zb[me].mine = 0; zb[me].cfg = 0;
#if !defined(GAP) && !defined(NOTICE)
		zb[me].from = 0;
#endif
#if defined(FAILOVER) && defined(DESTROY)
		zb[me].cfgbak = 0;
#endif
#ifdef OLDREADS
		zb[me].cfgold = 0; zb[me].old = 0;
#endif
	fi
}

/* The term ends. What was taken from it stays good. */
inline forget() {
	if
#ifndef M_TERM  /* a slot that waits is judged by the limit of whatever term comes next */
	:: m[me].p == WAITING || m[me].p == LOOKED -> unpend()
#endif
	:: else
	fi;
	m[me].own = 0; m[me].sealed = 0; m[me].lost = 0; m[me].same = 0; m[me].until = 0;
#ifndef M_STALE
	m[me].next = 0; m[me].id = 0;
#endif
#ifdef POLL
	m[me].knows = 0;
#endif
#ifdef M_NONONCE
	m[me].vu = 0; m[me].vs = 0; m[me].vo = 0;
#endif
#ifdef BACK
	m[me].bak = 0;
#endif
#ifdef REVCAS
	m[me].rev = 0;
#endif
	disown()
}

/* The bytes that write q left are those of the grant now. */
inline remember(q) {
	m[me].same = q.same;
#ifdef M_NONONCE
	m[me].vu = q.vu; m[me].vs = q.vs; m[me].vo = q.vo;
#endif
#ifdef BACK
	m[me].bak = q.bak;
#endif
#ifdef REVCAS
	m[me].rev = q.rev;
#endif
}

/* A claim becomes the term, in place of the one before, if any. */
inline begin(q) {
#ifdef DESTROY
	assert(!q.late);                                        /* ENDED, for acquires */
#endif
	c = q.from;
#ifdef M_STALE  /* a number that is acquired again continues in its old memory */
	if :: m[me].used > 0 && m[me].id == q.id -> c = m[me].next :: else fi;
#endif
#ifdef M_SWITCH /* a term begins where its grant does, whatever was used before */
	u = c;
#else
	u = MAX(c, m[me].used);
#endif
	q.st = NONE;
	forget();
	m[me].own = 1; m[me].id = q.id; m[me].next = u; m[me].until = q.until;
#ifdef POLL
	m[me].knows = (stage == 3);
#endif
	remember(q);
#ifdef M_TERM
	if :: m[me].p == WAITING && m[me].ps < m[me].until -> m[me].p = TAKEN :: else fi;
#endif
	u = 0; c = 0
}

/* A renewal was applied. */
inline extend(q) {
	if
	:: !m[me].sealed && m[me].until < q.until ->
#ifdef DESTROY
		assert(!q.late);                                /* ENDED, for renewals */
#endif
		m[me].until = q.until;
		if :: m[me].p == WAITING && m[me].ps < q.until -> m[me].p = TAKEN :: else fi
	:: else
	fi;
	remember(q);
#ifdef M_CURSOR /* a renewal moves the next slot back to the clock */
	any_tick(c);
	m[me].next = MIN(m[me].next, c); c = 0;
#endif
}

/* The configuration, read once more, is what it was when the number was picked.
 * M_NOREREAD: it is not read.
 * M_STATE: the state is compared, and not the bytes.
 * M_OLDREAD: that read is answered by the old primary, the claim by the new. */
#if defined(M_NOREREAD)
#define REREAD(q) true
#elif defined(M_STATE)
#define REREAD(q) USABLE
#elif defined(M_OLDREAD)
#define REREAD(q) (q.cfg || q.cfgold)
#elif defined(OLDREADS)
#define REREAD(q) (q.cfg || q.cfgold && q.old)
#else
#define REREAD(q) q.cfg
#endif

/* The mark x of a claim that is given back: nothing of it was used, so it is
 * where the claim began.
 * M_DROPCLOCK: it is the clock. */
#ifdef M_DROPCLOCK
#define dropped(x, start) any_tick(x)
#else
#define dropped(x, start) x = start
#endif

/* A claim was applied. The configuration is read once more, and only if it is
 * what it was when the number was picked the claim is used. Otherwise it is
 * given back. */
inline claimed(q) {
	if
	:: REREAD(q) -> begin(q); clear(q)
	:: !REREAD(q) ->
		q.kind = DROP; q.st = SENT; q.mine = 0;
		dropped(q.until, q.from);
		q.from = 0
	fi
}

/* M_FROM: a grant begins at the clock, whatever the mark says. */
#ifdef M_FROM
#define FROM MAX(c, FLOOR)
#else
#define FROM MAX(c, MAX(r[u].until, FLOOR))
#endif
/* M_TAKEOVER: a number that is held is taken over, and begins at the clock. */
#if defined(ANYTAKE) || defined(M_TAKEOVER)
#define CANDIDATE true
#else
#define CANDIDATE (r[u].state == FREE || r[u].until < c)
#endif
/* M_FARCLAIM: a grant begins further ahead of the clock than max_ahead, and has
 * a whole window. */
#if defined(CLOCK) && !defined(M_FARCLAIM)
#define NEAR(x) ((x) <= c + A)
#else
#define NEAR(x) true
#endif
/* M_UNTIL: the exclusive end of a window is used. */
#ifdef M_UNTIL
#define WITHIN(x) ((x) <= m[me].until)
#else
#define WITHIN(x) ((x) < m[me].until)
#endif
/* Where direct calls alone take slots, these are not far ahead of the clock;
 * Reserve takes any slot of the window at any time. */
#ifdef DIRECT
#define REACHED(x) ((x) <= c + A)
#else
#define REACHED(x) true
#endif

#ifdef M_FOREIGN
#define OURS true
#else
#define OURS (!m[me].lost)
#endif
/* M_BELOWFROM: a release lowers the mark to what the process used, though that
 * was before the grant began.
 * M_GIVECLOCK: it lowers the mark to the clock. */
#if defined(M_GIVECLOCK)
#define GIVEBACK MIN(c, m[me].until)
#elif defined(M_BELOWFROM)
#define GIVEBACK MIN(m[me].used, m[me].until)
#else
#define GIVEBACK MIN(MAX(m[me].next, m[me].used), m[me].until)
#endif
/* M_ASYNC: the release is written before the term is sealed. */
#ifdef M_ASYNC
#define CLOSED m[me].own
#else
#define CLOSED m[me].sealed
#endif

/* A read of the record shows the bytes of the write of unknown result, whose
 * sender still wants it. */
#define SHOWN(q) ((q.st == DONE || q.st == SEEN) && q.mine && q.same)

/* A new write of the grant: from the bytes of q, or of the memory. */
inline from_bytes(q) {
	rq[me].st = SENT; rq[me].id = q.id; rq[me].same = q.same; rq[me].mine = 1;
#ifdef M_NONONCE
	rq[me].vu = q.vu; rq[me].vs = q.vs; rq[me].vo = q.vo;
#endif
#ifdef BACK
	rq[me].bak = q.bak;
#endif
#ifdef REVCAS
	rq[me].rev = q.rev;
#endif
}

/* The slot u is taken. */
inline take() {
	assert(u >= m[me].used);                                /* ORDER */
#ifdef NOTICE
	assert(!m[me].over);                                    /* NOTICED */
#endif
	m[me].next = u + 1; m[me].used = u + 1;
	m[me].ps = u; m[me].pn = m[me].id
}

#ifdef NOTICE
#define THAWED (!m[me].frozen)
/* What the process may have used ends here. A release of unknown result may
 * have lowered the mark. */
#define LAST_USE (m[me].sealed -> GIVEBACK : m[me].until)
/* The record that is read back is another's, and so is its window: it begins
 * below the end of this process's.
 * M_WALL: it was written by a clock that shows a time in this process's window.
 * M_TAKEN: it is taken for a takeover, always. M_ANYOVER: it never is. */
#if defined(M_WALL)
#define OVERLAPS(n) (r[n].wall <= LAST_USE)
#elif defined(M_TAKEN)
#define OVERLAPS(n) false
#elif defined(M_ANYOVER)
#define OVERLAPS(n) true
#else
#define OVERLAPS(n) (r[n].from < LAST_USE)
#endif
inline found() {
	k = m[me].id;
	if
#ifdef THERE
	:: !r[k].there -> m[me].frozen = 1
#endif
	:: r[k].owner == NAME && (r[k].until > 0) ->            /* an old one, a copy's, or a late write */
		if
		:: WENT -> m[me].frozen = 1
#ifdef CLONE
		:: cloned -> if :: !m[me].sealed -> seal() :: else fi
#endif
		:: else
		fi
	:: else ->
		if :: r[k].began < LAST_USE -> m[me].over = 1 :: else fi;
		if
		:: OVERLAPS(k) ->
			m[me].frozen = 1;
#ifndef M_NOSEALOVER    /* it freezes, and uses what is left of its window */
			if :: !m[me].sealed -> seal() :: else fi;
#endif
#ifdef CLONE
			assert(!m[me].frozen || cloned)                 /* NOTICED: m[].over */
#else
			assert(!m[me].frozen || WENT)                   /* NOTICED: m[].over */
#endif
		:: else
		fi
	fi;
	k = 0;
	m[me].lost = 1
}
#else
#define THAWED true
inline found() { m[me].lost = 1 }
#endif

/* The configuration is read first. LATEPICK: the record is read later, when the
 * configuration may be another. */
#ifdef LATEPICK
#define MAYPICK true
#else
#define MAYPICK USABLE
#endif

/* A copy, and what it is a copy of, keep their name. */
#if defined(NOTICE) && defined(CLONE)
#define MORTAL (!cloned || me == 1)
#else
#define MORTAL true
#endif

active [NP] proctype Process() {
	byte me = _pid;
	byte c, u, e, k;
	do
	/* Acquire. The number and the configuration are read here; the write may be
	 * applied much later, so what was read may be old. */
	:: atomic { (!m[me].own || m[me].lost && !m[me].sealed) && rq[me].st == NONE && MAYPICK && TURN && MAYSEND && THAWED ->
#ifdef NOTICE
		assert(!m[me].over);                                    /* NOTICED */
#endif
		u = 0;
#if NI > 1
		if :: u = 0 :: second -> u = 1 fi;
		second = 1;
#endif
		any_tick(c);
		e = FROM;
#ifdef GAP
		if
		:: SPOILED(u) && e < r[u].sb
#ifdef M_INSIDE         /* it begins inside what is spoiled */
		:: SPOILED(u) && e >= r[u].sb
#else
		:: SPOILED(u) -> e = MAX(e, r[u].sc)    /* beyond what is spoiled, or too near to it */
#endif
		:: !SPOILED(u)
		fi;
#endif
		if
		:: CANDIDATE && e < T && NEAR(e) ->
			COUNT;
			if :: me == begun && begun < NP -> begun++ :: else fi;
			rq[me].st = SENT; rq[me].kind = ACQUIRE; rq[me].id = u; rq[me].same = 1; rq[me].cfg = USABLE; rq[me].mine = 1;
#ifdef M_WALL
			rq[me].wall = c;
#endif
#if defined(FAILOVER) && defined(DESTROY)
			rq[me].cfgbak = (cfgbak && USABLE);
#endif
#ifdef M_NONONCE
			rq[me].vu = r[u].until; rq[me].vs = r[u].state; rq[me].vo = r[u].owner;
#endif
#ifdef BACK
			rq[me].bak = r[u].bak;
#endif
#ifdef REVCAS
			rq[me].rev = r[u].rev;
#endif
			rq[me].from = e;
#ifdef M_TAKEOVER
			if :: r[u].state != FREE && r[u].until >= c -> rq[me].from = c :: else fi;
#endif
#ifdef M_FARCLAIM
			rq[me].until = MIN(T, e + WINDOW)
#else
			rq[me].until = MAX(r[u].until, END(MAX(rq[me].from, m[me].used), c));
			longer(rq[me].until)
#endif
		:: else
		fi;
		c = 0; u = 0; e = 0 }

	/* Renew, before the window has expired or long after. */
	:: atomic { m[me].own && !m[me].sealed && !m[me].lost && rq[me].st == NONE && m[me].until < T && MAYSEND ->
		any_tick(c);
#ifdef M_SHRINK /* it may lower the mark */
		u = END(m[me].used, c);
#else
		u = MAX(m[me].until, END(m[me].used, c));
		longer(u);
#endif
		if
		:: u != m[me].until ->
			COUNT;
			from_bytes(m[me]);
			rq[me].kind = RENEW; rq[me].until = u;
#ifdef M_WALL
			rq[me].wall = c;
#endif
#ifdef M_GAPRENEW
			rq[me].from = c;
#endif
		:: else
		fi;
		c = 0; u = 0 }

	/* Settle a write of unknown result that the record shows: write the same or
	 * a later window, from its bytes. Only that is adopted. */
	:: atomic { SHOWN(zb[me]) && rq[me].st == NONE && MAYSEND &&
		    (zb[me].kind == RENEW && m[me].own && !m[me].sealed && !m[me].lost ||
		     zb[me].kind == ACQUIRE && (!m[me].own || m[me].lost && !m[me].sealed)) ->
		COUNT;
		any_tick(c);
		from_bytes(zb[me]);
		rq[me].kind = zb[me].kind; rq[me].from = zb[me].from; rq[me].cfg = zb[me].cfg;
#if defined(FAILOVER) && defined(DESTROY)
		rq[me].cfgbak = zb[me].cfgbak;
#endif
#ifdef OLDREADS
		rq[me].cfgold = zb[me].cfgold;
#endif
		rq[me].until = MAX(zb[me].until, END(m[me].used, c));
		c = 0 }
	/* Or give such a claim back. */
	:: atomic { SHOWN(zb[me]) && rq[me].st == NONE && zb[me].kind == ACQUIRE && MAYSEND ->
		COUNT;
		from_bytes(zb[me]);
		rq[me].kind = DROP; rq[me].mine = 0;
		dropped(rq[me].until, zb[me].from);
		clear(zb[me]) }
#ifdef M_ADOPTREAD      /* a read that shows it is enough */
	:: atomic { SHOWN(zb[me]) && rq[me].st == NONE && (zb[me].kind == RENEW || zb[me].kind == ACQUIRE && zb[me].cfg) ->
		if
		:: zb[me].kind == RENEW -> extend(zb[me])
		:: else -> begin(zb[me])
		fi;
		clear(zb[me]) }
#endif

	/* Give back: seal, then lower the mark to the end of what was used; as often
	 * as it takes, or not at all. */
	:: atomic { m[me].own && !m[me].sealed && rq[me].st == NONE ->
		seal() }
	:: atomic { m[me].own && CLOSED && rq[me].st == NONE && MAYSEND && OURS ->
		COUNT;
		if
		:: from_bytes(m[me])
		:: SHOWN(zb[me]) && zb[me].kind == RENEW -> from_bytes(zb[me])
		fi;
		rq[me].kind = RELEASE;
#ifdef M_GIVECLOCK
		any_tick(c);
#endif
		rq[me].until = GIVEBACK;
		c = 0 }
	:: atomic { m[me].own && m[me].sealed && rq[me].st == NONE -> forget() }
#ifdef M_REOPEN /* a term is opened again, as the number is wanted after all */
	:: atomic { m[me].own && m[me].sealed && rq[me].st == NONE -> m[me].sealed = 0 }
#endif

	/* The answer has come. */
	:: atomic { rq[me].st == DONE && ONLINE ->
		if
		:: rq[me].kind == ACQUIRE -> claimed(rq[me])
		:: rq[me].kind == RENEW -> extend(rq[me]); clear(rq[me])
		:: rq[me].kind == RELEASE -> forget(); clear(rq[me])
		:: else -> clear(rq[me])
		fi }
#ifdef M_WARNED         /* it says applied before the standby has it */
	:: atomic { rq[me].st == SEEN -> rq[me].st = DONE }
#endif
	:: atomic { rq[me].st == FAIL && ONLINE ->
		if
		:: rq[me].kind == RENEW || rq[me].kind == RELEASE ->
			/* Read the record back. */
			if
			:: SHOWN(zb[me]) && zb[me].kind == RENEW        /* an earlier attempt of this grant: settle it */
#ifdef DESTROY
			:: r[m[me].id].state == CLOSING && r[m[me].id].owner == me + 1 && !m[me].lost ->
				m[me].same = 1;                 /* the operator's mark: lower it */
#ifdef BACK
				m[me].bak = r[m[me].id].bak;
#endif
				if :: !m[me].sealed -> seal() :: else fi
#endif
#ifdef BACK
			:: m[me].same                           /* it came back: try again */
#endif
			:: else -> found()
			fi
		:: else
		fi;
		clear(rq[me]) }

	/* No answer has come. */
	:: atomic { (rq[me].st == SENT || rq[me].st == SEEN || rq[me].st == DONE) && zb[me].st != SENT ->
#ifdef M_AMBIG  /* that is taken for success */
		if
		:: rq[me].kind == ACQUIRE -> k = rq[me].st; begin(rq[me]); rq[me].st = k; rq[me].mine = 0; k = 0
		:: rq[me].kind == RENEW -> m[me].until = MAX(m[me].until, rq[me].until)
		:: else
		fi;
#endif
		give_up() }
	:: atomic { rq[me].st == SENT && zb[me].st != NONE -> clear(rq[me]) }  /* it is lost too */

	/* The store. */
	:: atomic { rq[me].st == SENT -> apply(rq[me]) }
	:: atomic { zb[me].st == SENT -> apply(zb[me]); if :: zb[me].st == FAIL || !zb[me].mine -> clear(zb[me]) :: else fi }
	:: atomic { zb[me].st != NONE -> clear(zb[me]) }       /* lost */

#ifndef IDLE
	/* Make an ID: take a slot … any pause … hand it out. */
#ifdef LOOK
	:: atomic { m[me].own && !m[me].sealed && m[me].p == 0 ->
		any_tick(c);
		u = MAX(c, m[me].next);
		if :: WITHIN(u) && u < T -> m[me].p = LOOKED; m[me].ps = u :: else fi;
		c = 0; u = 0 }
	:: atomic { m[me].p == LOOKED ->                        /* the swap; sealing and Switch make it fail */
		u = m[me].ps;
		take(); m[me].p = TAKEN; u = 0 }
#else
	:: atomic { m[me].own && !m[me].sealed && m[me].p == 0 ->
		any_tick(c);
		u = MAX(c, m[me].next);
		if
		:: WITHIN(u) && u < T && REACHED(u) -> take(); m[me].p = TAKEN
#ifdef WAIT
		:: !WITHIN(u) && u < T -> take(); m[me].p = WAITING
		:: u >= T
#else
		:: else
#endif
		fi;
		c = 0; u = 0 }
#endif
	:: atomic { m[me].p == TAKEN ->
#ifdef M_NODE   /* it is handed out with the number of the term that is there by then */
		if :: m[me].own -> m[me].pn = m[me].id :: else fi;
#endif
		k = m[me].pn * T + m[me].ps;
		assert(!((issued >> k) & 1) || ALLOWED(m[me].pn, m[me].ps));   /* UNIQUE */
		issued = issued | (1 << k);
		k = 0;
		unpend() }
#endif

#ifdef POLL
	/* Read the configuration, and find the floor of a fence there. */
	:: atomic { stage == 3 && m[me].own && !m[me].knows && rq[me].st == NONE ->
		m[me].knows = 1;
#ifndef M_NOSEAL        /* a window that ends above it is used to its end */
		if :: m[me].until > floor && !m[me].sealed -> seal() :: else fi
#endif
		}
#endif

	/* Die. The process that starts in this place is another. */
	:: atomic { (m[me].own || rq[me].st != NONE || m[me].used > 0) && MORTAL ->
		if
		:: rq[me].st == SENT && zb[me].st != SENT -> give_up()
		:: else -> clear(rq[me])
		fi;
#ifdef DEAD
		if :: zb[me].st != NONE -> zb[me].dead = 1 :: else fi;
#endif
#ifdef NOTICE
		m[me].frozen = 0; m[me].over = 0;
#endif
#ifdef OWNER
		k = 0;
		do
		:: k < NI ->
			if :: r[k].owner == me + 1 -> r[k].owner = 0 :: else fi;
#ifdef BACK
			if :: b[k].owner == me + 1 -> b[k].owner = 0 :: else fi;
#endif
			k++
		:: else -> break
		od;
		k = 0;
#endif
		unpend(); forget(); m[me].used = 0; m[me].next = 0; m[me].id = 0 }
	od
}

#ifdef BACK
/* r1 becomes r2. */
inline copy(r1, r2) {
	r1.until = r2.until; r1.state = r2.state;
#ifdef OWNER
	r1.owner = r2.owner;
#endif
#ifdef NOTICE
	r1.from = r2.from; r1.began = r2.began;
#ifdef M_WALL
	r1.wall = r2.wall;
#endif
#endif
#ifdef GAP
	r1.ga = r2.ga; r1.gb = r2.gb; r1.sb = r2.sb; r1.sc = r2.sc;
#endif
#ifdef THERE
	r1.there = r2.there;
#endif
#ifdef REVCAS
	r1.rev = r2.rev;
#endif
}

/* The backup, or the standby, has all that the store has. */
inline save() {
	i = 0;
	do
	:: i < NI -> copy(b[i], r[i]); r[i].bak = 1; i++
	:: else -> break
	od;
	i = 0; k = 0;
	do
	:: k < NP -> m[k].bak = m[k].same; rq[k].bak = rq[k].same; zb[k].bak = zb[k].same; k++
	:: else -> break
	od;
	k = 0
}

/* The store becomes what the backup, or the standby, is. These exist no more. */
inline load() {
	i = 0;
	do
	:: i < NI ->
		copy(r[i], b[i]); r[i].bak = 0;
		b[i].until = 0; b[i].state = 0;
#ifdef OWNER
		b[i].owner = 0;
#endif
#ifdef NOTICE
		b[i].from = 0; b[i].began = 0;
#ifdef M_WALL
		b[i].wall = 0;
#endif
#endif
#ifdef GAP
		b[i].ga = 0; b[i].gb = 0; b[i].sb = 0; b[i].sc = 0;
#endif
#ifdef THERE
		b[i].there = 0;
#endif
#ifdef REVCAS
		b[i].rev = 0;
#endif
		i++
	:: else -> break
	od;
	i = 0; k = 0;
	do
	:: k < NP ->
		m[k].same = m[k].bak; rq[k].same = rq[k].bak; zb[k].same = zb[k].bak;
		m[k].bak = 0; rq[k].bak = 0; zb[k].bak = 0; k++
	:: else -> break
	od;
	k = 0
}
#endif

#ifdef DESTROY
/* The operator goes back to the beginning. */
inline restart() {
	opc = 0; ocfg = 0;
#ifdef FAILOVER
	owait = 0; b_ocfg = 0;
#endif
#ifdef OLDREADS
	onew = 0; oldsame[0] = 0; oldsame[NI-1] = 0;
#endif
	do
	:: i < NI -> osame[i] = 0; oown[i] = 0;
#ifdef FAILOVER
		b_osame[i] = 0; b_oown[i] = 0;
#endif
		i++
	:: else -> break
	od;
	i = 0
}
#endif

#ifdef FAILOVER
/* A primary and a standby that replays its log. A write is seen on the primary
 * before the standby has it, and is answered only when it has; so an answer
 * that says applied means that the standby has everything up to there. */
inline replicate() {
	save();
	k = 0;
	do
	:: k < NP ->
		if :: rq[k].st == SEEN -> rq[k].st = DONE :: else fi;
		if :: zb[k].st == SEEN -> zb[k].st = DONE :: else fi;
#ifdef DESTROY
		rq[k].cfgbak = rq[k].cfg; zb[k].cfgbak = zb[k].cfg;
#endif
		k++
	:: else -> break
	od;
	k = 0;
#ifdef DESTROY
	b_cfg = cfg; cfgbak = 1; b_ocfg = ocfg; owait = 0;
	do
	:: i < NI -> b_osame[i] = osame[i]; b_oown[i] = oown[i]; i++
	:: else -> break
	od;
	i = 0;
#endif
	dirty = 0
}

active proctype Standby() {
	byte k, i;
	do
	:: atomic { dirty -> replicate() }
	/* It is promoted, FAILOVER times. What it has not is gone. Requests under way
	 * may reach it all the same, or are lost. */
#ifdef OLDREADS
	:: atomic { !SAFE ->
		oldcfg = cfg; onew = 0;
		do
		:: i < NI -> oldabsent[i] = !r[i].there; oldsame[i] = osame[i]; i++
		:: else -> break
		od;
		i = 0;
#else
	:: atomic { dirty && !SAFE ->
#endif
		failed++; dirty = 0;
		do
		:: k < NP ->
			if :: rq[k].st == SEEN -> clear(rq[k]) :: else fi;
			if :: zb[k].st == SEEN -> clear(zb[k]) :: else fi;
#ifdef OLDREADS
			rq[k].cfgold = rq[k].cfg; zb[k].cfgold = zb[k].cfg;
			rq[k].old = (rq[k].st == DONE); zb[k].old = (zb[k].st == DONE);
#endif
#ifdef DESTROY
			rq[k].cfg = rq[k].cfgbak; zb[k].cfg = zb[k].cfgbak;
			rq[k].cfgbak = 0; zb[k].cfgbak = 0;
#endif
			k++
		:: else -> break
		od;
		k = 0;
		load();
		do
		:: k < NP -> if :: zb[k].st != NONE && HOPELESS(zb[k]) -> clear(zb[k]) :: else fi; k++
		:: else -> break
		od;
		k = 0;
#ifdef DESTROY
		cfg = b_cfg; b_cfg = 0; cfgbak = 0; ocfg = b_ocfg; b_ocfg = 0;
		do
		:: i < NI -> osame[i] = b_osame[i]; b_osame[i] = 0; oown[i] = b_oown[i]; b_oown[i] = 0; i++
		:: else -> break
		od;
		i = 0;
		/* What the operator waits for is not there. */
		if
		:: owait && opc == LISTED && !ocfg -> restart()
		:: owait && opc > LISTED -> opc--
		:: else
		fi;
		owait = 0;
#endif
		if :: !SAFE -> replicate() :: else fi }
	od
}
#endif

#ifdef DESTROY
/* Destroy and detach, which differ in what may follow only. Operators start,
 * stop and start again at will, side by side; one of them is followed. */
#ifdef FAILOVER
#define PENDING owait
#define PEND owait = !SAFE
#else
#define PENDING false
#define PEND skip
#endif
#ifdef M_LAPSED /* a held record whose window has expired by the operator's clock is not closed */
#define CLOSABLE(n) (r[n].state != FREE && r[n].until >= T - 1)
#elif defined(M_SEENCLOSED)     /* nor is one that was closed by another operator, as a read shows */
#define CLOSABLE(n) (r[n].state == HELD)
#else
#define CLOSABLE(n) (r[n].state != FREE)
#endif
#define KNOWN(n) (oown[n] || osame[n])

/* The operator writes the configuration. */
inline rewrite() {
	configured(); ocfg = 1; PEND;
#ifdef OLDREADS
	onew = 1;
#endif
}

active proctype Operator() {
	byte k, i, c;
	do
	:: atomic { cfg == ATTACHED && ends < DESTROY ->
		ends++; cfg = ENDING; configured() }
	/* Create or attach again; the records stay. */
	:: atomic { cfg != ATTACHED ->
		cfg = ATTACHED; returned = 0; configured();
#ifdef M_WIPE           /* they are removed */
		do
		:: i < NI -> r[i].until = 0; r[i].state = FREE; wrote(i); i++
		:: else -> break
		od;
		i = 0
#endif
		}

	/* Another operator closes a record, which may come late, too. */
	:: atomic { ends > 0 ->
		i = 0;
#if NI > 1
		if :: i = 0 :: i = 1 fi;
#endif
		if :: r[i].state == HELD -> r[i].state = CLOSING; wrote(i) :: else fi;
		i = 0 }

	/* The configuration is written anew, also if another operator wrote ENDING:
	 * what is read after that is not older. */
	:: atomic { opc == 0 && cfg == ENDING ->
#ifdef M_FIRSTREAD      /* a read that shows ENDING is enough to begin with */
		ocfg = 1;
#ifdef FAILOVER
		b_ocfg = cfgbak;
#endif
#else
		rewrite();
#endif
		opc = LISTED }
	/* Every record that is not free is written anew, so that its owner can
	 * extend it no more. Who owns it stays, and the mark. */
	:: atomic { opc == LISTED && !PENDING ->
		i = 0;
#if NI > 1
		if :: i = 0 :: i = 1 fi;
#endif
		if
		:: !oown[i] && CLOSABLE(i) ->
			r[i].state = CLOSING;
#if LOST == CLOSE
			FORGET(i);
#endif
#ifdef M_CLOSELOWER     /* the mark becomes the operator's clock */
			any_tick(c);
			r[i].until = MIN(r[i].until, c); c = 0;
#endif
#ifndef M_MARKONLY      /* it is written without a fresh nonce */
			wrote(i);
#endif
			oown[i] = 1; PEND;
#ifdef OLDREADS
			onew = 1
#endif
#ifdef OLDREADS         /* a number without a record: nothing to close */
		:: !KNOWN(i) && !r[i].there ->
			oown[i] = 1; b_oown[i] = 1
		:: !KNOWN(i) && failed && !onew && oldabsent[i] ->
			oown[i] = 1; b_oown[i] = 1
#endif
		:: !KNOWN(i) && !CLOSABLE(i) ->
#if defined(FAILOVER) && !defined(M_SEENCLOSED) && !defined(M_SEENFREE)
			osame[i] = 1; b_osame[i] = r[i].bak
#else
			oown[i] = 1;
#ifdef FAILOVER
			b_oown[i] = 1
#endif
#endif
		:: else
		fi;
		i = 0 }
	/* Whether the windows have expired is the operator's clock to say, so it may
	 * say yes at any time. */
	:: atomic { opc == LISTED && !PENDING && KNOWN(0) && KNOWN(NI-1) ->
		if
		:: oown[0] && oown[NI-1] -> opc = SURE
		:: !(oown[0] && oown[NI-1]) && ocfg -> rewrite(); opc = ASKED
		:: !(oown[0] && oown[NI-1]) && !ocfg -> restart()
		fi }
	/* A write of its own has been applied since: what is read before and after
	 * is durable. */
	:: atomic { opc == ASKED && !PENDING ->
		opc = (KNOWN(0) && KNOWN(NI-1) -> SURE : LISTED) }
#ifdef OLDREADS
	:: atomic { opc == ASKED && !PENDING && failed && !onew && (oown[0] || oldsame[0]) && (oown[NI-1] || oldsame[NI-1]) ->
		opc = SURE }
#endif
#ifdef M_OPSTATE        /* the configuration is written from whatever bytes it has by then */
	:: atomic { opc == SURE && cfg == ENDING ->
#else
	:: atomic { opc == SURE && ocfg ->
#endif
		cfg = ENDED; rewrite(); opc = FINISHED }
	:: atomic { opc == FINISHED && !PENDING ->
		returned = (cfg == ENDED);
		restart() }
	/* It was done already. That must be durable, too. */
	:: atomic { opc == 0 && cfg == ENDED && !returned ->
		rewrite(); opc = FINISHED }
#ifdef M_SEENENDED      /* a read that shows it is enough */
	:: atomic { opc == 0 && oldcfg == ENDED && failed -> returned = 1 }
#endif
	:: atomic { opc > 0 -> restart() }
	od
}
#endif

#ifdef RESTORE
/* How long the longest window may be, as the operator of the fence knows it.
 * M_SHORTW: as the restored configuration says. */
#ifdef CLOCK
#if defined(W2) && !defined(M_SHORTW)
#define LONGEST W2
#else
#define LONGEST WINDOW
#endif
/* The protocol takes the longest window twice; LENGTHS=1 shows that once is
 * enough as long as max_ahead stays what it is.
 * M_NOSKEW: members' clocks are taken for the fence's own. */
#ifndef LENGTHS
#define LENGTHS 2
#endif
#ifdef M_NOSKEW
#define ABOVE (now + A + LENGTHS * LONGEST)
#else
#define ABOVE (now + A + LENGTHS * LONGEST + SKEW)
#endif
#else
#define ABOVE top
#endif

/* The fence: the floor first, in the configuration, which gets new bytes. Then
 * every record there is, so that what a process remembers of it is worthless. */
inline fence() {
#ifndef M_NOFLOOR       /* records are rewritten, and the floor is not raised */
	floor = MIN(7, ABOVE);
#endif
	configured();
	i = 0;
	do
	:: i < NI -> fence_record(i); i++
	:: else -> break
	od;
	i = 0;
	stage = 3;
#ifdef POLL
	fenced = now;
#endif
}

inline fence_record(n) {
#ifdef M_FLOORONLY      /* the floor is raised, and no record rewritten */
	skip
#else
	if
	:: r[n].there ->
#if defined(GAP) && !defined(KEEPGAP)
		r[n].ga = MAX(r[n].ga, floor);
		if :: r[n].ga >= r[n].gb -> r[n].ga = 0; r[n].gb = 0 :: else fi;
		if
		:: SPOILED(n) && floor >= r[n].sb -> r[n].until = MAX(r[n].until, r[n].sc); r[n].sb = 0; r[n].sc = 0
		:: else
		fi;
#endif
#ifdef M_FENCELOWER     /* a mark above the floor comes down to it */
		r[n].until = MIN(7, ABOVE);
#else
		r[n].until = MAX(r[n].until, MIN(7, ABOVE));
#endif
#if LOST == FENCE
		FORGET(n);
#endif
		r[n].state = FREE;
		wrote(n)
	:: else
	fi
#endif
}

active proctype Restorer() {
	byte k, i;
	do
	:: atomic { stage == 0 ->
		stage = 1;
		save();
#ifdef REVCAS
		b_rev = rev
#endif
		}
#ifdef W2
	:: atomic { stage == 1 && w == W -> w = W2 }
#endif
	:: atomic { stage == 1 ->
		stage = 2;
		load();
#ifdef W2
		w = W;
#endif
#ifdef REVCAS
		rev = b_rev; b_rev = 0;
#endif
#if !defined(M_NOFENCE) && !defined(M_OPEN) && !defined(M_LATE)
		fence()
#endif
		}
#if defined(M_OPEN) || defined(M_LATE)
	/* M_OPEN: processes use the store before it is fenced.
	 * M_LATE: no process does, but a request of before the restore reaches it. */
	:: atomic { stage == 2 -> fence() }
#endif
	od
}
#endif

#ifdef CLOCK
#ifdef POLL
/* A member that has a window left reads the configuration every POLL ticks;
 * CUTOFF: the first one cannot. */
#ifdef CUTOFF
#define INFORMED(n) (n == 0 || !m[n].own || m[n].sealed || m[n].knows)
#else
#define INFORMED(n) (!m[n].own || m[n].sealed || m[n].knows)
#endif
#define MAYPASS (stage < 3 || now < fenced + POLL || INFORMED(0) && INFORMED(NP-1))
#else
#define MAYPASS true
#endif
active proctype Clock() {
	do
	:: atomic { now < LAST && MAYPASS -> now++ }
	od
}
#endif

#ifdef GAP
/* Repair of the first number, whose mark is far in the future: the gap is given
 * back, and what windows have covered above it is spoiled. Their owners may live
 * or not. */
active proctype Repairer() {
	byte k, n;
	do
	:: atomic { n < REPAIRS ->
		if
		:: r[0].gb > 0 ->
			n++;
			r[0].sc = MAX(r[0].until, r[0].sc);
#ifdef M_REPAIRSPOIL    /* what was spoiled before is forgotten */
			r[0].sc = r[0].until;
#endif
			r[0].sb = r[0].gb;
			if :: r[0].sb >= r[0].sc -> r[0].sb = 0; r[0].sc = 0 :: else fi;
#if LOST == REPAIR
			FORGET(0);
#endif
			r[0].until = r[0].ga; r[0].ga = 0; r[0].gb = 0;
			r[0].state = FREE;
#ifdef DESTROY
			r[0].owner = 0;
#endif
			wrote(0)
		fi }
	od
}
#endif

#ifdef CLONE
/* Process 0 is copied into the place of the last process, with all it
 * remembers, at a moment when it waits for no write. */
active proctype Copier() {
	atomic { m[0].own && rq[0].st == NONE && zb[0].st == NONE && !m[NP-1].own && rq[NP-1].st == NONE && zb[NP-1].st == NONE && m[NP-1].used == 0 ->
		cloned = 1;
		c_id = m[0].id; c_lo = m[0].next; c_until = m[0].until;
#ifndef M_UNTAKEN       /* what was taken and not handed out is not counted */
		if :: m[0].p == TAKEN -> c_lo = MIN(c_lo, m[0].ps) :: else fi;
#endif
		m[NP-1].own = 1; m[NP-1].sealed = m[0].sealed; m[NP-1].lost = m[0].lost; m[NP-1].id = m[0].id; m[NP-1].same = m[0].same;
		m[NP-1].next = m[0].next; m[NP-1].until = m[0].until; m[NP-1].used = m[0].used;
#ifdef NOTICE
		m[NP-1].frozen = m[0].frozen; m[NP-1].over = m[0].over; m[NP-1].copy = 1;
#endif
		m[NP-1].p = m[0].p; m[NP-1].pn = m[0].pn; m[NP-1].ps = m[0].ps }
}
#endif
