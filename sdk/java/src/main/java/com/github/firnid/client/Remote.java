package com.github.firnid.client;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.function.Function;
import java.util.function.ToIntFunction;

/** A sequencer on the servers: what sequencers of both widths have in common. */
final class Remote {
    final Core core;
    final Transport transport;
    final Roster.View view;
    final String name;
    final Prefetch prefetch;
    volatile int most = Options.MAX_COUNT; // how many IDs can be requested at a time

    private volatile Transport.Format<Ids> format; // as runs, until a server says that there are none
    private final Transport.Format<Ids> packed;
    private final Runnable forget;
    final Set<Call<?>> calls = ConcurrentHashMap.newKeySet();
    final Set<Future<?>> requests = ConcurrentHashMap.newKeySet(); // also probes
    private volatile boolean closed;
    private UUID last; // the first ID of the last answer

    /**
     * @param width the number of longs per ID
     * @param forget is called when the sequencer is closed
     */
    Remote(Core core, Transport transport, Roster.View view, String name, int width, Runnable forget) {
        this.core = core;
        this.transport = transport;
        this.view = view;
        this.name = name;
        this.forget = forget;
        this.packed = Formats.packed(width, this::isRepeat);
        this.format = width == 1 ? Formats.runs(packed, this::isRepeat) : packed;
        this.prefetch = new Prefetch(core, name, n -> call(n, format, true), this::giveUp);
    }

    /** Requests up to count IDs. */
    private <T> CompletableFuture<T> call(int count, Transport.Format<T> format, boolean isFetch) {
        Call<T> call = new Call<>(this, count, format, isFetch);
        calls.add(call);
        CompletableFuture<T> result = call.start();
        result.whenComplete((ids, e) -> {
            calls.remove(call);
            call.cancel(closedException()); // if the caller cancelled it
        });
        if (closed) {
            call.cancel(closedException());
        }
        return result;
    }

    private FirnException closedException() {
        return new ClosedException("sequencer \"" + name + "\" is closed", null);
    }

    /** Requests exactly count IDs, with as many requests as necessary, one after the other. */
    private <T> CompletableFuture<List<T>> all(int count, Transport.Format<T> format, ToIntFunction<T> size) {
        Options.count(count);
        CompletableFuture<List<T>> all = new CompletableFuture<>();
        more(all, new ArrayList<>(), count, format, size);
        return all;
    }

    private <T> void more(
            CompletableFuture<List<T>> all, List<T> parts, int count, Transport.Format<T> format, ToIntFunction<T> size) {
        CompletableFuture<T> call = call(Math.min(count, Options.MAX_COUNT), format, false);
        all.whenComplete((ids, e) -> call.cancel(false)); // unless it has ended
        call.whenComplete((part, e) -> {
            if (e != null) {
                all.completeExceptionally(e);
                return;
            }
            parts.add(part);
            int rest = count - size.applyAsInt(part);
            if (rest == 0) {
                all.complete(parts);
            } else {
                more(all, parts, rest, format, size);
            }
        });
    }

    /** Is like take, and converts the IDs. To cancel the result ends the request. */
    <T> CompletableFuture<T> takeAsync(int count, Function<List<Ids>, T> convert) {
        CompletableFuture<List<Ids>> ids = take(count);
        CompletableFuture<T> result = new CompletableFuture<>();
        ids.whenCompleteAsync((all, e) -> {
            if (e == null) {
                Core.completion(result, () -> convert.apply(all)).run();
            } else {
                result.completeExceptionally(Core.asFirn(e));
            }
        }, core.completer());
        result.whenComplete((all, e) -> ids.cancel(false)); // unless it has ended
        return result;
    }

    CompletableFuture<List<Ids>> take(int count) {
        return all(count, format, ids -> ids.size);
    }

    List<String> takeText(int count, String format) {
        return await(all(count, Formats.text(format), List::size)).stream().flatMap(List::stream).toList();
    }

    /** Waits for a result. Calls end by themselves after the option patience. */
    <T> T await(CompletableFuture<T> result) {
        return Core.await(result, name);
    }

    <T> CompletableFuture<T> request(int i, int count, Transport.Format<T> format) {
        CompletableFuture<T> request = transport.request(i, name, count, format);
        requests.add(request);
        request.whenComplete((ids, e) -> requests.remove(request));
        if (closed) {
            request.cancel(true);
        }
        return request;
    }

    /** Records that the layout has no runs. */
    void noRuns() {
        format = packed;
    }

    /** Asks a suspect for one ID, which is lost, while calls use other servers. */
    void probe(int i) {
        long sent = core.clock.nanos();
        request(i, 1, packed).whenComplete((ids, e) -> {
            if (e == null) {
                worked(i, sent, true);
            } else if (!closed) {
                failed(i, sent, Core.asFirn(e));
            }
        });
    }

    void worked(int i, long sent, boolean probe) {
        if (view.worked(i, sent, probe, () -> noAnswer(i, sent))) {
            core.log(System.Logger.Level.INFO, core.options.servers.get(i) + " answers again");
        }
    }

    /** Records the failure of a request, and returns whether the same call must not ask the server again. */
    boolean failed(int i, long sent, FirnException e) {
        boolean whole = true;
        boolean refused = false;
        long wish = 0;
        if (e instanceof ServerException s) {
            whole = s.isOfServer();
            refused = !s.isTemporary();
            wish = s.retryAfter().toNanos();
        } else if (e instanceof AnswerException) {
            whole = false; // IDs of one sequencer may have the other width
            refused = true;
        } else if (e instanceof Transport.TlsException) {
            refused = true;
        } else if (e.isSilence()) {
            view.late(i, sent, false, e);
        }
        if (view.failed(i, sent, whole, wish, e)) {
            core.log(System.Logger.Level.WARNING, "server failed: " + e.getMessage());
        }
        return refused;
    }

    FirnException noAnswer(int i, long sent) {
        String at = core.options.servers.get(i);
        long took = Call.millis(core.clock.nanos() - sent);
        return new FirnException(at, "\"" + name + "\" at " + at + ": no answer after " + took + " ms", null);
    }

    private FirnException giveUp(Throwable cause) {
        return giveUp(new FirnException[core.options.servers.size()], cause);
    }

    /** Returns the exception of a call that no server answered, with the failures of that call, if any. */
    FirnException giveUp(FirnException[] errors, Throwable cause) {
        UnavailableException all = new UnavailableException(null, cause);
        StringBuilder text = new StringBuilder("no server gives IDs of \"" + name + "\"");
        for (int i = 0; i < errors.length; i++) {
            FirnException e = errors[i] != null ? errors[i] : view.error(i);
            if (e != null) {
                text.append(text.indexOf(": ") < 0 ? ": " : "; ").append(e.getMessage());
                all.addSuppressed(e);
            }
        }
        if (all.reasons().isEmpty()) {
            text.append(": no answer within ").append(Transport.text(core.options.patience)).append(", the option patience");
        }
        UnavailableException named = new UnavailableException(text.toString(), cause);
        all.reasons().forEach(named::addSuppressed);
        return named;
    }

    /** Whether an answer begins like the previous one. That detects a cache that drops the nonce. */
    private synchronized boolean isRepeat(Ids ids) {
        UUID first = new UUID(ids.high(0), ids.low(0));
        boolean repeat = first.equals(last);
        last = first;
        return repeat;
    }

    void close() {
        closed = true;
        prefetch.close();
        calls.forEach(c -> c.cancel(closedException()));
        requests.forEach(r -> r.cancel(true));
        forget.run();
    }
}
