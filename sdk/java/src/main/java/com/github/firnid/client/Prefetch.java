package com.github.firnid.client;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import java.util.function.IntFunction;

/**
 * Hands out IDs that were fetched before. IDs are taken from a block without a lock. A block is replaced
 * under the lock, and only if it is sealed or used up, so IDs come in the order of their blocks, and none
 * comes twice.
 */
final class Prefetch {
    /** A block that lasts less than this is too small. */
    private static final long SHORT = TimeUnit.SECONDS.toNanos(1);

    /** How often the age of an unused block is checked, which matters only after a suspend. */
    private static final long TICK = TimeUnit.SECONDS.toNanos(1);

    /** How many IDs are handed out per check of the clock, which takes longer than handing one out. */
    private static final int PER_CHECK = 16;

    /** How much longer a call waits than its fetch, which fails first then, with the reasons. */
    private static final long GRACE = TimeUnit.MILLISECONDS.toNanos(100);

    /** An ID of a block. */
    record Slot(Block block, int index) {}

    /** A request in progress, for all callers. */
    private static final class Fetch {
        final long began;
        final long millis; // the same, by the wall clock
        final CompletableFuture<Block> done = new CompletableFuture<>();

        Fetch(Clock clock) {
            began = clock.nanos();
            millis = clock.millis();
        }
    }

    private final Core core;
    private final Function<Throwable, FirnException> giveUp;
    private final String name;
    private final int most;
    private final long validity; // in nanoseconds
    private final long patience; // of a call
    private final IntFunction<CompletableFuture<Ids>> source;

    volatile Block block;

    private Block ready; // fetched, and not yet in use
    private Fetch fetching;
    private int count; // number of IDs to ask for
    private boolean closed;
    private Future<?> timer;
    private long discarded;

    /**
     * @param source asks a server for a number of IDs
     * @param giveUp makes the exception of a call that has waited too long
     */
    Prefetch(
            Core core,
            String name,
            IntFunction<CompletableFuture<Ids>> source,
            Function<Throwable, FirnException> giveUp) {
        this.core = core;
        this.name = name;
        this.source = source;
        this.giveUp = giveUp;
        this.count = Math.min(core.options.firstBatch, core.options.maxBatch);
        this.most = core.options.maxBatch;
        this.validity = core.options.validity.toNanos();
        this.patience = core.options.patience.toNanos() + GRACE;
        this.block = new Block(new Ids.Packed(new long[0], 1), 0, 0);
    }

    /** Returns the next ID, or null if none has been fetched. */
    Slot tryTake() {
        Block b = block;
        long i = b.used.getAndIncrement();
        return i < b.limit || check(b, i) ? new Slot(b, (int) i) : null;
    }

    /** Returns the next ID, and waits for it if necessary. */
    Slot take() {
        long start = core.clock.nanos();
        Fetch waited = null;
        for (; ; ) {
            Slot slot = tryTake();
            if (slot != null) {
                return slot;
            }
            Fetch f = advance();
            if (f == null) {
                continue;
            }
            try {
                long left = patience - (core.clock.nanos() - start);
                slot = fromLate(f.done.get(Math.max(left, 0), TimeUnit.NANOSECONDS));
                if (slot != null) {
                    return slot;
                }
            } catch (ExecutionException e) {
                // The failure of a fetch that began before this call does not answer it.
                if (f.began >= start || waited != null) {
                    throw Core.asFirn(e.getCause()).again();
                }
            } catch (TimeoutException e) {
                throw giveUp.apply(null);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new FirnException(null, "\"" + name + "\": interrupted while waiting for a server", e);
            }
            waited = f;
        }
    }

    /** Is like take, and converts the ID. */
    <T> CompletableFuture<T> takeAsync(Function<Slot, T> convert) {
        Slot slot = tryTake();
        if (slot != null) {
            return CompletableFuture.completedFuture(convert.apply(slot));
        }
        CompletableFuture<T> result = new CompletableFuture<>();
        Future<?> deadline = core.after(
                patience, () -> result.completeExceptionally(giveUp.apply(null)));
        result.whenComplete((id, e) -> deadline.cancel(false));
        await(result, convert, core.clock.nanos(), null);
        return result;
    }

    /** Takes an ID of a block that was too old when it arrived: only the calls that waited for it get its IDs. */
    private Slot fromLate(Block b) {
        if (!tooOld(b)) {
            return null;
        }
        long i = b.used.getAndIncrement();
        return i < b.size ? new Slot(b, (int) i) : null;
    }

