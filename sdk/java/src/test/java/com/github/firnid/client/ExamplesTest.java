package com.github.firnid.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Compiles and runs examples/java, and checks that docs/java.md shows nothing else. */
class ExamplesTest {
    private static final Path ROOT = Path.of("../..");

    @Test
    void examplesRun(@TempDir Path dir) throws Exception {
        TestServer server = new TestServer(1);
        List<String> args = new ArrayList<>(List.of("-Xlint:all", "-Werror", "-d", dir.toString()));
        try (Stream<Path> files = Files.list(ROOT.resolve("examples/java"))) {
            for (Path file : files.sorted(Comparator.naturalOrder()).toList()) {
                if (file.toString().endsWith(".java")) {
                    // As it is, except for the address of the server.
                    Path copy = dir.resolve(file.getFileName());
                    Files.writeString(copy, Files.readString(file).replace("http://127.0.0.1:3476", server.url));
                    args.add(copy.toString());
                }
            }
        }
        assertEquals(0, ToolProvider.getSystemJavaCompiler().run(null, null, null, args.toArray(String[]::new)));
        try (server; URLClassLoader loader = new URLClassLoader(new URL[] {dir.toUri().toURL()})) {
            PrintStream out = System.out;
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
            try {
                method(loader, "Quickstart", "main", String[].class).invoke(null, (Object) new String[0]);
            } finally {
                System.setOut(out);
            }
            assertTrue(printed.toString(StandardCharsets.UTF_8).matches("[0-9]+\\R"), printed.toString(StandardCharsets.UTF_8));

            Class<?> test = loader.loadClass("OrdersTest");
            for (Method m : test.getDeclaredMethods()) {
                if (m.isAnnotationPresent(Test.class)) {
                    m.setAccessible(true);
                    var make = test.getDeclaredConstructor();
                    make.setAccessible(true);
                    m.invoke(make.newInstance());
                }
            }

            try (Client client = new Client(List.of(server.url))) {
                var service = (com.sun.net.httpserver.HttpServer)
                        method(loader, "Orders", "serve", Client.class, int.class).invoke(null, client, 0);
                URI uri = URI.create("http://127.0.0.1:" + service.getAddress().getPort() + "/orders");
                HttpRequest r = HttpRequest.newBuilder(uri).POST(HttpRequest.BodyPublishers.noBody()).build();
                String answer = HttpClient.newHttpClient().send(r, HttpResponse.BodyHandlers.ofString()).body();
                assertTrue(answer.matches("order [0-9]+"), answer);
                service.stop(0);
            }
        }
    }

    private static Method method(ClassLoader loader, String type, String name, Class<?>... parameters) throws Exception {
        Method m = loader.loadClass(type).getDeclaredMethod(name, parameters);
        m.setAccessible(true);
        return m;
    }

    /** Each line of a Java snippet is in an example, in the same order. */
    @Test
    void theDocumentationShowsExamples() throws Exception {
        StringBuilder all = new StringBuilder();
        for (Path dir : List.of(ROOT.resolve("examples/java"), ROOT.resolve("sdk/java/spring/src/test"))) {
            if (Files.exists(dir)) {
                try (Stream<Path> files = Files.walk(dir)) {
                    for (Path file : files.filter(f -> f.toString().endsWith(".java")).toList()) {
                        all.append(outdent(Files.readString(file))).append("\n");
                    }
                }
            }
        }
        Matcher snippets = Pattern.compile("(?s)```java\n(.*?)```").matcher(Files.readString(ROOT.resolve("docs/java.md")));
        int found = 0;
        while (snippets.find()) {
            found++;
            assertTrue(all.indexOf(outdent(snippets.group(1))) >= 0, "not in examples/java: " + snippets.group(1));
        }
        assertTrue(found > 3, "snippets: " + found);
    }

    private static String outdent(String code) {
        return code.replaceAll("(?m)^ +", "");
    }
}
