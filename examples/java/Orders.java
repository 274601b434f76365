import com.github.firnid.client.Client;
import com.github.firnid.client.FirnException;
import com.github.firnid.client.Sequencer;
import com.github.firnid.client.ServerException;
import com.github.firnid.client.UnavailableException;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** A web service: POST /orders answers with the ID of a new order. */
class Orders {
    private final Sequencer ids;

    Orders(Client client) {
        ids = client.sequencer("orders");
    }

    String place() {
        return "order " + ids.next();
    }

    CompletableFuture<String> placeAsync() {
        return ids.nextAsync().thenApply(id -> "order " + id);
    }

    String explain() {
        try {
            return place();
        } catch (UnavailableException e) {
            return "try later: " + e.getMessage(); // what each server said
        } catch (ServerException e) {
            return e.status() + " " + e.kind(); // such as 404 no-sequencer
        } catch (FirnException e) {
            return e.getMessage();
        }
    }

    static HttpServer serve(Client client, int port) throws IOException {
        Orders orders = new Orders(client);
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.createContext("/orders", request -> {
            byte[] answer = orders.place().getBytes(StandardCharsets.UTF_8);
            request.sendResponseHeaders(200, answer.length);
            request.getResponseBody().write(answer);
            request.close();
        });
        server.start();
        return server;
    }

    public static void main(String[] args) throws IOException {
        serve(new Client(List.of("http://127.0.0.1:3476")), 8080);
    }
}
