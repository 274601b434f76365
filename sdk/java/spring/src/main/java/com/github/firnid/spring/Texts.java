package com.github.firnid.spring;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/** What both generations of Jackson write for the fields of {@link FirnText} and {@link FirnId}. */
final class Texts {
    private Texts() {}

    /** Returns a value in which numbers are text, also those of containers; a long is unsigned. Other values stay. */
    static Object of(Object value) {
        if (value instanceof Long id) {
            return Long.toUnsignedString(id);
        } else if (value instanceof Number number) {
            return number.toString();
        } else if (value instanceof OptionalLong id) {
            return id.isPresent() ? of(id.getAsLong()) : null;
        } else if (value instanceof Optional<?> some) {
            return of(some.orElse(null));
        } else if (value instanceof long[] ids) {
            return Arrays.stream(ids).mapToObj(Long::toUnsignedString).toList();
        } else if (value instanceof Object[] some) {
            return of(Arrays.asList(some));
        } else if (value instanceof Iterable<?> some) {
            List<Object> all = new ArrayList<>();
            some.forEach(one -> all.add(of(one)));
            return all;
        } else if (value instanceof Map<?, ?> some) {
            Map<String, Object> all = new LinkedHashMap<>();
            some.forEach((key, one) -> all.put(String.valueOf(of(key)), of(one)));
            return all;
        }
        return value;
    }

    /** Whether Jackson leaves out the value of a field that must not be empty. */
    static boolean isEmpty(Object value) {
        Object text = of(value);
        return text == null || text.equals("") || text.equals(List.of()) || text.equals(Map.of());
    }
}
