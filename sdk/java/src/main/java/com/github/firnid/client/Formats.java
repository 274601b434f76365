package com.github.firnid.client;

import java.net.ProtocolException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.function.Predicate;

/** The formats of answers. Anything other than exactly the requested number of IDs is an error. */
final class Formats {
    private Formats() {}

    /** IDs of 8 or 16 bytes, big-endian, with nothing between them. */
    static Transport.Format<long[]> packed(int width, Predicate<long[]> isRepeat) {
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
            public long[] read(byte[] answer, int count) throws ProtocolException {
                if (answer.length == 8 * (3 - width) * count) {
                    String method = width == 1 ? "sequencer128" : "sequencer";
                    throw new ProtocolException("the sequencer has IDs of " + 64 * (3 - width)
                            + " bits: use the method " + method + " of the client");
                }
                if (answer.length != 8 * width * count) {
                    throw new ProtocolException("it has " + answer.length + " bytes, not the " + 8 * width * count
                            + " of " + count + " IDs of " + 64 * width + " bits");
                }
                long[] ids = new long[width * count];
                ByteBuffer.wrap(answer).asLongBuffer().get(ids);
                checkDistinct(ids, width);
                if (isRepeat.test(ids)) {
                    throw new ProtocolException("it begins with the same ID as the previous one: something between"
                            + " this program and the server caches answers");
                }
                return ids;
            }
        };
    }

    private static void checkDistinct(long[] ids, int width) throws ProtocolException {
        boolean ascend = true;
        for (int i = 0; i < ids.length; i += width) {
            if (ids[i] == 0 && ids[i + width - 1] == 0) {
                throw new ProtocolException("it has the ID 0, which is never made");
            }
            ascend &= i == 0 || compare(ids, i - width, i, width) < 0;
        }
        if (ascend) {
            return; // as in most layouts
        }
        Set<UUID> seen = new HashSet<>();
        for (int i = 0; i < ids.length; i += width) {
            if (!seen.add(new UUID(ids[i], ids[i + width - 1]))) {
                throw new ProtocolException("it contains an ID twice");
            }
        }
    }

    private static int compare(long[] ids, int a, int b, int width) {
        int high = Long.compareUnsigned(ids[a], ids[b]);
        return high != 0 ? high : Long.compareUnsigned(ids[a + width - 1], ids[b + width - 1]);
    }

    /** IDs as text, each followed by a newline. */
    static Transport.Format<List<String>> text(String format) {
        if (!format.matches("[a-z0-9]+") || format.equals("raw")) {
            throw new IllegalArgumentException(
                    "format is \"" + format + "\": it must be dec, hex, bin, uuid, or base2 to base62");
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
