/* The checked model of Firn's time-fenced grants, for the model checker Spin.
 * README.md says what it covers; scripts/model.sh runs it.
 *
 * A tick here is one slot (a time and a sequence) of one node number.
 *
 * The store has one record for each node number: a mark (until), a state and an
 * owner; and the configuration of the sequencer. Every write of a record or of
 * the configuration puts a fresh random nonce in it, so bytes never come back.
 * Whatever bytes a process remembers are therefore modelled by a single bit,
 * same: the record still is what I remember. It falls when somebody writes, and
 * stays down. This is exact, and it needs no counter of nonces, so the number
 * of writes in one behaviour needs no bound. Only a restore from a backup
 * brings bytes back: then a second bit, bak, says whether the backup has what I
 * remember.
 *
 * What may happen, at any moment and in any order:
 *   - every look at a clock gives any tick, whatever it gave before;
 *   - a compare-and-swap is applied late, or never; its answer is lost; it is
 *     applied after its sender gave up and went on, or died;
 *   - a process stops between any two steps, for any time;
 *   - a number is acquired whose window is over by the acquirer's clock, though
 *     its owner lives and thinks otherwise;
 *   - a process dies and starts again with nothing.
 *
 * What must hold, in every configuration that is no mutant:
 *   UNIQUE  no tick of a node number is handed out twice;
 *   ORDER   the ticks that one process takes grow, over all its terms;
 *   ENDED   (DESTROY) once destroy or detach has returned, no window is renewed
 *           and no number acquired since is used.
 *
 * Configurations (-D…):
 *   NP NI T W    processes, node numbers, ticks, length of a window
 *   MAXCAS=n     at most n writes by processes in one behaviour; none: no bound
 *   LOOK         a slot is looked at and taken in two steps, as by the
 *                compare-and-swap of the generator's word
 *   WAIT         a slot may be taken at or past the limit, and wait for it to grow
 *   ANYTAKE      held numbers whose window is not over are acquired too
 *   DESTROY=n    destroy or detach, and create or attach again, n times
 *   RESTORE      the store goes back to a backup once, and is then fenced
 *   CLONE        a process is copied once with its memory
 *   REVCAS       the store compares a revision in place of the bytes
 * Mutants, each of which must be caught, are named M_… and explained where they
 * are.
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

/* ------------------------------------------------------------------ the store */

#define FREE    0
#define HELD    1
#define CLOSING 2       /* as held, but its owner can extend it no more */

typedef Record {
	unsigned until : 3;
	unsigned state : 2;
#ifdef DESTROY
	unsigned owner : 2;     /* 0: nobody that lives; else the process + 1 */
#endif
#ifdef RESTORE
	bit there;              /* it was ever written */
	bit bak                 /* the backup has the very same bytes */
#endif
#ifdef REVCAS
	byte rev
#endif
};
Record r[NI];

#ifdef DESTROY
#define ATTACHED 0
#define ENDING   1
#define ENDED    2
unsigned cfg : 2;       /* state of the sequencer */
unsigned ends : 2;      /* destroys or detaches so far */
bit looked;             /* the operator found no window that can still grow */
#define USABLE (cfg == ATTACHED)
#else
#define USABLE true
#endif
#ifdef RESTORE
Record b[NI];           /* the backup */
unsigned stage : 2;     /* 0, 1 backup taken, 2 gone back to it, 3 fenced */
unsigned floor : 3;     /* no grant begins before it */
unsigned top : 3;       /* the highest mark ever granted; no process sees it */
#define FLOOR floor
#else
#define FLOOR 0
#endif
#ifdef REVCAS
byte rev, b_rev;        /* the store's revision */
#endif

/* -------------------------------------------------------------- the processes */

#define NONE 0
#define SENT 1
#define DONE 2          /* applied */
#define FAIL 3          /* refused */

#define ACQUIRE 1
#define RENEW   2
#define RELEASE 3
#define DROP    4       /* give back a claim of which nothing was used */

