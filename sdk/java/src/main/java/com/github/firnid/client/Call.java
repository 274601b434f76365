package com.github.firnid.client;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/**
 * One request for IDs, sent to one server after the other until one answers. If an answer takes long, the
 * request is sent to another server too. The first answer is used; the IDs of the others are lost.
 */
final class Call<T> {
    final boolean isFetch; // for calls of next

    private final Remote remote;
    private final long start;
    private final long deadline;
    private final CompletableFuture<T> result = new CompletableFuture<>();

    // The fields below are guarded by this.
    private final Roster.Tried tried;
    private final FirnException[] errors; // by server
    private final List<Future<?>> timers = new ArrayList<>(); // they end with the call
    private final CompletableFuture<?>[] requests; // by server; these too
    private final Future<?>[] hedges; // timers of requests, by server
    private Transport.Format<T> format;
    private int count;
    private int timeouts;
    private boolean inside; // the gate
    private boolean waiting; // for a server's pause to end
    private FirnException refusal; // for a reason of the request
    private boolean ended;
    private boolean published;
    private T ids;
    private FirnException failure;

    Call(Remote remote, int count, Transport.Format<T> format, boolean isFetch) {
        this.remote = remote;
        this.isFetch = isFetch;
        this.format = format;
        this.count = count;
        int n = remote.core.options.servers.size();
        tried = new Roster.Tried(n);
        errors = new FirnException[n];
        requests = new CompletableFuture<?>[n];
        hedges = new Future<?>[n];
        start = remote.core.clock.nanos();
        deadline = start + remote.core.options.patience.toNanos();
    }

    CompletableFuture<T> start() {
        synchronized (this) {
            timers.add(remote.core.after(deadline - start, this::expire));
        }
        remote.core.gate.enter(this);
        return result;
    }

    /**
     * Gives up. One request to each silent server continues until its timeout, because the next call's message
     * should say why.
     */
    private void expire() {
        synchronized (this) {
            for (int i = 0; i < errors.length && !ended; i++) {
                int server = i;
                if (requests[i] != null && remote.view.keep(i)) {
                    requests[i].whenComplete((ids, e) -> remote.view.unkeep(server));
                    requests[i] = null;
                }
            }
            if (!ended) {
                end(null, giveUp());
            }
        }
        publish();
    }

    /** Is called by the gate. Returns whether the call needs its place. */
    synchronized boolean admit() {
        inside = !ended;
        return inside;
    }

    /** Ends the call. */
    void cancel(FirnException e) {
        synchronized (this) {
            if (!ended) {
                end(null, e);
            }
        }
        publish();
    }

    /** Sends the request to another server, or waits for one, or gives up. */
    void advance() {
        int i;
        synchronized (this) {
            i = ended ? -1 : step();
            if (i >= 0) {
                tried.pending[i] = true;
            }
        }
        if (i >= 0) {
            send(i);
        }
        publish();
    }

    /** Returns the server to ask, or -1. The caller holds the lock. */
    private int step() {
        Roster.Pick pick = remote.view.pick(tried);
        pick.probes().forEach(remote::probe);
        if (refusal != null && !pick.good()) {
            // All servers that work have refused the request, unless one is about to answer.
            if (!remote.view.anyGood(tried.pending)) {
                end(null, refusal);
            }
            return -1;
        }
        if (pick.server() >= 0) {
            return pick.server();
        }
        if (pick.pause() > 0 && remote.core.clock.nanos() + pick.pause() < deadline) {
            if (!waiting) {
                waiting = true;
                timers.add(remote.core.after(pick.pause(), () -> {
                    boolean here;
                    synchronized (this) {
                        waiting = false;
                        here = inside;
                    }
                    if (here) {
                        advance();
                    } else {
                        remote.core.gate.enter(this);
                    }
                }));
            }
        } else if (!waiting && !isPending()) {
            end(null, giveUp());
        }
        return -1;
    }

    private boolean isPending() {
        for (boolean p : tried.pending) {
            if (p) {
                return true;
            }
        }
        return false;
    }

