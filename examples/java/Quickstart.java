import com.github.firnid.client.Client;
import java.util.List;

class Quickstart {
    public static void main(String[] args) {
        try (Client client = new Client(List.of("http://127.0.0.1:3476"))) {
            var orders = client.sequencer("orders");
            System.out.println(orders.next());
        }
    }
}
