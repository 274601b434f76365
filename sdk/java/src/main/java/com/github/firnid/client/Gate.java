package com.github.firnid.client;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.Consumer;

/**
 * Bounds the calls that send requests at a time, and so the requests, connections and threads of each server.
 * The others wait in line. Fetches go first and have places of their own, because each is for many calls.
 */
final class Gate {
    private static final int TAKES = 10; // calls of take at a time
    private static final int MOST = 64;

    private final Consumer<Runnable> later;
    private final Deque<Call<?>> fetches = new ArrayDeque<>();
    private final Deque<Call<?>> takes = new ArrayDeque<>();
    private int inside;
    private int takesInside;

    /**
     * @param later runs a task in another thread, so that the thread of a request is free for the next one
     */
    Gate(Consumer<Runnable> later) {
        this.later = later;
    }

    /** Admits a call at once or later. */
    void enter(Call<?> call) {
        synchronized (this) {
            (call.isFetch ? fetches : takes).add(call);
        }
        admit();
    }

    /** Ends the stay of a call. */
    synchronized void leave(Call<?> call) {
        inside--;
        takesInside -= call.isFetch ? 0 : 1;
        if (!fetches.isEmpty() || !takes.isEmpty()) {
            later.accept(this::admit);
        }
    }

    private void admit() {
        for (Call<?> next; (next = next()) != null; ) {
            next.advance();
        }
    }

    private synchronized Call<?> next() {
        for (; ; ) {
            Call<?> next = inside < MOST ? fetches.poll() : null;
            if (next == null && inside < MOST && takesInside < TAKES) {
                next = takes.poll();
            }
            if (next == null) {
                return null;
            } else if (next.admit()) { // it has not ended in line
                inside++;
                takesInside += next.isFetch ? 0 : 1;
                return next;
            }
        }
    }
}
