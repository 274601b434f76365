package com.github.firnid.client;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** The 64-bit IDs of a sequencer on the servers. */
final class RemoteSequencer extends Remote implements Sequencer {
    RemoteSequencer(Core core, String name, Map<String, ?> all) {
        super(core, name, 1, all);
    }

    @Override
    public long next() {
        Block b = prefetch.block;
        long i = b.used.getAndIncrement();
        return i < b.limit ? b.ids[(int) i] : slowly(b, i);
    }

    private long slowly(Block b, long i) {
        return prefetch.check(b, i) ? b.ids[(int) i] : id(prefetch.take());
    }

    private static long id(Prefetch.Slot slot) {
        return slot.block().ids[slot.index()];
    }

    private static long[] all(List<long[]> parts) {
        if (parts.size() == 1) {
            return parts.get(0);
        }
        long[] all = new long[parts.stream().mapToInt(ids -> ids.length).sum()];
        int n = 0;
        for (long[] ids : parts) {
            System.arraycopy(ids, 0, all, n, ids.length);
            n += ids.length;
        }
        return all;
    }

    @Override
    public CompletableFuture<Long> nextAsync() {
        return prefetch.takeAsync(RemoteSequencer::id);
    }

    @Override
    public long[] take(int count) {
        return all(takeParts(count));
    }

    @Override
    public CompletableFuture<long[]> takeAsync(int count) {
        return takeAsync(count, RemoteSequencer::all);
    }
}
