import com.github.firnid.client.Client;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

class Production {
    static Client client() {
        return Client.builder()
                .servers(List.of("https://firn-0.example:3476", "https://firn-1.example:3476"))
                .token(() -> read(Path.of("/run/secrets/firn-token")))
                .ca(Path.of("/etc/firn/ca.pem"))
                .patience(Duration.ofSeconds(3))
                .build();
    }

    /** The token is read for each request, so a new one needs no restart. */
    static String read(Path file) {
        try {
            return Files.readString(file).strip();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
