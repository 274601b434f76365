package com.github.firnid.client;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.TimeUnit;

/**
 * Bounds the calls that send requests at a time, and so the requests, connections and threads of each server.
 * The others wait in line. Fetches go first and have places of their own, because each is for many calls. The
 * lock of the Core guards it.
 */
final class Gate {
    private static final int TAKES = 10; // calls of take at a time
    private static final int MOST = 64;
    private static final long PAUSE = TimeUnit.MILLISECONDS.toNanos(10); // after a call that was given up

    private final Core core;
    private final Deque<Call<?>> fetches = new ArrayDeque<>();
    private final Deque<Call<?>> takes = new ArrayDeque<>();
    int inside;
    private int takesInside;
    private boolean admitting;
    private boolean reminded; // the timer is set

    Gate(Core core) {
        this.core = core;
    }

    /** Admits a call at once, or later if others wait. */
    void enter(Call<?> call) {
        Deque<Call<?>> line = call.isFetch ? fetches : takes;
        line.add(call);
        if (line.size() == 1) {
            admit(inside + 1);
        }
    }

    /**
     * Ends the stay of a call. The place stays free until an answer arrives or the timer runs: a program that
     * cancels many calls would cancel each call admitted here next, and so have sent a request for nothing.
     */
    void leave(Call<?> call) {
        count(call, -1);
        remind();
    }

    /** Admits all calls that there are places for, after an answer. */
    void admit() {
        admit(MOST);
    }

    private void count(Call<?> call, int change) {
        inside += change;
        takesInside += call.isFetch ? 0 : change;
        call.inside = change > 0;
    }

    /** Admits calls one by one until so many are inside: one that ends at once makes this call itself. */
    private void admit(int most) {
        if (admitting) {
            return;
        }
        admitting = true;
        try {
            for (Call<?> call; inside < most && (call = next()) != null; ) {
                if (!call.isOver() && !call.inside) {
                    count(call, 1);
                    call.step();
                }
            }
        } finally {
            admitting = false;
            remind();
        }
    }

    /**
     * Admits a call after the pause if there is a place, and so on. That needs no new thread, because the timers
     * of the calls in line keep theirs.
     */
    private void remind() {
        if (!reminded && (isFree(fetches) || isFree(takes))) {
            reminded = true;
            core.after(PAUSE, () -> {
                reminded = false;
                admit(inside + 1);
            });
        }
    }

    private boolean isFree(Deque<Call<?>> line) {
        return !line.isEmpty() && inside < MOST && (line == fetches || takesInside < TAKES);
    }

    private Call<?> next() {
        return isFree(fetches) ? fetches.poll() : isFree(takes) ? takes.poll() : null;
    }
}
