package com.github.firnid.client;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import java.util.function.ToIntFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** A sequencer on the servers: what sequencers of both widths have in common. */
abstract class Remote {
    final Core core;
    final Roster.View view;
    final Prefetch prefetch;
    volatile int most = Options.MAX_COUNT; // how many IDs can be requested at a time
    final Set<Call<?>> calls = ConcurrentHashMap.newKeySet();
    final Set<Future<?>> requests = ConcurrentHashMap.newKeySet(); // also probes

    private final String name;
    private final int width; // longs per ID
    private volatile Format<long[]> format; // as runs, until a server says that there are none
    private final Format<long[]> packed;
    private final Map<String, ?> all;
    private volatile Call<?> fetch; // the last one
    private volatile boolean closed;
    private final AtomicReference<List<Long>> last = new AtomicReference<>(); // the first ID of the last answer

    /**
     * @param width the number of longs per ID
     * @param all the sequencers of the client, without this one after it has closed
     */
    Remote(Core core, String name, int width, Map<String, ?> all) {
        this.core = core;
        this.view = core.roster.new View();
        this.name = name;
        this.width = width;
        this.all = all;
        this.packed = Format.packed(width, this::isRepeat);
        this.format = width == 1 ? Format.runs(packed, this::isRepeat) : packed;
        this.prefetch = new Prefetch(core, name, width, n -> call(n, format, true), () -> fetch.giveUp());
    }

    public final String name() {
        return name;
    }

    /** Requests up to count IDs. */
    private <T> CompletableFuture<T> call(int count, Format<T> format, boolean isFetch) {
        Call<T> call = new Call<>(this, count, format, isFetch);
        calls.add(call);
        if (isFetch) {
            fetch = call;
        }
        call.result.whenComplete((ids, e) -> calls.remove(call));
        core.locked(call::start);
        if (closed) {
            call.result.completeExceptionally(closedException());
        }
        return call.result;
    }

    private FirnException closedException() {
        return new ClosedException("sequencer \"" + name + "\" is closed", null);
    }

    /** Requests exactly count IDs, with as many requests as necessary, one after the other. */
    private <T> CompletableFuture<List<T>> all(int count, Format<T> format, ToIntFunction<T> size) {
        Options.count(count);
        CompletableFuture<List<T>> all = new CompletableFuture<>();
        more(all, new ArrayList<>(), count, format, size);
        return all;
    }

    private <T> void more(
            CompletableFuture<List<T>> all, List<T> parts, int count, Format<T> format, ToIntFunction<T> size) {
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

    /** Takes IDs, and converts them. To cancel the result ends the request. */
    <T> CompletableFuture<T> takeAsync(int count, Function<List<long[]>, T> convert) {
        CompletableFuture<List<long[]>> ids = parts(count);
        CompletableFuture<T> result = new CompletableFuture<>();
        Executor executor = core.completer();
        ids.whenComplete((parts, e) -> core.complete(executor, result, () -> {
            if (e != null) {
                throw Core.asFirn(e);
            }
            return convert.apply(parts);
        }));
        result.whenComplete((parts, e) -> ids.cancel(false)); // unless it has ended
        return result;
    }

    private CompletableFuture<List<long[]>> parts(int count) {
        return all(count, format, ids -> ids.length / width);
    }

    List<long[]> takeParts(int count) {
        return Core.await(parts(count), name);
    }

    public final List<String> takeText(int count, String format) {
        return Core.await(all(count, Format.text(format), List::size), name).stream().flatMap(List::stream).toList();
    }

    <T> CompletableFuture<T> request(int i, int count, Format<T> format) {
        CompletableFuture<T> request = core.transport.request(i, name, count, format);
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
        request(i, 1, packed).whenComplete((ids, e) -> core.locked(() -> {
            if (e == null) {
                worked(i, sent, true);
            } else if (!closed && !(Core.asFirn(e) instanceof Transport.TokenException)) { // which concerns no server
                failed(i, sent, Core.asFirn(e));
            }
        }));
    }

    void worked(int i, long sent, boolean probe) {
        boolean late = core.clock.nanos() - sent >= view.hedgeAfter();
        if (view.worked(i, sent, probe)) {
            core.log(System.Logger.Level.INFO, core.options.servers.get(i) + " answers again");
        }
        if (late) { // it was probably stopped, so a probe must be answered in time first
            view.late(i, sent, noAnswer(i, sent));
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
            view.late(i, sent, e);
        }
        if (view.failed(i, sent, whole, wish, e)) {
            core.log(System.Logger.Level.WARNING, "server failed: " + e.getMessage());
        }
        return refused;
    }

    FirnException noAnswer(int i, long sent) {
        String at = core.options.servers.get(i);
        long took = TimeUnit.NANOSECONDS.toMillis(core.clock.nanos() - sent);
        return new FirnException(at, "\"" + name + "\" at " + at + ": no answer after " + took + " ms", null);
    }

    /**
     * Returns the exception of a call that no server answered.
     *
     * @param errors its failures, or null, by server
     * @param admitted whether it could send requests
     */
    FirnException giveUp(FirnException[] errors, boolean admitted) {
        List<FirnException> reasons = IntStream.range(0, errors.length)
                .mapToObj(i -> errors[i] != null ? errors[i] : view.error(i))
                .filter(Objects::nonNull)
                .toList();
        String patience = Transport.text(core.options.patience) + ", the option patience";
        Stream<String> own = admitted
                ? Stream.of("no answer within " + patience).limit(reasons.isEmpty() ? 1 : 0)
                : Stream.of("it waited in line behind " + core.gate.inside
                        + " other calls of this client for " + patience);
        String why = Stream.concat(own, reasons.stream().map(e -> e.getMessage().replace("\"" + name + "\" at ", "")))
                .collect(Collectors.joining("; "));
        UnavailableException e = new UnavailableException("no server gives IDs of \"" + name + "\": " + why, null);
        reasons.forEach(e::addSuppressed);
        return e;
    }

    /**
     * Whether an answer begins like the previous one. That detects a cache that drops the nonce. It takes no monitor
     * of this object, which the caller may hold.
     */
    private boolean isRepeat(long[] ids) {
        List<Long> first = List.of(ids[0], ids[width - 1]);
        return first.equals(last.getAndSet(first));
    }

    public final void close() {
        closed = true;
        core.locked(() -> {
            prefetch.close();
            calls.forEach(c -> c.result.completeExceptionally(closedException()));
        });
        requests.forEach(r -> r.cancel(true));
        all.remove(name, this);
    }
}
