package com.github.firnid.client;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Supplier;
import java.util.concurrent.TimeUnit;

/** The servers of a client, and what is known about each of them. */
final class Roster {
    /** How long a server is left out. The time doubles with each failure. */
    private static final long SHORTEST_PAUSE = TimeUnit.MILLISECONDS.toNanos(250);

    private static final long LONGEST_PAUSE = TimeUnit.SECONDS.toNanos(10);

    /** The longest Retry-After that is honoured. */
    private static final long LONGEST_WISH = TimeUnit.MINUTES.toNanos(5);

    /** How long a request may take before another server is asked beside it, or twice as long as usual. */
    private static final long SLOW = TimeUnit.MILLISECONDS.toNanos(200);

    /**
     * The state of a server, as a whole or for one sequencer. A server whose last request failed, or takes
     * long, is a suspect: as long as another one works, calls do not wait for it, and only probes are sent
     * to it.
     */
    private final class Health {
        int failures; // since it last worked
        long failed; // time of the last failure
        long until; // it is not used before
        long probe; // no probe is sent before
        boolean kept; // a request has outlived its call
        long answered; // time of the last answer
        boolean asked; // the server asked for the pause, so it is not a last resort either
        FirnException error; // why it is a suspect; null if it is not

        /** Records the failure of a request. Concurrent requests fail together and count once. */
        void fail(long start, long wish, FirnException e) {
            long now = clock.nanos();
            if (failures == 0 || start >= failed) {
                failures++;
                failed = now;
                asked = false;
                until = now + pause(failures);
            }
            if (wish > 0) {
                asked = true;
                until = now + atMost(wish + random(wish / 10)); // never less than the server asked for
            }
            suspect(start, e);
        }

        /** Makes the server a suspect. The next probe waits at least as long as the request took. */
        void suspect(long start, FirnException e) {
            long now = clock.nanos();
            if (error == null || !e.isSilence()) { // silence says less than a known reason
                error = e;
            }
            probe = now + Math.max(Math.max(until - now, now - start), pause(1));
        }

        void clear() {
            failures = 0;
            until = probe = 0;
            asked = false;
            error = null;
        }
    }

    private final Clock clock;
    private final long timeout;
    private final List<String> servers;
    private final List<Health> whole = new ArrayList<>(); // guarded by this

    Roster(Options options, Clock clock) {
        this.clock = clock;
        this.timeout = options.timeout.toNanos();
        this.servers = options.servers;
        servers.forEach(s -> whole.add(new Health()));
    }

    private static long random(long below) {
        return ThreadLocalRandom.current().nextLong(below + 1);
    }

    private static long atMost(long wish) {
        return Math.min(wish, LONGEST_WISH);
    }

    /** Random, so that clients that have seen the same failure do not return at once. */
    private static long pause(int failures) {
        long d = failures > 10 ? LONGEST_PAUSE : Math.min(SHORTEST_PAUSE << (failures - 1), LONGEST_PAUSE);
        return d / 2 + random(d / 2);
    }

    synchronized List<ServerStatus> status() {
        List<ServerStatus> all = new ArrayList<>();
        for (int i = 0; i < servers.size(); i++) {
            Health h = whole.get(i);
            all.add(new ServerStatus(servers.get(i), h.failures, h.error));
        }
        return all;
    }

    /**
     * The choice of a server: its index, or -1; whether it is no suspect; suspects to probe beside it; the
     * time until a server is available, or 0 if none will be.
     */
    record Pick(int server, boolean good, List<Integer> probes, long pause) {}

    /** What a call has tried. */
    static final class Tried {
        final boolean[] once; // at least
        final boolean[] refused; // not to be tried again
        final boolean[] pending; // a request is in progress

        Tried(int servers) {
            once = new boolean[servers];
            refused = new boolean[servers];
            pending = new boolean[servers];
        }
    }

    /** The servers as one sequencer sees them. */
    final class View {
        private final List<Health> own = new ArrayList<>();
        private long usual; // how long an answer takes, a moving average

        View() {
            servers.forEach(s -> own.add(new Health()));
        }

