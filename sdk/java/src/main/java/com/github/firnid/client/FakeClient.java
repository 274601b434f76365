package com.github.firnid.client;

import java.time.Clock;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Stream;

/**
 * A client for tests of programs that use this package. It needs no server: the test gives the clock and the
 * node ID. IDs of one sequencer increase, even if the clock stands still or goes back. Those of two names can be
 * equal, as those of servers can.
 *
 * <p>IDs have 64 bits in the layout {@code default}: 41 bits of milliseconds since 2026-01-01, 10 bits of node
 * ID, and 12 bits of sequence. The first ID of each millisecond is odd: from 2026-01-26 on no {@code double} holds
 * it, so a test notices rounding. IDs with 128 bits are UUIDs of version 7 with the sequence and the node ID in
 * place of random bits.
 */
public final class FakeClient extends Client {
    private static final long EPOCH = 1_767_225_600_000L; // 2026-01-01
    private static final int SEQ = 12; // bits

    private final Clock clock;
    private final int node;
    private final AtomicInteger failures = new AtomicInteger();

    /**
     * Makes a client.
     *
     * @param clock the time of the IDs
     * @param node the node ID: 0 to 1023
     */
    public FakeClient(Clock clock, int node) {
        if (node < 0 || node > 1023) {
            throw new IllegalArgumentException("node is " + node + ": it must be from 0 to 1023");
        }
        this.clock = clock;
        this.node = node;
    }

    /**
     * Makes the next calls fail with an {@link UnavailableException}, as if no server answered.
     *
     * @param calls how many
     */
    public void failNext(int calls) {
        failures.set(calls);
    }

    @Override
    Sequencer make(String name, Map<String, ?> all) {
        return new Fake(name, all);
    }

    @Override
    Sequencer128 make128(String name, Map<String, ?> all) {
        return new Fake128(name, all);
    }

    /** Returns no servers. */
    @Override
    public List<ServerStatus> servers() {
        return List.of();
    }

    /** What fakes of both widths have in common. It counts slots, which are the time and the sequence of an ID. */
    private abstract class Base {
        private final String name;
        private final Map<String, ?> all;
        private final AtomicLong last = new AtomicLong(-1);
        private volatile boolean closed;

        Base(String name, Map<String, ?> all) {
            this.name = name;
            this.all = all;
        }

        public String name() {
            return name;
        }

        long slot() {
            if (closed) {
                throw new ClosedException("sequencer \"" + name + "\" is closed", null);
            }
            if (failures.getAndUpdate(n -> Math.max(n - 1, 0)) > 0) {
                throw new UnavailableException("no server gives IDs of \"" + name + "\": the test asked for a failure", null);
            }
            long now = clock.millis() - EPOCH;
            if (now < 0) {
                throw new IllegalStateException("the clock is before 2026-01-01, the epoch of the layout: " + clock.instant());
            }
            return last.updateAndGet(slot -> Math.max(slot + 1, now << SEQ | 1));
        }

        <T> CompletableFuture<T> async(Supplier<T> call) {
            try {
                return CompletableFuture.completedFuture(call.get());
            } catch (Exception e) {
                return CompletableFuture.failedFuture(e);
            }
        }

        /** Returns IDs as text; each format has a function that writes one. */
        <T> List<String> text(Stream<T> ids, Map<String, Function<T, String>> formats, String format) {
            Function<T, String> write = formats.get(format);
            if (write == null) {
                throw new UnsupportedOperationException("a fake does not write the format " + format);
            }
            return ids.map(write).toList();
        }

        public void close() {
            closed = true;
            all.remove(name, this);
        }
    }

    private final class Fake extends Base implements Sequencer {
        Fake(String name, Map<String, ?> all) {
            super(name, all);
        }

        @Override
        public long next() {
            long slot = slot();
            return slot >>> SEQ << 22 | (long) node << SEQ | slot & (1 << SEQ) - 1;
        }

        @Override
        public CompletableFuture<Long> nextAsync() {
            return async(this::next);
        }

        @Override
        public long[] take(int count) {
            return stream().limit(Options.count(count)).toArray();
        }

        @Override
        public CompletableFuture<long[]> takeAsync(int count) {
            Options.count(count);
            return async(() -> take(count));
        }

        @Override
        public List<String> takeText(int count, String format) {
            return text(stream().limit(Options.count(count)).boxed(),
                    Map.of("dec", id -> Long.toString(id), "hex", id -> HexFormat.of().toHexDigits(id)), format);
        }
    }

    private final class Fake128 extends Base implements Sequencer128 {
        Fake128(String name, Map<String, ?> all) {
            super(name, all);
        }

        @Override
        public UUID next() {
            long slot = slot();
            long time = (slot >>> SEQ) + EPOCH;
            return new UUID(time << 16 | 7 << 12 | slot & (1 << SEQ) - 1, 2L << 62 | node);
        }

        @Override
        public CompletableFuture<UUID> nextAsync() {
            return async(this::next);
        }

        @Override
        public UUID[] take(int count) {
            return stream().limit(Options.count(count)).toArray(UUID[]::new);
        }

        @Override
        public CompletableFuture<UUID[]> takeAsync(int count) {
            Options.count(count);
            return async(() -> take(count));
        }

        @Override
        public List<String> takeText(int count, String format) {
            return text(stream().limit(Options.count(count)), Map.of("uuid", UUID::toString), format);
        }
    }
}
