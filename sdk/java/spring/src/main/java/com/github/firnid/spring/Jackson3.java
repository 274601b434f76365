package com.github.firnid.spring;

import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import tools.jackson.core.JsonGenerator;
import tools.jackson.core.JsonParser;
import tools.jackson.databind.BeanProperty;
import tools.jackson.databind.DeserializationContext;
import tools.jackson.databind.JavaType;
import tools.jackson.databind.SerializationContext;
import tools.jackson.databind.ValueDeserializer;
import tools.jackson.databind.ValueSerializer;

/** Writes and reads the fields of {@link FirnText} and {@link FirnId} with Jackson 3. */
final class Jackson3 {
    private Jackson3() {}

    /** Writes longs as unsigned text, also those of containers. */
    static final class Writer extends ValueSerializer<Object> {
        @Override
        public void serialize(Object value, JsonGenerator to, SerializationContext provider) {
            if (value instanceof Long id) {
                to.writeString(Long.toUnsignedString(id));
            } else if (value instanceof OptionalLong id) {
                serialize(id.isPresent() ? id.getAsLong() : null, to, provider);
            } else if (value instanceof Optional<?> some) {
                serialize(some.orElse(null), to, provider);
            } else if (value instanceof long[] ids) {
                to.writeStartArray();
                for (long id : ids) {
                    serialize(id, to, provider);
                }
                to.writeEndArray();
            } else if (value instanceof Object[] some) {
                serialize(java.util.Arrays.asList(some), to, provider);
            } else if (value instanceof Iterable<?> some) {
                to.writeStartArray();
                for (Object one : some) {
                    serialize(one, to, provider);
                }
                to.writeEndArray();
            } else if (value instanceof Map<?, ?> some) {
                to.writeStartObject();
                for (Map.Entry<?, ?> e : some.entrySet()) {
                    to.writeName(String.valueOf(e.getKey()));
                    serialize(e.getValue(), to, provider);
                }
                to.writeEndObject();
            } else if (value == null) {
                to.writeNull();
            } else {
                provider.writeValue(to, value);
            }
        }
    }

    /** Reads an unsigned number. */
    static class One extends ValueDeserializer<Object> {
        @Override
        public Object deserialize(JsonParser from, DeserializationContext context) {
            String text = from.getValueAsString("");
            try {
                return Long.parseUnsignedLong(text);
            } catch (NumberFormatException e) {
                return context.handleWeirdStringValue(Long.class, text, "it is not an ID");
            }
        }
    }

    /** Reads unsigned numbers, also those of containers. Other fields are read as usual. */
    static final class Reader extends One {
        @Override
        public ValueDeserializer<?> createContextual(DeserializationContext context, BeanProperty property) {
            JavaType type = property == null ? context.getContextualType() : property.getType();
            if (type == null || type.hasRawClass(Long.class) || type.hasRawClass(long.class)) {
                return this;
            }
            JavaType content = type.getContentType();
            boolean boxed = content != null && content.hasRawClass(Long.class);
            return context.findContextualValueDeserializer(boxed ? type.withContentValueHandler(new One()) : type, property);
        }
    }
}
