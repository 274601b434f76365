package com.github.firnid.spring;

import com.github.firnid.client.Client;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;
import org.springframework.boot.context.properties.ConfigurationProperties;

/**
 * The properties {@code firn.*}, which are options of {@link Client.Builder}. Those that are missing have the
 * defaults given there.
 *
 * @param servers the addresses of the servers, such as http://127.0.0.1:3476
 * @param token the token that authenticates the client
 * @param tokenFile the file with the token instead, read for each request
 * @param ca the PEM file with the authorities of the servers' certificates
 * @param timeout how long one request may take
 * @param patience how long a call may take, across all servers
 * @param validity the maximum age of an ID
 * @param firstBatch how many IDs are fetched at first
 * @param maxBatch how many IDs are fetched at most
 */
@ConfigurationProperties("firn")
public record FirnProperties(
        List<String> servers,
        String token,
        Path tokenFile,
        Path ca,
        Duration timeout,
        Duration patience,
        Duration validity,
        Integer firstBatch,
        Integer maxBatch) {

    /** Makes a client. */
    Client client() {
        if (servers == null || servers.isEmpty()) {
            throw new IllegalArgumentException(
                    "the property firn.servers is missing: name at least one server, such as http://127.0.0.1:3476");
        }
        if (token != null && tokenFile != null) {
            throw new IllegalArgumentException("both firn.token and firn.token-file are set: omit one of them");
        }
        Client.Builder b = Client.builder().servers(servers);
        set(token, b::token);
        set(tokenFile, file -> b.token(this::readToken));
        set(ca, b::ca);
        set(timeout, b::timeout);
        set(patience, b::patience);
        set(validity, b::validity);
        set(firstBatch, b::firstBatch);
        set(maxBatch, b::maxBatch);
        try {
            return b.build();
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException("properties firn.*: " + e.getMessage(), e);
        }
    }

    private static <T> void set(T value, Consumer<T> option) {
        if (value != null) {
            option.accept(value);
        }
    }

    private String readToken() {
        try {
            return Files.readString(tokenFile);
        } catch (IOException e) {
            throw new UncheckedIOException("firn.token-file " + tokenFile + ": " + e, e);
        }
    }
}