/* A compare-and-swap on its way. */
typedef Write {
	unsigned st : 2;
	unsigned kind : 3;
	unsigned id : 1;
	bit same;               /* SENT: the record is what was read; DONE: it is what this wrote */
	unsigned from : 3;      /* of an acquire */
	unsigned until : 3;
	bit cfg;                /* of an acquire: the configuration is what was read */
	bit mine;               /* its sender lives, and has the grant still that it was for */
#ifdef DESTROY
	bit dead;               /* its sender died */
	bit late;               /* it was applied after destroy had returned */
#endif
#ifdef RESTORE
	bit bak;
#endif
#ifdef REVCAS
	byte rev
#endif
};
Write rq[NP];           /* the one that is waited for */
Write zb[NP];           /* one that was given up, and lives on in the network */

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
	unsigned p : 2;         /* the slot under way */
	unsigned pn : 1;
	unsigned ps : 3;
#ifdef RESTORE
	bit bak;
#endif
#ifdef REVCAS
	byte rev
#endif
};
Memory m[NP];

#ifdef MAXCAS
byte sent;
#define MAYSEND (sent < MAXCAS)
#define COUNT   sent++
#else
#define MAYSEND true
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
#define ALLOWED(i, t) false
#endif

/* ------------------------------------------------------------------- steps */

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

inline clear(q) {
	q.st = NONE; q.kind = 0; q.id = 0; q.same = 0; q.from = 0; q.until = 0; q.cfg = 0; q.mine = 0;
#ifdef DESTROY
	q.dead = 0; q.late = 0;
#endif
#ifdef RESTORE
	q.bak = 0;
#endif
#ifdef REVCAS
	q.rev = 0;
#endif
}

/* A write that is given up, and that the store can only refuse, changes nothing
 * any more and is left out. */
#if defined(M_BLIND) || defined(M_FOREIGN) || defined(REVCAS)
#define HOPELESS(q) false
#elif defined(RESTORE)
#define HOPELESS(q) (!q.same && !q.bak)
#else
#define HOPELESS(q) (!q.same)
#endif

/* Record rec has new bytes: nobody remembers them. */
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
#ifdef RESTORE
	r[rec].bak = 0; r[rec].there = 1;
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
	k = 0
}

/* The sender gives up waiting: its write lives on in the network. */
inline give_up() {
	zb[me].st = rq[me].st; zb[me].kind = rq[me].kind; zb[me].id = rq[me].id; zb[me].same = rq[me].same;
	zb[me].from = rq[me].from; zb[me].until = rq[me].until; zb[me].cfg = rq[me].cfg; zb[me].mine = rq[me].mine;
#ifdef DESTROY
	zb[me].dead = rq[me].dead; zb[me].late = rq[me].late;
#endif
#ifdef RESTORE
	zb[me].bak = rq[me].bak;
#endif
#ifdef REVCAS
	zb[me].rev = rq[me].rev;
#endif
	clear(rq[me]);
	if :: HOPELESS(zb[me]) -> clear(zb[me]) :: else fi
}

#ifdef REVCAS
#define EQUAL(q) (q.rev == r[q.id].rev)
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

