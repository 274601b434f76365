package com.github.firnid.client;

/** The clocks of the machine, or of a test. */
interface Clock {
    Clock SYSTEM = new Clock() {
        private static final long START = System.nanoTime();

        @Override
        public long nanos() {
            return System.nanoTime() - START;
        }

        @Override
        public long millis() {
            return System.currentTimeMillis();
        }
    };

    /** The nanoseconds that this program has run. On Linux, they stand still while the machine is suspended. */
    long nanos();

    /** The wall clock, which counts a suspend, and may jump. */
    long millis();
}
