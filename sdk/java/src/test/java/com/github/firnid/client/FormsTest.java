package com.github.firnid.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** The vectors and examples are those that the Go packages typed and veil pass. */
class FormsTest {
    private static final byte[] KEY = new byte[32];

    /** Reads the objects of a file that has one per line. */
    private static List<Map<String, String>> objects(String file) throws Exception {
        List<Map<String, String>> all = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of("../..").resolve(file))) {
            Map<String, String> members = new HashMap<>();
            Matcher m = Pattern.compile("\"(\\w+)\":\\s*(?:\"([^\"]*)\"|(\\d+))").matcher(line);
            while (m.find()) {
                members.put(m.group(1), m.group(2) != null ? m.group(2) : m.group(3));
            }
            if (line.strip().startsWith("{\"")) {
                all.add(members);
            }
        }
        return all;
    }

    @Test
    void typeIds() throws Exception {
        int valid = 0;
        int invalid = 0;
        for (Map<String, String> x : objects("typed/testdata/typeid.json")) {
            String text = x.get("typeid");
            if (x.containsKey("uuid")) {
                valid++;
                assertEquals(text, TypedId.format(x.get("prefix"), UUID.fromString(x.get("uuid"))));
                assertEquals(UUID.fromString(x.get("uuid")), TypedId.parse128(x.get("prefix"), text));
            } else {
                invalid++;
                String prefix = text.substring(0, Math.max(0, text.lastIndexOf('_')));
                assertThrows(IllegalArgumentException.class, () -> TypedId.parse128(prefix, text), x.get("name"));
            }
        }
        assertEquals(List.of(9, 19), List.of(valid, invalid));
    }

    @Test
    void typedIds() {
        assertEquals("order_03887nf7a8003", TypedId.format("order", 117383499776000003L));
        for (long id : new long[] {0, 1, 117383499776000003L, Long.MAX_VALUE, -1}) {
            assertEquals(id, TypedId.parse("order", TypedId.format("order", id)));
            assertEquals(id, TypedId.parse("", TypedId.format("", id)));
        }
        typed("order_03887Nf7a8003", "\"N\" at offset 11 is in upper case; it may mean 'n'");
        typed("order_o388r6f3g1w03", "\"o\" at offset 6 is not a digit; it may mean '0'");
        typed("order_0388r6f3gIw03", "\"I\" at offset 15 is not a digit; it may mean '1'");
        typed("order_0388r6f3guw03", "\"u\" at offset 15 is not a digit; it may mean 'v'");
        typed("order_0388r6f3g-w03", "is not a digit; digits are 0123456789abcdefghjkmnpqrstvwxyz");
        typed("order_0388r6f3g1w0", "it has 12 digits after the prefix, not the 13 of 64 bits");
        typed("order_", "it has 0 digits");
        typed("order_g000000000000", "'g' at offset 6 is more than 'f': the number does not fit 64 bits");
        typed("order_00000000000000000000000000", "it has 26 digits");
        typed("Order_0388r6f3g1w03", "the prefix \"Order\" is invalid");
        typed("order__0388r6f3g1w03", "the prefix \"order_\" is invalid");
        typed("_0388r6f3g1w03", "the prefix \"\" is invalid");
        typed("0388r6f3g1w03", "its prefix is \"\", not \"order\"");
        typed("user_0388r6f3g1w03", "its prefix is \"user\", not \"order\"");
        fails("the prefix \"a1\" is invalid", () -> TypedId.format("a1", 1));
        fails("8' at offset 6 is more than '7'", () -> TypedId.parse128("order", "order_8" + "0".repeat(25)));
    }

    private static void typed(String text, String want) {
        fails(want, () -> TypedId.parse("order", text));
    }

    private static void fails(String want, Executable call) {
        String got = assertThrows(IllegalArgumentException.class, call).getMessage();
        assertTrue(got.contains(want), "got " + got + ", want " + want);
    }

    @Test
    void veiledVectors() throws Exception {
        List<Map<String, String>> all = objects("veil/testdata/vectors.json");
        assertEquals(200, all.size());
        for (Map<String, String> v : all) {
            int bits = Integer.parseInt(v.get("bits"));
            Map<Integer, byte[]> keys = Veil.parseKeys(v.get("number") + ": " + v.get("key") + "\n");
            Veil veil = new Veil(keys, v.get("sequencer"), bits);
            String text = v.get("text");
            if (bits == 122) {
                UUID id = UUID.fromString(v.get("id"));
                UUID veiled = UUID.fromString(v.get("veiled"));
                assertEquals(List.of(veiled, id, text, id),
                        List.of(veil.veil(id), veil.unveil(veiled), veil.format(id), veil.parse128(text)), v.toString());
            } else {
                long id = Long.parseUnsignedLong(v.get("id"));
                long veiled = Long.parseUnsignedLong(v.get("veiled"));
                assertEquals(List.of(veiled, id, text, id),
                        List.of(veil.veil(id), veil.unveil(veiled), veil.format(id), veil.parse(text)), v.toString());
            }
        }
    }

    @Test
    void veiledErrors() {
        Veil veil = new Veil(Map.of(1, KEY, 3, KEY), "orders", 63);
        Veil one = new Veil(Map.of(1, KEY), "orders", 63);
        Veil wide = new Veil(Map.of(1, KEY), "orders", 122);
        assertTrue(veil.format(1).startsWith("v3_"));
        assertEquals(1, veil.parse(one.format(1)));
        assertThrows(IllegalStateException.class, () -> veil.veil(1));
        fails("ID 0 is outside of 1 to 9223372036854775807", () -> one.veil(0));
        fails("veiled ID 9223372036854775808 is outside", () -> one.unveil(Long.MIN_VALUE));
        fails("the ID has 128 bits, but this veil is for 63", () -> one.veil(new UUID(0x7000, Long.MIN_VALUE)));
        fails("the ID has 64 bits, but this veil is for 122", () -> wide.veil(1));
        fails("is not a UUID of version 7", () -> wide.veil(new UUID(1, 0)));
        fails("is not a UUID of version 8", () -> wide.unveil(new UUID(0x7000, Long.MIN_VALUE)));
        fails("no bits besides version and variant", () -> wide.veil(new UUID(0x7000, Long.MIN_VALUE)));
        fails("does not begin with v", () -> veil.parse("order_03887nf7a8003"));
        fails("does not begin with v", () -> veil.parse("v03_03887nf7a8003"));
        fails("was veiled with key 2, and this key is not known", () -> veil.parse("v2_03887nf7a8003"));
        fails("\"N\" at offset 8 is in upper case", () -> veil.parse("v3_03887Nf7a8003"));
        fails("it has 26 digits", () -> veil.parse("v3_00000000000000000000000001"));
        fails("bits is 62", () -> new Veil(Map.of(1, KEY), "orders", 62));
        fails("there is no key", () -> new Veil(Map.of(), "orders", 63));
        fails("the number of a key is 0", () -> new Veil(Map.of(0, KEY), "orders", 63));
        fails("the key has 15 bytes", () -> new Veil(Map.of(1, new byte[15]), "orders", 63));
    }

    @Test
    void keys() {
        String key = "0a".repeat(16);
        assertEquals(List.of(1, 2), List.copyOf(Veil.parseKeys("# keys\n\n" + key + "\r\n2: " + "F1".repeat(32)).keySet()));
        assertEquals(key, HexFormat.of().formatHex(Veil.parseKeys(key).get(1)));
        for (String bad : List.of("secret", "1:" + key.substring(2), "0:" + key, "01:" + key, "10000:" + key, key + "\n1:" + key)) {
            String got = assertThrows(IllegalArgumentException.class, () -> Veil.parseKeys(bad), bad).getMessage();
            assertFalse(got.contains("secret") || got.contains("0a0a"), got);
        }
    }
}
