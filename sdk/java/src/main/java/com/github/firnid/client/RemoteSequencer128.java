package com.github.firnid.client;

import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;

/** The 128-bit IDs of a sequencer on the servers. */
final class RemoteSequencer128 implements Sequencer128 {
    private final Remote remote;

    RemoteSequencer128(Remote remote) {
        this.remote = remote;
    }

    @Override
    public String name() {
        return remote.name;
    }

    @Override
    public UUID next() {
        return id(remote.prefetch.take());
    }

    private static UUID id(Prefetch.Slot slot) {
        return id(slot.block().ids, slot.index());
    }

    private static UUID id(Ids ids, int i) {
        return new UUID(ids.high(i), ids.low(i));
    }

    private static UUID[] all(List<Ids> parts) {
        return parts.stream()
                .flatMap(ids -> IntStream.range(0, ids.size).mapToObj(i -> id(ids, i)))
                .toArray(UUID[]::new);
    }

    @Override
    public CompletableFuture<UUID> nextAsync() {
        return remote.prefetch.takeAsync(RemoteSequencer128::id);
    }

    @Override
    public UUID[] take(int count) {
        return all(remote.await(remote.take(count)));
    }

    @Override
    public CompletableFuture<UUID[]> takeAsync(int count) {
        return remote.takeAsync(count, RemoteSequencer128::all);
    }

    @Override
    public List<String> takeText(int count, String format) {
        return remote.takeText(count, format);
    }

    @Override
    public void close() {
        remote.close();
    }
}
