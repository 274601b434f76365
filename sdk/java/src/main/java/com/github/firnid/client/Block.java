package com.github.firnid.client;

import java.util.concurrent.atomic.AtomicLong;

/** IDs that were fetched together, in the order in which they are handed out. */
final class Block {
    private static final long SEALED = Long.MAX_VALUE / 2;

    final long[] ids; // one or two longs for each
    final int size; // number of IDs
    final long nanos; // when their fetch began
    final long millis;

    /** The index of the next ID. Every call takes an index, beyond the size as well. */
    final AtomicLong used = new AtomicLong();

    /** Calls below this index need no further check. It is at most the size. */
    volatile long limit;

    /** From this index on, the next block is fetched. */
    volatile long low;

    long begun; // when it came into use; guarded by the Prefetch
    boolean counted; // that it was used up; guarded by the Prefetch

    Block(long[] ids, int size, long nanos, long millis) {
        this.ids = ids;
        this.size = size;
        this.low = size / 2;
        this.nanos = nanos;
        this.millis = millis;
    }

    boolean isEmpty() {
        return used.get() >= size;
    }

    /** Ends the block, and returns the number of unused IDs. */
    long seal() {
        return Math.max(0, size - used.getAndSet(SEALED));
    }
}