    private <T> void await(CompletableFuture<T> result, Function<Slot, T> convert, long start, Fetch waited) {
        try {
            while (!result.isDone()) {
                Slot slot = tryTake();
                if (slot != null) {
                    result.complete(convert.apply(slot));
                    return;
                }
                Fetch f = advance();
                if (f == null) {
                    continue;
                }
                // In the common pool, because it may run code of the caller, which must not delay other calls.
                f.done.whenCompleteAsync((b, e) -> {
                    if (e != null && (f.began >= start || waited != null)) {
                        result.completeExceptionally(Core.asFirn(e));
                        return;
                    }
                    Slot late = e == null ? fromLate(b) : null;
                    if (late != null) {
                        result.complete(convert.apply(late));
                    } else {
                        await(result, convert, start, f);
                    }
                });
                return;
            }
        } catch (FirnException e) {
            result.completeExceptionally(e);
        }
    }

    /**
     * Checks index i of a block: whether it has an ID that is not too old. Begins to fetch the next block
     * if few IDs are left.
     */
    boolean check(Block b, long i) {
        if (i >= b.size) {
            return false;
        }
        if (tooOld(b)) {
            synchronized (this) {
                drop(b);
            }
            return false;
        }
        if (i >= b.low) {
            b.low = b.size;
            synchronized (this) {
                if (!closed && fetching == null && ready == null && block == b) {
                    start();
                }
            }
        }
        b.limit = Math.min(i + PER_CHECK, i < b.low ? b.low : b.size);
        return true;
    }

    /** Replaces a block without IDs, and returns null, or the fetch to wait for. */
    private synchronized Fetch advance() {
        if (closed) {
            throw new ClosedException("sequencer \"" + name + "\" is closed", null);
        }
        Block b = block;
        if (!b.isEmpty()) {
            if (!tooOld(b)) {
                return null;
            }
            drop(b);
        } else if (b.size > 0 && !b.counted && core.clock.nanos() - b.begun < SHORT) {
            b.counted = true;
            count = Math.min(2 * count, most);
            if (ready != null) {
                ready.low = 0; // fetch the next one at once
            }
        }
        Block r = ready;
        ready = null;
        if (r != null && !tooOld(r)) {
            r.begun = core.clock.nanos();
            block = r;
            return null;
        }
        if (r != null) {
            drop(r);
        }
        return fetching != null ? fetching : start();
    }

    /** Begins a fetch. The caller holds the lock. */
    private Fetch start() {
        Fetch f = new Fetch(core.clock);
        int n = count;
        fetching = f;
        source.apply(n).whenComplete((ids, e) -> arrived(f, n, ids, e));
        return f;
    }

    private void arrived(Fetch f, int asked, Ids ids, Throwable error) {
        Block b = null;
        synchronized (this) {
            fetching = null;
            if (error == null) {
                b = new Block(ids, f.began, f.millis);
                if (b.size < asked && count == asked) {
                    count = b.size; // all that servers give at a time
                }
                if (!closed && !tooOld(b)) {
                    ready = b;
                    tick();
                    if (block.counted) { // calls wait: fetch the next one before they have woken up
                        ready = null;
                        b.begun = core.clock.nanos();
                        block = b;
                        start();
                    }
                }
            } else {
                // Fetch again when half of the rest is used, and so on.
                long used = block.used.get();
                if (used < block.size) {
                    block.low = used + (block.size - used + 1) / 2;
                }
            }
        }
        if (error == null) {
            f.done.complete(b);
        } else {
            f.done.completeExceptionally(Core.asFirn(error));
        }
    }

    /** Drops blocks that are too old, even if no call needs an ID. */
    private synchronized void tick() {
        if (timer != null) {
            timer.cancel(false);
            timer = null;
        }
        if (!block.isEmpty() && tooOld(block)) {
            drop(block);
        }
        if (ready != null && tooOld(ready)) {
            drop(ready);
            ready = null;
        }
        if (!closed && (!block.isEmpty() || ready != null)) {
            timer = core.after(Math.min(validity, TICK), this::tick);
        }
    }

    /** Whether a block is older than validity by either clock: only the wall clock counts a suspend. */
    private boolean tooOld(Block b) {
        return core.clock.nanos() - b.nanos >= validity
                || core.clock.millis() - b.millis >= TimeUnit.NANOSECONDS.toMillis(validity);
    }

    /** Ends a block. The caller holds the lock. */
    private void drop(Block b) {
        long left = b.seal();
        discarded += left;
        if (2 * left > b.size) {
            count = Math.max(count / 2, 1);
        }
    }

    synchronized long discarded() {
        return discarded;
    }

    /** Discards all IDs. Calls that wait fail, because their fetch does. */
    synchronized void close() {
        closed = true;
        block.seal();
        ready = null;
        tick();
    }
}
