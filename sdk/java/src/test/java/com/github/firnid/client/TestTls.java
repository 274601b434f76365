package com.github.firnid.client;

import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.util.ArrayList;
import java.util.List;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;

/** Makes certificates with the JDK's keytool. */
final class TestTls {
    private static final String PASSWORD = "password";

    private TestTls() {}

    /** Returns the context of a server for 127.0.0.1, and writes its certificate to a PEM file. */
    static SSLContext context(Path store, Path pem) throws Exception {
        keytool("-genkeypair", "-alias", "a", "-keyalg", "EC", "-dname", "CN=test", "-ext", "SAN=ip:127.0.0.1",
                "-keystore", store.toString(), "-storepass", PASSWORD);
        keytool("-exportcert", "-rfc", "-alias", "a", "-file", pem.toString(),
                "-keystore", store.toString(), "-storepass", PASSWORD);
        KeyStore keys = KeyStore.getInstance("PKCS12");
        try (InputStream in = Files.newInputStream(store)) {
            keys.load(in, PASSWORD.toCharArray());
        }
        KeyManagerFactory f = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        f.init(keys, PASSWORD.toCharArray());
        SSLContext c = SSLContext.getInstance("TLS");
        c.init(f.getKeyManagers(), null, null);
        return c;
    }

    private static void keytool(String... args) throws Exception {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "keytool").toString());
        command.addAll(List.of(args));
        Process p = new ProcessBuilder(command).redirectErrorStream(true).start();
        String text = new String(p.getInputStream().readAllBytes());
        if (p.waitFor() != 0) {
            throw new AssertionError(text);
        }
    }
}
