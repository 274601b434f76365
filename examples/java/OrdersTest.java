import static org.junit.jupiter.api.Assertions.assertEquals;

import com.github.firnid.client.FakeClient;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import org.junit.jupiter.api.Test;

class OrdersTest {
    @Test
    void ordersHaveIds() {
        Clock clock = Clock.fixed(Instant.parse("2026-11-20T12:00:00Z"), ZoneOffset.UTC);
        Orders orders = new Orders(new FakeClient(clock, 1));
        assertEquals("order 117232474521604097", orders.place());
        assertEquals("order 117232474521604098", orders.place());
    }
}
