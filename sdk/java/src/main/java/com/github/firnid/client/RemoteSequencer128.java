package com.github.firnid.client;

import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;

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

    private static UUID[] all(Ids ids) {
        UUID[] all = new UUID[ids.size];
        for (int i = 0; i < all.length; i++) {
            all[i] = id(ids, i);
        }
        return all;
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
        return remote.await(remote.takeText(count, format));
    }

    @Override
    public void close() {
        remote.close();
    }
}
