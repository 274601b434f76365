package com.github.firnid.client;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ServerSocketFactory;

/** A server whose answers a test writes, byte by byte. */
final class TestServer implements AutoCloseable {
    /** The head of a request. */
    record Request(String head, int count) {
        String header(String name) {
            Matcher m = Pattern.compile("(?im)^" + name + ": (.*?)\r?$").matcher(head);
            return m.find() ? m.group(1) : null;
        }
    }

    /** What a server does with a request. */
    interface Handler {
        byte[] answer(Request r) throws Exception;
    }

    final String url;
    final AtomicInteger requests = new AtomicInteger();
    final List<Request> seen = new ArrayList<>();
    volatile Handler handler = this::ids;
    volatile int cut = Integer.MAX_VALUE; // the connection is closed after so many bytes of an answer

    private final AtomicLong next;
    private final ServerSocket listener;
    final Set<Socket> open = ConcurrentHashMap.newKeySet();

    /** Starts a server whose IDs begin with node * 2^40 + 1. */
    TestServer(int node) {
        this(node, ServerSocketFactory.getDefault(), "http");
    }

    TestServer(int node, ServerSocketFactory factory, String scheme) {
        next = new AtomicLong((long) node << 40);
        try {
            listener = factory.createServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
        url = scheme + "://127.0.0.1:" + listener.getLocalPort();
        daemon(this::accept);
    }

    private static void daemon(Runnable r) {
        Thread t = new Thread(r, "test-server");
        t.setDaemon(true);
        t.start();
    }

    private void accept() {
        try {
            for (; ; ) {
                Socket s = listener.accept();
                open.add(s);
                daemon(() -> serve(s));
            }
        } catch (IOException e) {
            // closed
        }
    }

    private void serve(Socket s) {
        try (s) {
            s.setTcpNoDelay(true);
            InputStream in = new BufferedInputStream(s.getInputStream());
            for (; ; ) {
                ByteArrayOutputStream head = new ByteArrayOutputStream();
                while (!head.toString(StandardCharsets.ISO_8859_1).endsWith("\r\n\r\n")) {
                    int c = in.read();
                    if (c < 0) {
                        return;
                    } else if (c == 0x16) { // a TLS client
                        s.getOutputStream().write(http("400 Bad Request", "", new byte[0]));
                        return;
                    }
                    head.write(c);
                }
                String text = head.toString(StandardCharsets.ISO_8859_1);
                Matcher m = Pattern.compile("count=(\\d+)").matcher(text);
                Request r = new Request(text, m.find() ? Integer.parseInt(m.group(1)) : 0);
                requests.incrementAndGet();
                synchronized (seen) {
                    seen.add(r);
                }
                byte[] answer = handler.answer(r);
                s.getOutputStream().write(answer, 0, Math.min(answer.length, cut));
                s.getOutputStream().flush();
                if (answer.length > cut) {
                    return;
                }
            }
        } catch (SocketException e) {
            // closed
        } catch (Exception e) {
            System.err.println("test server: " + e);
        } finally {
            open.remove(s);
        }
    }

    /** Answers with the next IDs. */
    byte[] ids(Request r) {
        long first = next.getAndAdd(r.count());
        if (r.head().contains("&runs=true&format=hex ")) {
            return runs(r, String.format(
                    "{\"runs\":[{\"first\":\"%016x\",\"step\":\"1\",\"count\":%d}]}\n", first + 1, r.count()));
        }
        ByteBuffer b = ByteBuffer.allocate(8 * r.count());
        for (int i = 0; i < r.count(); i++) {
            b.putLong(first + i + 1);
        }
        return answer(r, b.array());
    }

    static byte[] answer(Request r, byte[] body) {
        return answer(r, "application/octet-stream", body);
    }

    static byte[] runs(Request r, String body) {
        return answer(r, "application/json", body.getBytes(StandardCharsets.US_ASCII));
    }

    private static byte[] answer(Request r, String type, byte[] body) {
        return http("200 OK", "Content-Type: " + type + "\r\nFirn-Nonce: " + r.header("Firn-Nonce") + "\r\n", body);
    }

    static byte[] problem(int status, String kind, String more) {
        String body = "{\"type\":\"urn:firn:problem:" + kind + "\",\"title\":\"T\",\"status\":" + status
                + ",\"detail\":\"the \\\"detail\\\" of " + kind + "\"}";
        return http(status + " X", "Content-Type: application/problem+json\r\n" + more, body.getBytes(StandardCharsets.UTF_8));
    }

    static byte[] http(String status, String headers, byte[] body) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        all.writeBytes(("HTTP/1.1 " + status + "\r\n" + headers + "Content-Length: " + body.length + "\r\n\r\n")
                .getBytes(StandardCharsets.ISO_8859_1));
        all.writeBytes(body);
        return all.toByteArray();
    }

    /** A handler that never answers, until the latch opens. */
    Handler hang(CountDownLatch until) {
        return r -> {
            until.await();
            return ids(r);
        };
    }

    @Override
    public void close() {
        try {
            listener.close();
            for (Socket s : open) {
                s.close();
            }
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }
}
