package com.github.firnid.client;

import java.util.List;
import java.util.PrimitiveIterator;
import java.util.concurrent.CompletableFuture;
import java.util.function.LongSupplier;
import java.util.stream.LongStream;

/**
 * Hands out the 64-bit IDs of one name. It is safe for use by many threads at once. Get one from {@link
 * Client#sequencer}, or from a {@link FakeClient} in tests.
 *
 * <p>An ID is an unsigned number. Those of most layouts fit a positive {@code long}; for others, use {@link
 * Long#toUnsignedString(long)} and {@link Long#compareUnsigned}.
 *
 * <p>{@link #next} hands out IDs that were fetched before, at most as long ago as the validity of the client.
 * {@link #take} asks a server. IDs that were fetched but not used are lost: numbers have gaps, and none
 * repeats.
 *
 * <p>Methods that fail throw a {@link FirnException}, and their futures fail with one. The next call tries
 * again.
 */
public interface Sequencer extends LongSupplier, Iterable<Long>, AutoCloseable {
    /**
     * Returns the name of the sequencer.
     *
     * @return the name
     */
    String name();

    /**
     * Returns the next ID. It waits only if none has been fetched: for the first one, after a long pause,
     * and if IDs are used faster than they arrive. IDs of one sequencer object ascend while they come from
     * one server.
     *
     * @return the ID
     */
    long next();

    /**
     * Is like {@link #next}, but does not block. The future is completed by one of a few threads of the
     * client, unless it is complete already: pass an executor to {@code thenApplyAsync} for code that waits.
     * Cancelling it gives up only this ID.
     *
     * @return the ID
     */
    CompletableFuture<Long> nextAsync();

    /**
     * Requests IDs from a server, with one request per 100,000, each of which has the patience of the client.
     * A client sends the requests of ten such calls at a time; others wait.
     *
     * @param count how many
     * @return exactly that many
     */
    long[] take(int count);

    /**
     * Is like {@link #take}, but does not block. The future is completed as that of {@link #nextAsync} is.
     *
     * @param count how many
     * @return exactly that many
     */
    CompletableFuture<long[]> takeAsync(int count);

    /**
     * Requests IDs as text from a server.
     *
     * @param count how many
     * @param format how they are written: {@code dec}, {@code hex}, {@code base32}, {@code base62}, or
     *     another format of the HTTP API
     * @return exactly that many
     */
    List<String> takeText(int count, String format);

    /**
     * Is the same as {@link #next}.
     *
     * @return the ID
     */
    @Override
    default long getAsLong() {
        return next();
    }

    /**
     * Returns an endless iterator over the next IDs.
     *
     * @return the iterator
     */
    @Override
    default PrimitiveIterator.OfLong iterator() {
        return stream().iterator();
    }

    /**
     * Returns an endless stream of the next IDs.
     *
     * @return the stream
     */
    default LongStream stream() {
        return LongStream.generate(this);
    }

    /**
     * Ends calls in progress and discards fetched IDs. Afterwards, calls throw a {@link ClosedException},
     * and the client returns a new sequencer for the name.
     */
    @Override
    void close();
}