    private void send(int i) {
        long sent = remote.core.clock.nanos();
        int n;
        Transport.Format<T> f;
        synchronized (this) {
            f = format;
            n = count = Math.min(count, remote.most);
        }
        hedge(i, sent);
        CompletableFuture<T> request = remote.request(i, n, f);
        boolean late;
        synchronized (this) {
            requests[i] = request;
            late = published; // meanwhile
        }
        if (late) {
            request.cancel(false);
        }
        request.whenComplete((answer, e) -> {
            boolean more;
            synchronized (this) {
                requests[i] = null;
                cancel(hedges[i]);
                tried.pending[i] = false;
                more = settle(i, sent, n, f, answer, e) && !ended;
            }
            if (more) {
                advance();
            }
            publish();
        });
    }

    /**
     * Asks another server if this one becomes silent. One that answers other calls is only busy. Half of the
     * call's time is left for another server.
     */
    private void hedge(int i, long sent) {
        synchronized (this) {
            if (!tried.pending[i] || published) {
                return;
            }
            long due = Math.min(remote.view.lateAt(i, sent), sent + (deadline - sent) / 2);
            long left = due - remote.core.clock.nanos();
            if (left > 0) {
                hedges[i] = remote.core.after(left, () -> hedge(i, sent));
                return;
            }
        }
        remote.view.late(i, sent, true, remote.noAnswer(i, sent));
        advance();
    }

    /** Records the result of a request, and returns whether to ask another server. */
    private boolean settle(int i, long sent, int n, Transport.Format<T> asked, T answer, Throwable error) {
        if (error == null) {
            remote.worked(i, sent, false);
            for (int j = 0; j < errors.length && !ended; j++) {
                if (isOfRequest(errors[j])) {
                    remote.failed(j, start, errors[j]); // the fault is the server's after all
                }
            }
            if (!ended) {
                end(answer, null);
            }
            return false;
        }
        if (error instanceof CancellationException) { // by the end of the call
            return false;
        }
        FirnException e = errors[i] = Core.asFirn(error);
        if (e instanceof Transport.TokenException) {
            if (!ended) {
                end(null, e);
            }
            return false;
        }
        if (e instanceof ServerException s && s.kind().equals("batch-too-large") && n > 1) {
            remote.most = Math.min(remote.most, n / 2);
        } else if (e instanceof ServerException s && s.kind().equals("no-runs") && asked.fallback() != null) {
            remote.noRuns();
            format = asked.fallback();
        } else {
            tried.once[i] = true;
            if (isOfRequest(e)) {
                refusal = e;
                tried.refused[i] = true;
                return true;
            }
            if (e.isSilence() && ++timeouts >= errors.length) {
                count = Math.max(1, count / 2); // perhaps it is too much for all of them
            }
            tried.refused[i] = remote.failed(i, sent, e);
        }
        return true;
    }

    private static boolean isOfRequest(FirnException e) {
        return e instanceof ServerException s && s.isOfRequest();
    }

    private void end(T answer, FirnException e) {
        ended = true;
        ids = answer;
        failure = e;
    }

    private static void cancel(Future<?> f) {
        if (f != null) {
            f.cancel(false);
        }
    }

    /** Completes the result, without the lock, because others act on it. Leaves the gate if no request is needed. */
    private void publish() {
        List<Future<?>> rest = new ArrayList<>();
        boolean leave;
        boolean first;
        synchronized (this) {
            leave = inside && (ended || waiting && !isPending());
            inside &= !leave;
            first = ended && !published;
            if (first) {
                published = true;
                rest.addAll(timers);
                rest.addAll(Arrays.asList(hedges));
                rest.addAll(Arrays.asList(requests));
            }
        }
        rest.forEach(Call::cancel);
        if (leave) {
            remote.core.gate.leave(this);
        }
        if (first && failure == null) {
            result.complete(ids);
        } else if (first) {
            result.completeExceptionally(failure);
        }
    }

    /** Returns the exception of a call that no server answered. */
    private FirnException giveUp() {
        boolean same = true; // all have refused for the same reason, such as the token
        String kind = null;
        for (int i = 0; i < errors.length; i++) {
            if (tried.pending[i] && errors[i] == null) {
                FirnException known = remote.view.error(i);
                errors[i] = known == null || known.isSilence() ? remote.noAnswer(i, start) : known;
            }
            if (errors[i] instanceof ServerException s && tried.refused[i] && (kind == null || kind.equals(s.kind()))) {
                kind = s.kind();
            } else {
                same = false;
            }
        }
        return same ? errors[0] : remote.giveUp(errors, null);
    }

    static long millis(long nanos) {
        return TimeUnit.NANOSECONDS.toMillis(nanos);
    }
}
