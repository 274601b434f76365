package com.github.firnid.client;

import java.util.Arrays;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.stream.Stream;

/**
 * One request for IDs, sent to one server after the other until one answers. If an answer takes long, the
 * request is sent to another server too. The first answer is used; the IDs of the others are lost. The lock of
 * the Core guards it.
 */
final class Call<T> {
    final boolean isFetch; // for calls of next
    final CompletableFuture<T> result = new CompletableFuture<>();
    boolean inside; // the gate

    // By server:
    final boolean[] tried;
    final boolean[] refused; // not to be tried again
    final CompletableFuture<?>[] pending; // requests
    private final Future<?>[] hedges; // their timers
    private final FirnException[] errors; // the last ones

    private final Remote remote;
    private final Core core;
    private final long start;
    private final long deadline;
    private Future<?> patience;
    private Future<?> pause; // until a server is available
    private Format<T> format;
    private int count;
    private int timeouts;
    private boolean admitted;
    private FirnException refusal; // the first one for a reason of the request

    Call(Remote remote, int count, Format<T> format, boolean isFetch) {
        this.remote = remote;
        this.core = remote.core;
        this.isFetch = isFetch;
        this.format = format;
        this.count = count;
        int n = core.options.servers.size();
        tried = new boolean[n];
        refused = new boolean[n];
        pending = new CompletableFuture<?>[n];
        hedges = new Future<?>[n];
        errors = new FirnException[n];
        start = core.clock.nanos();
        deadline = start + core.options.patience.toNanos();
    }

    void start() {
        patience = core.after(deadline - start, this::expire);
        result.whenComplete((ids, e) -> core.locked(this::end));
        core.gate.enter(this);
    }

    /** Whether a request is no use any more. */
    boolean isOver() {
        return result.isDone() || core.clock.nanos() >= deadline;
    }

    /** Ends everything in progress. */
    private void end() {
        Stream.of(Stream.of(patience, pause), Arrays.stream(hedges), Arrays.stream(pending))
                .flatMap(s -> s)
                .forEach(Call::cancel);
        leave();
    }

    private static void cancel(Future<?> f) {
        if (f != null) {
            f.cancel(false);
        }
    }

    private void leave() {
        if (inside) {
            core.gate.leave(this);
        }
    }

    /**
     * Gives up. One request to each silent server continues until its timeout, because the next call's message
     * should say why.
     */
    private void expire() {
        FirnException e = giveUp();
        boolean[] kept = core.roster.kept;
        for (int i = 0; i < kept.length; i++) {
            int server = i;
            if (pending[i] != null && !kept[i]) {
                kept[i] = true;
                pending[i].whenComplete((ids, x) -> core.locked(() -> kept[server] = false));
                pending[i] = null;
            }
        }
        result.completeExceptionally(e);
    }

    /** Sends the request to another server, or waits for one, or gives up. */
    void step() {
        if (result.isDone() || !inside) {
            return;
        }
        admitted = true;
        cancel(pause);
        pause = null;
        Roster.Pick pick = remote.view.pick(this);
        pick.probes().forEach(remote::probe);
        boolean idle = Arrays.stream(pending).allMatch(p -> p == null);
        if (pick.server() >= 0) {
            send(pick.server());
        } else if (refusal == null && pick.pause() > 0 && core.clock.nanos() + pick.pause() < deadline) {
            pause = core.after(pick.pause(), () -> {
                if (inside) {
                    step();
                } else {
                    core.gate.enter(this);
                }
            });
            if (idle) {
                leave();
            }
        } else if (idle) {
            // The servers that answer agree that the request is wrong, so waiting for others is no use.
            result.completeExceptionally(refusal != null ? refusal : giveUp());
        }
    }

    private void send(int i) {
        long sent = core.clock.nanos();
        int n = count = Math.min(count, remote.most);
        Format<T> asked = format;
        CompletableFuture<T> request = remote.request(i, n, asked);
        pending[i] = request;
        // Leave half of the time for another server.
        hedges[i] = core.after(Math.min(remote.view.hedgeAfter(), (deadline - sent) / 2), () -> {
            remote.view.late(i, sent, remote.noAnswer(i, sent));
            step();
        });
        request.whenComplete((answer, e) -> core.locked(() -> {
            settle(i, sent, n, asked, answer, e);
            if (!(e instanceof CancellationException)) {
                core.gate.admit();
            }
        }));
    }

    /** Records the result of a request, and asks another server if necessary. */
    private void settle(int i, long sent, int n, Format<T> asked, T answer, Throwable error) {
        pending[i] = null;
        cancel(hedges[i]);
        tried[i] = true;
        if (error == null) {
            remote.worked(i, sent, false);
            result.complete(answer);
            return;
        }
        if (error instanceof CancellationException) { // by the end of the call
            return;
        }
        FirnException e = errors[i] = Core.asFirn(error);
        String kind = e instanceof ServerException s ? s.kind() : "";
        if (e instanceof Transport.TokenException) {
            result.completeExceptionally(e);
        } else if (kind.equals("batch-too-large") && n > 1) {
            remote.most = Math.min(remote.most, n / 2);
        } else if (kind.equals("no-runs") && asked.fallback() != null) {
            remote.noRuns();
            format = asked.fallback();
        } else {
            if (refusal == null && e instanceof ServerException s && s.isOfRequest()) {
                refusal = e;
            }
            if (e.isSilence() && ++timeouts >= errors.length) {
                count = Math.max(1, count / 2); // perhaps it is too much for all of them
            }
            refused[i] = remote.failed(i, sent, e);
        }
        step();
    }

    /** Returns the exception of a call that no server answered. */
    FirnException giveUp() {
        boolean same = true; // all have refused for the same reason, such as the token
        for (int i = 0; i < errors.length; i++) {
            FirnException known = remote.view.error(i);
            if (pending[i] != null && errors[i] == null && (known == null || known.isSilence())) {
                errors[i] = remote.noAnswer(i, start);
            }
            same &= refused[i]
                    && errors[i] instanceof ServerException s
                    && errors[0] instanceof ServerException first
                    && s.kind().equals(first.kind());
        }
        return same ? errors[0] : remote.giveUp(errors, admitted);
    }
}
