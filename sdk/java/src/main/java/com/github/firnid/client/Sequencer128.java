package com.github.firnid.client;

import java.util.Iterator;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import java.util.stream.Stream;

/**
 * Hands out the 128-bit IDs of one name, such as those of the layout {@code uuidv7}. It is like a {@link
 * Sequencer} otherwise.
 *
 * <p>IDs ascend as unsigned numbers, and as text. {@link UUID#compareTo} compares signed numbers, so its
 * order differs for IDs that begin with a one bit.
 */
public interface Sequencer128 extends Supplier<UUID>, Iterable<UUID>, AutoCloseable {
    /**
     * Returns the name of the sequencer.
     *
     * @return the name
     */
    String name();

    /**
     * Returns the next ID. It waits only if none has been fetched.
     *
     * @return the ID
     */
    UUID next();

    /**
     * Is like {@link #next}, but does not block. The future is completed by one of a few threads of the
     * client, unless it is complete already: pass an executor to {@code thenApplyAsync} for code that waits.
     * Cancelling it gives up only this ID.
     *
     * @return the ID
     */
    CompletableFuture<UUID> nextAsync();

    /**
     * Requests IDs from a server, with one request per 100,000, each of which has the patience of the client.
     * A client sends the requests of ten such calls at a time; others wait.
     *
     * @param count how many
     * @return exactly that many
     */
    UUID[] take(int count);

    /**
     * Is like {@link #take}, but does not block. The future is completed as that of {@link #nextAsync} is.
     *
     * @param count how many
     * @return exactly that many
     */
    CompletableFuture<UUID[]> takeAsync(int count);

    /**
     * Requests IDs as text from a server.
     *
     * @param count how many
     * @param format how they are written: {@code uuid}, {@code hex}, {@code base62}, or another format of the
     *     HTTP API
     * @return exactly that many
     */
    List<String> takeText(int count, String format);

    /**
     * Is the same as {@link #next}.
     *
     * @return the ID
     */
    @Override
    default UUID get() {
        return next();
    }

    /**
     * Returns an endless iterator over the next IDs.
     *
     * @return the iterator
     */
    @Override
    default Iterator<UUID> iterator() {
        return stream().iterator();
    }

    /**
     * Returns an endless stream of the next IDs.
     *
     * @return the stream
     */
    default Stream<UUID> stream() {
        return Stream.generate(this);
    }

    /**
     * Ends calls in progress and discards fetched IDs. Afterwards, calls throw a {@link ClosedException},
     * and the client returns a new sequencer for the name.
     */
    @Override
    void close();
}
