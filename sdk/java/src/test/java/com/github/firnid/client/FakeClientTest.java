package com.github.firnid.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletionException;
import org.junit.jupiter.api.Test;

class FakeClientTest {
    private static Clock at(String time) {
        return Clock.fixed(Instant.parse(time), ZoneOffset.UTC);
    }

    @Test
    void idsOfTheDefaultLayout() {
        try (Client c = new FakeClient(at("2026-11-20T12:00:00Z"), 7)) {
            Sequencer orders = c.sequencer("orders");
            long first = orders.next();
            long time = Instant.parse("2026-11-20T12:00:00Z").toEpochMilli()
                    - Instant.parse("2026-01-01T00:00:00Z").toEpochMilli();
            assertEquals(time << 22 | 7 << 12 | 1, first);
            assertNotEquals(first, (long) (double) first, "a test notices rounding");
            assertEquals(first + 1, orders.next());
            assertEquals(List.of(Long.toString(first + 2)), orders.takeText(1, "dec"));
            for (int i = 4; i < 4096; i++) {
                orders.next();
            }
            assertEquals(time + 1 << 22 | 7 << 12, orders.next()); // the next millisecond
            assertEquals(first, c.sequencer("invoices").next());
        }
    }

    @Test
    void wideIds() {
        try (Client c = new FakeClient(at("2026-11-20T12:00:00Z"), 7)) {
            UUID id = c.sequencer128("orders").next();
            assertEquals(7, id.version());
            assertEquals(2, id.variant());
            assertEquals(Instant.parse("2026-11-20T12:00:00Z").toEpochMilli(), id.getMostSignificantBits() >>> 16);
            UUID[] more = c.sequencer128("orders").take(2);
            assertEquals(-1, Integer.signum(more[0].compareTo(more[1])));
        }
    }

    @Test
    void failures() {
        FakeClient c = new FakeClient(at("2026-11-20T12:00:00Z"), 7);
        c.failNext(2);
        Sequencer orders = c.sequencer("orders");
        assertThrows(UnavailableException.class, orders::next);
        assertThrows(CompletionException.class, () -> orders.nextAsync().join());
        orders.next();
        assertEquals(3, orders.takeAsync(3).join().length);
    }

    @Test
    void closedAndInvalid() {
        FakeClient c = new FakeClient(at("2026-11-20T12:00:00Z"), 0);
        Sequencer orders = c.sequencer("orders");
        c.close();
        assertThrows(ClosedException.class, orders::next);
        assertThrows(IllegalArgumentException.class, () -> new FakeClient(Clock.systemUTC(), 1024));
        Client early = new FakeClient(at("2025-01-01T00:00:00Z"), 0);
        assertThrows(IllegalStateException.class, () -> early.sequencer("orders").next());
        assertThrows(CompletionException.class, () -> early.sequencer("orders").nextAsync().join());
    }
}
