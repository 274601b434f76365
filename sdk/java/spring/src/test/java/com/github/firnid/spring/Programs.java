package com.github.firnid.spring;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** Starts a real PostgreSQL and a real Firn server. */
final class Programs implements AutoCloseable {
    private final List<Process> running = new ArrayList<>();
    private final Path dir;

    Programs(Path dir) {
        this.dir = dir;
    }

    /** Returns the path of a program of PostgreSQL, where Debian puts them too. */
    static Optional<Path> postgres(String program) throws IOException {
        List<Path> places = new ArrayList<>();
        for (String p : System.getenv("PATH").split(":")) {
            places.add(Path.of(p));
        }
        Path debian = Path.of("/usr/lib/postgresql");
        if (Files.isDirectory(debian)) {
            try (Stream<Path> versions = Files.list(debian)) {
                versions.sorted().forEach(v -> places.add(v.resolve("bin")));
            }
        }
        return places.stream().map(p -> p.resolve(program)).filter(Files::isExecutable).findFirst();
    }

    static boolean hasPostgres() throws IOException {
        return postgres("initdb").isPresent() && postgres("postgres").isPresent();
    }

    static boolean hasFirn() {
        return System.getenv("FIRN_PROGRAM") != null || System.getenv("FIRN_URL") != null;
    }

    /** Starts PostgreSQL, as the user postgres if this one is root, and returns its JDBC URL. */
    String startPostgres() throws Exception {
        List<String> as = System.getProperty("user.name").equals("root")
                ? List.of("runuser", "-u", "postgres", "--")
                : List.of();
        Path home = Files.createDirectory(dir.resolve("postgres"));
        if (!as.isEmpty()) {
            for (Path p = home; p != null && !p.equals(Path.of("/tmp")); p = p.getParent()) {
                p.toFile().setExecutable(true, false);
            }
            home.toFile().setWritable(true, false);
            home.toFile().setReadable(true, false);
        }
        String data = home.resolve("data").toString();
        run(as, postgres("initdb").orElseThrow().toString(), "-D", data, "-U", "postgres", "-A", "trust", "--no-sync");
        int port;
        try (ServerSocket free = new ServerSocket(0)) {
            port = free.getLocalPort();
        }
        Process p = start(as, postgres("postgres").orElseThrow().toString(),
                "-D", data, "-h", "127.0.0.1", "-p", "" + port, "-k", home.toString(), "-F");
        await(p, Pattern.compile("database system is ready to accept connections"));
        return "jdbc:postgresql://127.0.0.1:" + port + "/postgres";
    }

    /** Returns the URL of a Firn server. */
    String startFirn() throws Exception {
        if (System.getenv("FIRN_PROGRAM") == null) {
            return System.getenv("FIRN_URL");
        }
        Process p = start(List.of(), System.getenv("FIRN_PROGRAM"), "serve",
                "--store", "dir:" + dir.resolve("store") + "?create=true", "--listen", "127.0.0.1:0");
        return await(p, Pattern.compile("msg=serving url=(\\S+)")).group(1);
    }

    private Process start(List<String> as, String... command) throws IOException {
        List<String> all = new ArrayList<>(as);
        all.addAll(List.of(command));
        ProcessBuilder b = new ProcessBuilder(all).redirectErrorStream(true).directory(Path.of("/").toFile());
        b.environment().put("XDG_STATE_HOME", dir.toString());
        Process p = b.start();
        running.add(p);
        return p;
    }

    private void run(List<String> as, String... command) throws Exception {
        Process p = start(as, command);
        String text = new String(p.getInputStream().readAllBytes());
        if (p.waitFor() != 0) {
            throw new IOException(text);
        }
        running.remove(p);
    }

    /** Waits for a line of the output, and discards the rest. */
    private static Matcher await(Process p, Pattern line) throws IOException {
        BufferedReader out = new BufferedReader(new InputStreamReader(p.getInputStream()));
        StringBuilder all = new StringBuilder();
        for (String text; (text = out.readLine()) != null; ) {
            all.append(text).append('\n');
            Matcher m = line.matcher(text);
            if (m.find()) {
                Thread drain = new Thread(() -> out.lines().forEach(l -> {}));
                drain.setDaemon(true);
                drain.start();
                return m;
            }
        }
        throw new IOException(all.toString());
    }

    @Override
    public void close() {
        for (Process p : running) {
            p.descendants().forEach(ProcessHandle::destroy);
            p.destroy();
            p.onExit().completeOnTimeout(p, 20, TimeUnit.SECONDS).join();
        }
    }
}
