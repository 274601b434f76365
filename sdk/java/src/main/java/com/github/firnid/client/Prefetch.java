package com.github.firnid.client;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.IntFunction;
import java.util.function.Supplier;

/**
 * Hands out IDs that were fetched before. IDs are taken from a block without a lock. A block is replaced
 * under the lock of the Core, and only if it is sealed or used up, so IDs come in the order of their blocks,
 * and none comes twice.
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

    /**
     * A call that waits for an ID.
     *
     * @param result is completed in the executor, because it may run code of the caller
     * @param fetch the number of the last fetch that began before the call: its failure does not answer it
     */
    private record Waiter<T>(
            CompletableFuture<T> result, Function<Slot, T> convert, Executor executor, long fetch, long deadline) {
        void complete(Core core, Slot slot) {
            core.complete(executor, result, () -> convert.apply(slot));
        }

        void fail(Core core, FirnException e) {
            core.complete(executor, result, () -> {
                throw e;
            });
        }
    }

    private final Core core;
    private final Supplier<FirnException> giveUp;
    private final String name;
    private final int width;
    private final int most;
    private final long validity; // in nanoseconds
    private final long patience; // of a call
    private final IntFunction<CompletableFuture<long[]>> source;

    volatile Block block;

    private Block ready; // fetched, and not yet in use
    private final Deque<Waiter<?>> waiters = new ArrayDeque<>(); // first come, first served
    private Future<?> deadline; // of the first waiter
    private long fetches; // how many have begun
    private boolean fetching;
    private int count; // number of IDs to ask for
    private boolean closed;
    private Future<?> timer;

    /**
     * @param width the number of longs per ID
     * @param source asks a server for a number of IDs
     * @param giveUp makes the exception of a call that has waited too long
     */
    Prefetch(
            Core core,
            String name,
            int width,
            IntFunction<CompletableFuture<long[]>> source,
            Supplier<FirnException> giveUp) {
        this.core = core;
        this.name = name;
        this.width = width;
        this.source = source;
        this.giveUp = giveUp;
        this.count = Math.min(core.options.firstBatch, core.options.maxBatch);
        this.most = core.options.maxBatch;
        this.validity = core.options.validity.toNanos();
        this.patience = core.options.patience.toNanos() + GRACE;
        this.block = new Block(new long[0], 0, 0, 0);
    }

    /** Returns the next ID, or null if none has been fetched. */
    Slot tryTake() {
        Block b = block;
        long i = b.used.getAndIncrement();
        return i < b.limit || check(b, i) ? new Slot(b, (int) i) : null;
    }

    /** Returns the next ID, and waits for it if necessary. */
    Slot take() {
        Slot slot = tryTake();
        if (slot != null) {
            return slot;
        }
        return Core.await(take(Function.identity(), Runnable::run), name);
    }

    /** Is like take, and converts the ID. */
    <T> CompletableFuture<T> takeAsync(Function<Slot, T> convert) {
        return take(convert, core.completer());
    }

    /** Takes an ID. If there is none yet, the result is completed in the executor. */
    private <T> CompletableFuture<T> take(Function<Slot, T> convert, Executor executor) {
        CompletableFuture<T> result = new CompletableFuture<>();
        while (!result.isDone()) {
            Slot slot = tryTake();
            if (slot != null) {
                result.complete(convert.apply(slot));
            } else {
                synchronized (core) {
                    if (await(result, convert, executor)) {
                        break;
                    }
                }
            }
        }
        return result;
    }

    /** Lets a call wait, unless there are IDs or the sequencer is closed. The caller holds the lock. */
    private <T> boolean await(CompletableFuture<T> result, Function<Slot, T> convert, Executor executor) {
        if (closed) {
            result.completeExceptionally(closedException());
        } else if (!advance()) {
            waiters.add(new Waiter<>(result, convert, executor, fetches, core.clock.nanos() + patience));
            watch();
            if (!fetching) {
                start();
            }
            return true;
        }
        return false;
    }

    private FirnException closedException() {
        return new ClosedException("sequencer \"" + name + "\" is closed", null);
    }

    /** Ends the calls that have waited too long. They are the first ones, because all have the same patience. */
    private void expire() {
        long now = core.clock.nanos();
        FirnException e = giveUp.get();
        deadline = null;
        for (Waiter<?> w; (w = waiters.peek()) != null && (w.result.isDone() || w.deadline <= now); ) {
            waiters.remove().fail(core, e);
        }
        watch();
    }

    /** Sets or ends the timer of the calls that wait, after some have ended. The caller holds the lock. */
    private void watch() {
        if (waiters.isEmpty() != (deadline == null)) {
            if (deadline == null) {
                deadline = core.after(waiters.peek().deadline - core.clock.nanos(), this::expire);
            } else {
                deadline.cancel(false);
                deadline = null;
            }
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
            synchronized (core) {
                drop(b);
            }
            return false;
        }
        if (i >= b.low) {
            b.low = b.size;
            synchronized (core) {
                if (!closed && !fetching && ready == null && block == b) {
                    start();
                }
            }
        }
        b.limit = Math.min(i + PER_CHECK, i < b.low ? b.low : b.size);
        return true;
    }

    /** Whether there are IDs. Replaces a block without IDs if possible. The caller holds the lock. */
    private boolean advance() {
        Block b = block;
        if (!b.isEmpty()) {
            if (!tooOld(b)) {
                return true;
            }
            drop(b);
        } else {
            usedUp(b);
        }
        Block r = ready;
        ready = null;
        if (r != null && tooOld(r)) {
            drop(r);
            r = null;
        }
        if (r != null) {
            use(r);
        }
        return r != null;
    }

    /** Brings a block into use. The caller holds the lock. */
    private void use(Block b) {
        b.begun = core.clock.nanos();
        block = b;
    }

    /** Makes the next fetch larger if a block without IDs lasted only a short time. The caller holds the lock. */
    private void usedUp(Block b) {
        if (b.size > 0 && !b.counted && core.clock.nanos() - b.begun < SHORT) {
            b.counted = true;
            count = Math.min(2 * count, most);
            if (ready != null) {
                ready.low = 0; // fetch the next one at once
            }
        }
    }

    /** Begins a fetch. The caller holds the lock. */
    private void start() {
        int n = count;
        long fetch = ++fetches;
        long nanos = core.clock.nanos();
        long millis = core.clock.millis();
        fetching = true;
        CompletableFuture<long[]> answer;
        try {
            answer = source.apply(n);
        } catch (Throwable e) { // such as OutOfMemoryError: there is no other thread
            answer = CompletableFuture.failedFuture(e);
        }
        answer.whenComplete((ids, e) -> core.locked(() -> {
            if (e == null) {
                arrived(new Block(ids, ids.length / width, nanos, millis), n);
            } else {
                failed(fetch, Core.asFirn(e));
            }
        }));
    }

    /** Gives the IDs to the calls that wait, and keeps the rest. */
    private void arrived(Block b, int asked) {
        fetching = false;
        if (b.size < asked && count == asked) {
            count = b.size; // all that servers give at a time
        }
        boolean fits = !closed && !tooOld(b); // only the calls that waited get IDs that were too old on arrival
        boolean hurry = fits && block.counted;
        int given = 0;
        for (Waiter<?> w; given < b.size && (w = waiters.poll()) != null; ) {
            if (!w.result.isDone()) {
                w.complete(core, new Slot(b, given++));
            }
        }
        b.used.set(given);
        if (fits) {
            if (block.isEmpty()) {
                use(b);
            } else {
                ready = b;
            }
            if (!waiters.isEmpty()) {
                usedUp(b);
            }
            tick();
        }
        watch();
        if (!closed && (hurry || !waiters.isEmpty() || given > b.low)) {
            start();
        }
    }

    private void failed(long fetch, FirnException e) {
        fetching = false;
        while (!waiters.isEmpty() && waiters.peek().fetch < fetch) {
            waiters.remove().fail(core, e);
        }
        watch();
        if (!waiters.isEmpty()) {
            start();
            return;
        }
        // Fetch again when half of the rest is used, and so on.
        long used = block.used.get();
        if (used < block.size) {
            block.low = used + (block.size - used + 1) / 2;
        }
    }

    /** Drops blocks that are too old, even if no call needs an ID. */
    private void tick() {
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
        if (2 * left > b.size) {
            count = Math.max(count / 2, 1);
        }
    }

    /** Discards all IDs, and ends the calls that wait. The caller holds the lock. */
    void close() {
        closed = true;
        block.seal();
        ready = null;
        tick();
        for (Waiter<?> w; (w = waiters.poll()) != null; ) {
            w.fail(core, closedException());
        }
        watch();
    }
}
