package com.github.firnid.client;

import java.util.ArrayDeque;
import java.util.Deque;

/**
 * Bounds the calls that send requests at a time, and so the requests, connections and threads of each server.
 * The others wait in line. Fetches go first and have places of their own, because each is for many calls. The
 * lock of the Core guards it.
 */
final class Gate {
    private static final int TAKES = 10; // calls of take at a time
    private static final int MOST = 64;

    private final Deque<Call<?>> fetches = new ArrayDeque<>();
    private final Deque<Call<?>> takes = new ArrayDeque<>();
    private int inside;
    private int takesInside;
    private boolean admitting;

    /** Admits a call at once or later. */
    void enter(Call<?> call) {
        (call.isFetch ? fetches : takes).add(call);
        admit();
    }

    /** Ends the stay of a call. */
    void leave(Call<?> call) {
        count(call, -1);
        admit();
    }

    private void count(Call<?> call, int change) {
        inside += change;
        takesInside += call.isFetch ? 0 : change;
        call.inside = change > 0;
    }

    /** Admits calls one by one: one that ends at once makes this call itself. */
    private void admit() {
        if (admitting) {
            return;
        }
        admitting = true;
        try {
            for (Call<?> call; (call = next()) != null; ) {
                if (!call.result.isDone() && !call.inside) {
                    count(call, 1);
                    call.step();
                }
            }
        } finally {
            admitting = false;
        }
    }

    private Call<?> next() {
        Call<?> fetch = inside < MOST ? fetches.poll() : null;
        return fetch == null && inside < MOST && takesInside < TAKES ? takes.poll() : fetch;
    }
}