        /**
         * Chooses a random server among those that are no suspects. If all are, it chooses a random one that
         * is not left out, or else the last resort: the one that returns first, among those that the call
         * has not tried and that have not asked for the pause themselves.
         */
        Pick pick(Tried tried) {
            synchronized (Roster.this) {
                long now = clock.nanos();
                List<Integer> good = new ArrayList<>();
                List<Integer> fit = new ArrayList<>();
                List<Integer> probes = new ArrayList<>();
                int resort = -1;
                long resortAt = 0;
                long soonest = Long.MAX_VALUE;
                for (int i = 0; i < servers.size(); i++) {
                    if (tried.refused[i] || tried.pending[i]) {
                        continue;
                    }
                    Health w = whole.get(i);
                    Health o = own.get(i);
                    if (w.error == null && o.error == null) {
                        good.add(i);
                        continue;
                    }
                    if (now > w.probe && now > o.probe) {
                        probes.add(i);
                    }
                    long until = Math.max(w.until, o.until);
                    if (until <= now) {
                        fit.add(i);
                        continue;
                    }
                    boolean asked = w.asked && w.until > now || o.asked && o.until > now;
                    if (!tried.once[i] && !asked && (resort < 0 || until < resortAt)) {
                        resort = i;
                        resortAt = until;
                    }
                    soonest = Math.min(soonest, until);
                }
                if (!good.isEmpty()) {
                    for (int i : probes) { // no other one before this one has ended
                        whole.get(i).probe = own.get(i).probe = now + timeout;
                    }
                    return new Pick(any(good), true, probes, 0);
                }
                if (!fit.isEmpty()) {
                    return new Pick(any(fit), false, List.of(), 0);
                }
                long pause = resort >= 0 || soonest == Long.MAX_VALUE ? 0 : soonest - now;
                return new Pick(resort, false, List.of(), pause);
            }
        }

        private static int any(List<Integer> some) {
            return some.get(ThreadLocalRandom.current().nextInt(some.size()));
        }

        /** Whether any of these servers is no suspect. */
        boolean anyGood(boolean[] some) {
            synchronized (Roster.this) {
                for (int i = 0; i < some.length; i++) {
                    if (some[i] && whole.get(i).error == null && own.get(i).error == null) {
                        return true;
                    }
                }
                return false;
            }
        }

        /** When another server is asked: if a request takes long, and meanwhile this one has answered no other. */
        long lateAt(int i, long start) {
            synchronized (Roster.this) {
                return Math.max(start, own.get(i).answered) + Math.max(SLOW, 2 * usual);
            }
        }

        /** Whether a request to a server may outlive its call. One may. */
        boolean keep(int i) {
            synchronized (Roster.this) {
                boolean may = !whole.get(i).kept;
                whole.get(i).kept = true;
                return may;
            }
        }

        void unkeep(int i) {
            synchronized (Roster.this) {
                whole.get(i).kept = false;
            }
        }

        /**
         * Records an answer, and returns whether the server had failed before. If the server was silent for
         * long, it stays a suspect, and what is usual changes little: it was probably stopped. A request that
         * was sent before a failure does not show that the server works again.
         */
        boolean worked(int i, long start, boolean probe, Supplier<FirnException> slow) {
            synchronized (Roster.this) {
                long now = clock.nanos();
                Health w = whole.get(i);
                Health o = own.get(i);
                long usually = Math.max(SLOW, 2 * usual);
                boolean late = now >= lateAt(i, start);
                o.answered = now;
                if (!probe) {
                    usual += (Math.min(now - start, 2 * usually) - usual) / 8;
                }
                boolean had = w.failures > 0 || o.failures > 0;
                if (had && start < Math.max(w.failed, o.failed)) {
                    return false;
                }
                w.clear();
                o.clear();
                if (late) {
                    w.suspect(start, slow.get());
                    o.suspect(start, w.error);
                }
                return had;
            }
        }

        /** Records a failure of the whole server or for this sequencer, and returns whether it is the first. */
        boolean failed(int i, long start, boolean all, long wish, FirnException e) {
            synchronized (Roster.this) {
                Health h = all ? whole.get(i) : own.get(i);
                boolean first = h.failures == 0;
                h.fail(start, wish, e);
                if (all && own.get(i).error != null) {
                    own.get(i).suspect(start, e);
                }
                return first;
            }
        }

        /**
         * Makes a server a suspect if it has not answered for long. While the request is pending, no probe is
         * sent.
         */
        void late(int i, long start, boolean pending, FirnException e) {
            synchronized (Roster.this) {
                if (clock.nanos() >= lateAt(i, start)) {
                    whole.get(i).suspect(start, e);
                    own.get(i).suspect(start, e);
                    if (pending) {
                        own.get(i).probe = Math.max(own.get(i).probe, start + timeout);
                    }
                }
            }
        }

        /** Returns why a server is a suspect, or null. */
        FirnException error(int i) {
            synchronized (Roster.this) {
                Health w = whole.get(i);
                Health o = own.get(i);
                return w.error == null || o.error != null && o.failed > w.failed ? o.error : w.error;
            }
        }
    }
}