/* The store judges a write: all or nothing, one after the other. */
inline apply(q) {
	if
	:: EQUAL(q) || ANYHOW(q) ->
#ifdef DESTROY
		assert(!(cfg == ENDED && q.kind == RENEW));     /* ENDED, for renewals */
		q.late = (cfg == ENDED);
		r[q.id].owner = (q.dead -> 0 : me + 1);
#endif
		r[q.id].until = q.until;
		r[q.id].state = (q.kind == ACQUIRE || q.kind == RENEW -> HELD : FREE);
		q.st = NONE;
		wrote(q.id);
		q.st = DONE; q.same = 1;
#ifdef RESTORE
		q.bak = 0;
		top = MAX(top, q.until);
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
 * taken from, so a slot that was only looked at is not had. */
inline seal() {
	m[me].sealed = 1;
#ifdef M_SEAL   /* a flag says sealed, and the word lives on */
	if :: m[me].p == WAITING -> unpend() :: else fi
#else
	if :: m[me].p == LOOKED || m[me].p == WAITING -> unpend() :: else fi
#endif
}

/* Whatever the write was for that was given up, its sender does not wonder. */
inline disown() {
	if
	:: zb[me].st == DONE -> clear(zb[me])
	:: else -> zb[me].mine = 0; zb[me].cfg = 0; zb[me].from = 0
	fi
}

/* The term is no more. What was taken from it stays good. */
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
#ifdef RESTORE
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
#ifdef RESTORE
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
#ifdef M_STALE  /* a number that is acquired again goes on in its old memory */
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

/* A claim was applied. The configuration is read once more, and only if it is
 * what it was when the number was picked the claim is used. Otherwise it is
 * given back: nothing of it was used, so the mark is where it began. */
inline claimed(q, isrq) {
	if
#ifdef M_NOREREAD
	:: true ->
#else
	:: q.cfg ->
#endif
		begin(q); clear(q)
#ifndef M_NOREREAD
	:: else ->
		if
		:: isrq ->
			q.kind = DROP; q.until = q.from; q.from = 0; q.st = SENT; q.mine = 0
		:: else -> clear(q)
		fi
#endif
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
/* M_UNTIL: the exclusive end of a window is used. */
#ifdef M_UNTIL
#define WITHIN(x) ((x) <= m[me].until)
#else
#define WITHIN(x) ((x) < m[me].until)
#endif

#ifdef M_FOREIGN
#define OURS true
#else
#define OURS (!m[me].lost)
#endif

/* The slot u is taken. */
inline take() {
	assert(u >= m[me].used);                                /* ORDER */
	m[me].next = u + 1; m[me].used = u + 1;
	m[me].ps = u; m[me].pn = m[me].id
}

active [NP] proctype Process() {
	byte me = _pid;
	byte c, u, k;
	do
	/* Acquire. The number and the configuration are read here; the write may be
	 * applied much later, so what was read may be old. */
	:: atomic { (!m[me].own || m[me].lost && !m[me].sealed) && rq[me].st == NONE && USABLE && TURN && MAYSEND ->
		u = 0;
#if NI > 1
		if :: u = 0 :: second -> u = 1 fi;
		second = 1;
#endif
		any_tick(c);
		if
		:: CANDIDATE && FROM < T ->
			COUNT;
			if :: me == begun && begun < NP -> begun++ :: else fi;
			rq[me].st = SENT; rq[me].kind = ACQUIRE; rq[me].id = u; rq[me].same = 1; rq[me].cfg = 1; rq[me].mine = 1;
#ifdef RESTORE
			rq[me].bak = r[u].bak;
#endif
#ifdef REVCAS
			rq[me].rev = r[u].rev;
#endif
#ifdef M_TAKEOVER
			rq[me].from = (r[u].state != FREE && r[u].until >= c -> c : FROM);
#else
			rq[me].from = FROM;
#endif
			rq[me].until = MIN(T, MAX(r[u].until, MAX(rq[me].from, MAX(c, m[me].used)) + W))
		:: else
		fi;
		c = 0; u = 0 }

	/* Renew, before the window is over or long after. */
	:: atomic { m[me].own && !m[me].sealed && !m[me].lost && rq[me].st == NONE && m[me].until < T && MAYSEND ->
		any_tick(c);
		u = MIN(T, MAX(m[me].until, MAX(c, m[me].used) + W));
		if
		:: u > m[me].until ->
			COUNT;
			rq[me].st = SENT; rq[me].kind = RENEW; rq[me].id = m[me].id; rq[me].same = m[me].same; rq[me].until = u; rq[me].mine = 1;
#ifdef RESTORE
			rq[me].bak = m[me].bak;
#endif
#ifdef REVCAS
			rq[me].rev = m[me].rev;
#endif
		:: else
		fi;
		c = 0; u = 0 }

	/* Give back: seal, then lower the mark to the end of what was used; as often
	 * as it takes, or not at all. */
	:: atomic { m[me].own && !m[me].sealed && rq[me].st == NONE ->
		seal() }
	:: atomic { m[me].own && m[me].sealed && rq[me].st == NONE && MAYSEND && OURS ->
		COUNT;
		rq[me].st = SENT; rq[me].kind = RELEASE; rq[me].id = m[me].id; rq[me].same = m[me].same; rq[me].mine = 1;
		rq[me].until = MIN(MAX(m[me].next, m[me].used), m[me].until);
#ifdef RESTORE
		rq[me].bak = m[me].bak;
#endif
#ifdef REVCAS
		rq[me].rev = m[me].rev;
#endif
		}
	:: atomic { m[me].own && m[me].sealed && rq[me].st == NONE -> forget() }

	/* The answer has come. */
	:: atomic { rq[me].st == DONE ->
		if
		:: rq[me].kind == ACQUIRE -> claimed(rq[me], true)
		:: rq[me].kind == RENEW -> extend(rq[me]); clear(rq[me])
		:: rq[me].kind == RELEASE -> forget(); clear(rq[me])
		:: else -> clear(rq[me])
		fi }
	:: atomic { rq[me].st == FAIL ->
		if
		:: rq[me].kind == RENEW || rq[me].kind == RELEASE ->
			/* Read the record back. */
			if
			:: zb[me].st == DONE && zb[me].kind == RENEW && zb[me].mine && zb[me].same ->
				extend(zb[me]); clear(zb[me])   /* an earlier attempt of this grant */
#ifdef DESTROY
			:: r[m[me].id].state == CLOSING && r[m[me].id].owner == me + 1 && !m[me].lost ->
				m[me].same = 1;                 /* the operator's mark: lower it */
				if :: !m[me].sealed -> seal() :: else fi
#endif
			:: else -> m[me].lost = 1
			fi
		:: else
		fi;
		clear(rq[me]) }

	/* No answer has come. */
	:: atomic { (rq[me].st == SENT || rq[me].st == DONE) && zb[me].st == NONE ->
#ifdef M_AMBIG  /* that is taken for success */
		if
		:: rq[me].kind == ACQUIRE -> k = rq[me].st; begin(rq[me]); rq[me].st = k; rq[me].mine = 0; k = 0
		:: rq[me].kind == RENEW -> m[me].until = MAX(m[me].until, rq[me].until)
		:: else
		fi;
#endif
		give_up() }
	/* Read back, it turns out to have been applied. */
	:: atomic { zb[me].st == DONE && zb[me].mine && zb[me].same && rq[me].st == NONE && (zb[me].kind == RENEW || zb[me].kind == ACQUIRE) ->
		if
		:: zb[me].kind == RENEW -> extend(zb[me]); clear(zb[me])
		:: else -> claimed(zb[me], false)
		fi }

	/* The store. */
	:: atomic { rq[me].st == SENT -> apply(rq[me]) }
	:: atomic { zb[me].st == SENT -> apply(zb[me]); if :: zb[me].st == FAIL || !zb[me].mine -> clear(zb[me]) :: else fi }
	:: atomic { zb[me].st != NONE -> clear(zb[me]) }       /* lost */

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
		:: WITHIN(u) && u < T -> take(); m[me].p = TAKEN
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

	/* Die. Who starts again in this place is another. */
	:: atomic { m[me].own || rq[me].st != NONE || m[me].used > 0 ->
		if
		:: rq[me].st == SENT && zb[me].st == NONE -> give_up()
		:: else -> clear(rq[me])
		fi;
#ifdef DESTROY
		if :: zb[me].st != NONE -> zb[me].dead = 1 :: else fi;
		k = 0;
		do
		:: k < NI -> if :: r[k].owner == me + 1 -> r[k].owner = 0 :: else fi; k++
		:: else -> break
		od;
		k = 0;
#endif
		unpend(); forget(); m[me].used = 0; m[me].next = 0; m[me].id = 0 }
	od
}

#ifdef DESTROY
#ifdef M_LAPSED /* a held record whose window is over by the operator's clock is not marked */
#define CANNOTGROW(n) (r[n].state != HELD || r[n].until < T - 1)
#else
#define CANNOTGROW(n) (r[n].state != HELD)
#endif

/* Destroy and detach, which differ in what may follow only. */
active proctype Operator() {
	byte k, i;
	do
	:: atomic { cfg == ATTACHED && ends < DESTROY ->
		ends++; cfg = ENDING; configured() }
	/* Every held record is marked, by a write like any other, which may come
	 * late too. Who owns it stays. */
	:: atomic { ends > 0 ->
		i = 0;
#if NI > 1
		if :: i = 0 :: i = 1 fi;
#endif
		if
		:: r[i].state == HELD ->
			r[i].state = CLOSING;
#ifndef M_MARKONLY      /* the mark is set without a fresh nonce */
			wrote(i)
#endif
		:: else
		fi;
		i = 0 }
	/* No held record is left without the mark. Whether the windows are over is
	 * the operator's clock to say, so it may say yes at any time. */
	:: atomic { cfg == ENDING && !looked && CANNOTGROW(0) && CANNOTGROW(NI-1) -> looked = 1 }
	:: atomic { cfg == ENDING && looked -> cfg = ENDED; looked = 0; configured() }
	/* Create or attach again; the records stay. */
	:: atomic { cfg != ATTACHED -> cfg = ATTACHED; looked = 0; configured() }
	od
}
#endif

#ifdef RESTORE
/* The fence: the floor first, in the configuration, which gets new bytes. Then
 * every record there is, so that whoever remembers it remembers nothing. */
inline fence() {
	floor = top;
	configured();
	i = 0;
	do
	:: i < NI ->
#ifndef M_FLOORONLY     /* the floor is raised, and no record rewritten */
		if
		:: r[i].there -> r[i].until = MAX(r[i].until, floor); r[i].state = FREE; wrote(i)
		:: else
		fi;
#endif
		i++
	:: else -> break
	od;
	i = 0
}

active proctype Operator() {
	byte k, i;
	do
	:: atomic { stage == 0 ->
		stage = 1;
		do
		:: i < NI -> r[i].bak = 1; b[i].until = r[i].until; b[i].state = r[i].state; b[i].there = r[i].there;
#ifdef REVCAS
			b[i].rev = r[i].rev;
#endif
			i++
		:: else -> break
		od;
		i = 0;
		do
		:: k < NP -> m[k].bak = m[k].same; rq[k].bak = rq[k].same; zb[k].bak = zb[k].same; k++
		:: else -> break
		od;
		k = 0;
#ifdef REVCAS
		b_rev = rev
#endif
		}
	:: atomic { stage == 1 ->
		stage = 2;
		do
		:: i < NI -> r[i].until = b[i].until; r[i].state = b[i].state; r[i].there = b[i].there; r[i].bak = 0;
			b[i].until = 0; b[i].state = 0; b[i].there = 0;
#ifdef REVCAS
			r[i].rev = b[i].rev; b[i].rev = 0;
#endif
			i++
		:: else -> break
		od;
		i = 0;
		do
		:: k < NP ->
			m[k].same = m[k].bak; rq[k].same = rq[k].bak; zb[k].same = zb[k].bak;
			m[k].bak = 0; rq[k].bak = 0; zb[k].bak = 0; k++
		:: else -> break
		od;
		k = 0;
#ifdef REVCAS
		rev = b_rev; b_rev = 0;
#endif
#if !defined(M_NOFENCE) && !defined(M_OPEN)
		fence(); stage = 3
#endif
		}
#ifdef M_OPEN           /* processes use the store before it is fenced */
	:: atomic { stage == 2 -> fence(); stage = 3 }
#endif
	od
}
#endif

#ifdef CLONE
/* Process 0 is copied into the place of the last process, with all it
 * remembers, at a moment when it waits for no write. */
active proctype Operator() {
	atomic { m[0].own && rq[0].st == NONE && zb[0].st == NONE && !m[NP-1].own && rq[NP-1].st == NONE && zb[NP-1].st == NONE && m[NP-1].used == 0 ->
		cloned = 1;
		c_id = m[0].id; c_lo = m[0].next; c_until = m[0].until;
#ifndef M_UNTAKEN       /* what was taken and not handed out is not counted */
		if :: m[0].p == TAKEN -> c_lo = MIN(c_lo, m[0].ps) :: else fi;
#endif
		m[NP-1].own = 1; m[NP-1].sealed = m[0].sealed; m[NP-1].lost = m[0].lost; m[NP-1].id = m[0].id; m[NP-1].same = m[0].same;
		m[NP-1].next = m[0].next; m[NP-1].until = m[0].until; m[NP-1].used = m[0].used;
		m[NP-1].p = m[0].p; m[NP-1].pn = m[0].pn; m[NP-1].ps = m[0].ps }
}
#endif
