package com.github.firnid.client;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/** The servers of a client, and what is known about each of them. The lock of the Core guards it. */
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
                long least = Math.min(wish, LONGEST_WISH); // never less than the server asked for
                until = now + least + random(least / 10);
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
    private final List<Health> whole;

    /** By server, whether a request has outlived its call. */
    final boolean[] kept;

    Roster(Options options, Clock clock) {
        this.clock = clock;
        this.timeout = options.timeout.toNanos();
        this.servers = options.servers;
        this.whole = healths();
        this.kept = new boolean[servers.size()];
    }

    private List<Health> healths() {
        return servers.stream().map(s -> new Health()).toList();
    }

    private static long random(long below) {
        return ThreadLocalRandom.current().nextLong(below + 1);
    }

    /** Random, so that clients that have seen the same failure do not return at once. */
    private static long pause(int failures) {
        long d = failures > 10 ? LONGEST_PAUSE : Math.min(SHORTEST_PAUSE << (failures - 1), LONGEST_PAUSE);
        return d / 2 + random(d / 2);
    }

    List<ServerStatus> status() {
        List<ServerStatus> all = new ArrayList<>();
        for (int i = 0; i < servers.size(); i++) {
            Health h = whole.get(i);
            all.add(new ServerStatus(servers.get(i), h.failures, h.error));
        }
        return all;
    }

    /**
     * The choice of a server: its index, or -1; suspects to probe beside it; the time until a server is
     * available, or 0 if none will be.
     */
    record Pick(int server, List<Integer> probes, long pause) {}

    /** The servers as one sequencer sees them. */
    final class View {
        private final List<Health> own = healths();
        private long usual; // how long an answer takes, a moving average
        private long limited; // until when no server is asked, after one has answered with status 429

        /**
         * Chooses a random server among those that are no suspects. If all are, it chooses a random one that
         * is not left out, or else the last resort: the one that returns first, among those that the call
         * has not tried and that have not asked for the pause themselves.
         */
        Pick pick(Call<?> call) {
            long now = clock.nanos();
            if (limited > now) {
                return new Pick(-1, List.of(), limited - now);
            }
            List<Integer> good = new ArrayList<>();
            List<Integer> fit = new ArrayList<>();
            List<Integer> probes = new ArrayList<>();
            int resort = -1;
            long resortAt = Long.MAX_VALUE;
            long soonest = Long.MAX_VALUE;
            for (int i = 0; i < servers.size(); i++) {
                if (call.refused[i] || call.pending[i] != null) {
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
                if (!call.tried[i] && !asked && until < resortAt) {
                    resort = i;
                    resortAt = until;
                }
                soonest = Math.min(soonest, until);
            }
            if (!good.isEmpty()) {
                for (int i : probes) { // no other one before this one has ended
                    whole.get(i).probe = own.get(i).probe = now + timeout;
                }
                return new Pick(any(good), probes, 0);
            }
            int server = fit.isEmpty() ? resort : any(fit);
            return new Pick(server, List.of(), server >= 0 || soonest == Long.MAX_VALUE ? 0 : soonest - now);
        }

        private static int any(List<Integer> some) {
            return some.get(ThreadLocalRandom.current().nextInt(some.size()));
        }

        /** How long a request may take before another server is asked: one that always takes long is slow. */
        long hedgeAfter() {
            return Math.max(SLOW, 2 * usual);
        }

        /**
         * Records an answer, and returns whether the server had failed before. A request that was sent before
         * a failure does not show that the server works again.
         */
        boolean worked(int i, long start, boolean probe) {
            Health w = whole.get(i);
            Health o = own.get(i);
            if (!probe) {
                usual += (Math.min(clock.nanos() - start, 2 * hedgeAfter()) - usual) / 8;
            }
            boolean had = w.failures > 0 || o.failures > 0;
            if (had && start < Math.max(w.failed, o.failed)) {
                return false;
            }
            w.clear();
            o.clear();
            limited = 0;
            return had;
        }

        /** Records a failure of the whole server or for this sequencer, and returns whether it is the first. */
        boolean failed(int i, long start, boolean all, long wish, FirnException e) {
            Health h = all ? whole.get(i) : own.get(i);
            boolean first = h.failures == 0;
            h.fail(start, wish, e);
            if (e instanceof ServerException s && s.status() == 429) {
                limited = Math.max(limited, h.until);
            }
            if (all && own.get(i).error != null) {
                own.get(i).suspect(start, e);
            }
            return first;
        }

        /** Makes a server a suspect if a request takes long. A call with little time proves nothing. */
        void late(int i, long start, FirnException e) {
            if (clock.nanos() - start >= hedgeAfter()) {
                whole.get(i).suspect(start, e);
                own.get(i).suspect(start, e);
            }
        }

        /** Returns why a server is a suspect, or null. */
        FirnException error(int i) {
            Health w = whole.get(i);
            Health o = own.get(i);
            return w.error == null || o.error != null && o.failed > w.failed ? o.error : w.error;
        }
    }
}
