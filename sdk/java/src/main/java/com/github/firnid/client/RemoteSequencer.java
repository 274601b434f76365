package com.github.firnid.client;

import java.util.List;
import java.util.concurrent.CompletableFuture;

/** The 64-bit IDs of a sequencer on the servers. */
final class RemoteSequencer implements Sequencer {
    final Remote remote;
    private final Prefetch prefetch;

    RemoteSequencer(Remote remote) {
        this.remote = remote;
        this.prefetch = remote.prefetch;
    }

    Prefetch prefetch() {
        return prefetch;
    }

    @Override
    public String name() {
        return remote.name;
    }

    @Override
    public long next() {
        Block b = prefetch.block;
        long i = b.used.getAndIncrement();
        return i < b.limit ? b.ids.low((int) i) : slowly(b, i);
    }

    private long slowly(Block b, long i) {
        return prefetch.check(b, i) ? b.ids.low((int) i) : id(prefetch.take());
    }

    private static long id(Prefetch.Slot slot) {
        return slot.block().ids.low(slot.index());
    }

    private static long[] all(List<Ids> parts) {
        long[] all = new long[parts.stream().mapToInt(ids -> ids.size).sum()];
        int n = 0;
        for (Ids ids : parts) {
            for (int i = 0; i < ids.size; i++) {
                all[n++] = ids.low(i);
            }
        }
        return all;
    }

    @Override
    public CompletableFuture<Long> nextAsync() {
        return prefetch.takeAsync(RemoteSequencer::id);
    }

    @Override
    public long[] take(int count) {
        return all(remote.await(remote.take(count)));
    }

    @Override
    public CompletableFuture<long[]> takeAsync(int count) {
        return remote.takeAsync(count, RemoteSequencer::all);
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
