package com.github.firnid.spring;

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
            provider.writeValue(to, Texts.of(value));
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
