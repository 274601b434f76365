package com.github.firnid.client;

import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;

/** The 128-bit IDs of a sequencer on the servers. */
final class RemoteSequencer128 extends Remote implements Sequencer128 {
    RemoteSequencer128(Core core, String name, Map<String, ?> all) {
        super(core, name, 2, all);
    }

    @Override
    public UUID next() {
        return id(prefetch.take());
    }

    private static UUID id(Prefetch.Slot slot) {
        return id(slot.block().ids, slot.index());
    }

    private static UUID id(long[] ids, int i) {
        return new UUID(ids[2 * i], ids[2 * i + 1]);
    }

    private static UUID[] all(List<long[]> parts) {
        return parts.stream()
                .flatMap(ids -> IntStream.range(0, ids.length / 2).mapToObj(i -> id(ids, i)))
                .toArray(UUID[]::new);
    }

    @Override
    public CompletableFuture<UUID> nextAsync() {
        return prefetch.takeAsync(RemoteSequencer128::id);
    }

    @Override
    public UUID[] take(int count) {
        return all(takeParts(count));
    }

    @Override
    public CompletableFuture<UUID[]> takeAsync(int count) {
        return takeAsync(count, RemoteSequencer128::all);
    }
}
