package com.github.firnid.client;

import java.util.NavigableMap;

/** The IDs of an answer, in the order in which they are handed out. */
abstract class Ids {
    final int size;

    private Ids(int size) {
        this.size = size;
    }

    /** Returns the ID at an index, or its lower 64 bits. */
    abstract long low(int i);

    /** Returns the upper 64 bits of the ID at an index. */
    abstract long high(int i);

    /** Whether each ID is greater than the previous one, and the first is not 0, as in most layouts. */
    abstract boolean ascend();

    /** IDs one by one, of one or two longs. */
    static final class Packed extends Ids {
        private final long[] longs;
        private final int width;

        Packed(long[] longs, int width) {
            super(longs.length / width);
            this.longs = longs;
            this.width = width;
        }

        @Override
        long low(int i) {
            return longs[width * i + width - 1];
        }

        @Override
        long high(int i) {
            return width == 1 ? 0 : longs[width * i];
        }

        @Override
        boolean ascend() {
            long high = 0;
            long low = 0;
            for (int i = 0; i < size; i++) {
                int order = Long.compareUnsigned(high, high(i));
                if (order > 0 || order == 0 && Long.compareUnsigned(low, low(i)) >= 0) {
                    return false;
                }
                high = high(i);
                low = low(i);
            }
            return true;
        }
    }

    /** IDs from the index begin up to the index end that increase by a step. */
    record Run(int begin, int end, long first, long step) {
        long id(int i) {
            return first + step * (i - begin);
        }
    }

    /** IDs of 64 bits in runs. */
    static final class Runs extends Ids {
        private final NavigableMap<Integer, Run> runs; // by their begin
        private Run current; // a guess; threads may overwrite each other's

        Runs(NavigableMap<Integer, Run> runs) {
            super(runs.lastEntry().getValue().end);
            this.runs = runs;
            this.current = runs.firstEntry().getValue();
        }

        @Override
        long low(int i) {
            Run r = current;
            if (i < r.begin || i >= r.end) {
                r = runs.floorEntry(i).getValue();
                current = r;
            }
            return r.id(i);
        }

        @Override
        long high(int i) {
            return 0;
        }

        @Override
        boolean ascend() {
            long last = 0;
            for (Run r : runs.values()) {
                if (Long.compareUnsigned(last, r.first) >= 0) {
                    return false;
                }
                last = r.id(r.end - 1);
            }
            return true;
        }
    }
}
