package com.github.firnid.client;

import java.net.ProtocolException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.List;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The formats of answers. Anything other than exactly the requested number of IDs is an error. */
final class Formats {
    /** A run, and what follows it. Newer servers may add members. */
    private static final Pattern RUN = Pattern.compile("(?:\\A\\{\"runs\":\\[|\\G(?!\\A))"
            + "\\{\"first\":\"([0-9a-f]{16}|[0-9a-f]{32})\",\"step\":\"([1-9][0-9]{0,18})\",\"count\":([1-9][0-9]{0,5})(?:,[^{}]*)?\\}"
            + "(,|\\](?:,[^{}]*)?\\}\\s*\\z)");

    private Formats() {}

    /** Runs of IDs with 64 bits. Layouts with random bits have none. */
    static Transport.Format<Ids> runs(Transport.Format<Ids> packed, Predicate<Ids> isRepeat) {
        return new Transport.Format<>() {
            @Override
            public String query() {
                return "&runs=true&format=hex";
            }

            @Override
            public String accept() {
                return "application/json";
            }

            @Override
            public int most() {
                return 128;
            }

            @Override
            public Transport.Format<Ids> fallback() {
                return packed;
            }

            @Override
            public Ids read(byte[] answer, int count) throws ProtocolException {
                Ids ids = parse(new String(answer, StandardCharsets.US_ASCII), count);
                check(ids, isRepeat);
                return ids;
            }
        };
    }

    private static Ids parse(String answer, int count) throws ProtocolException {
        NavigableMap<Integer, Ids.Run> runs = new TreeMap<>();
        int size = 0;
        Matcher m = RUN.matcher(answer);
        for (boolean more = true; more; more = m.group(4).equals(",")) {
            if (!m.find()) {
                throw new ProtocolException("its runs cannot be read: " + Transport.quote(answer));
            }
            if (m.group(1).length() > 16) {
                throw wrongWidth(2);
            }
            int end = size + Integer.parseInt(m.group(3));
            if (end > count) {
                throw new ProtocolException("it has more IDs than the " + count + " requested");
            }
            long first = Long.parseUnsignedLong(m.group(1), 16);
            long step = Long.parseUnsignedLong(m.group(2));
            if (Long.compareUnsigned(end - size - 1, Long.divideUnsigned(-1 - first, step)) > 0) {
                throw new ProtocolException("a run exceeds the greatest ID");
            }
            runs.put(size, new Ids.Run(size, end, first, step));
            size = end;
        }
        if (size < count) {
            throw new ProtocolException("it has " + size + " IDs, not the " + count + " requested");
        }
        return new Ids.Runs(runs);
    }

    /** IDs of 8 or 16 bytes, big-endian, with nothing between them. */
    static Transport.Format<Ids> packed(int width, Predicate<Ids> isRepeat) {
        return new Transport.Format<>() {
            @Override
            public String query() {
                return "";
            }

            @Override
            public String accept() {
                return "application/octet-stream";
            }

            @Override
            public int most() {
                return 16;
            }

            @Override
            public Ids read(byte[] answer, int count) throws ProtocolException {
                if (answer.length == 8 * (3 - width) * count) {
                    throw wrongWidth(3 - width);
                }
                if (answer.length != 8 * width * count) {
                    throw new ProtocolException("it has " + answer.length + " bytes, not the " + 8 * width * count
                            + " of " + count + " IDs of " + 64 * width + " bits");
                }
                long[] longs = new long[width * count];
                ByteBuffer.wrap(answer).asLongBuffer().get(longs);
                Ids ids = new Ids.Packed(longs, width);
                check(ids, isRepeat);
                return ids;
            }
        };
    }

    private static ProtocolException wrongWidth(int width) {
        return new ProtocolException("the sequencer has IDs of " + 64 * width + " bits: use the method "
                + (width == 1 ? "sequencer" : "sequencer128") + " of the client");
    }

    private static void check(Ids ids, Predicate<Ids> isRepeat) throws ProtocolException {
        if (!ids.ascend()) {
            Set<UUID> seen = new HashSet<>();
            for (int i = 0; i < ids.size; i++) {
                if (ids.high(i) == 0 && ids.low(i) == 0) {
                    throw new ProtocolException("it has the ID 0, which is never made");
                }
                if (!seen.add(new UUID(ids.high(i), ids.low(i)))) {
                    throw new ProtocolException("it contains an ID twice");
                }
            }
        }
        if (isRepeat.test(ids)) {
            throw new ProtocolException("it begins with the same ID as the previous one: something between"
                    + " this program and the server caches answers");
        }
    }

    /** IDs as text, each followed by a newline. */
    static Transport.Format<List<String>> text(String format) {
        if (!format.matches("[a-z0-9]+") || format.equals("raw")) {
            throw new IllegalArgumentException(
                    "format is \"" + format + "\": it must be dec, hex, bin, uuid, typed, veiled, base2 to base62, or flake2 to flake62");
        }
        return new Transport.Format<>() {
            @Override
            public String query() {
                return "&format=" + format;
            }

            @Override
            public String accept() {
                return "text/plain";
            }

            @Override
            public int most() {
                return 129; // 128 bits in base 2, and the newline
            }

            @Override
            public List<String> read(byte[] answer, int count) throws ProtocolException {
                String all = new String(answer, StandardCharsets.US_ASCII);
                List<String> ids = List.of(all.split("\n", -1));
                if (ids.size() != count + 1 || !ids.get(count).isEmpty()) {
                    throw new ProtocolException("it has not the " + count + " lines of the requested IDs");
                }
                ids = ids.subList(0, count);
                if (Set.copyOf(ids).size() != count || ids.contains("")) {
                    throw new ProtocolException("it has an empty line, or contains an ID twice");
                }
                return ids;
            }
        };
    }
}
