package com.github.firnid.spring;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.BeanProperty;
import com.fasterxml.jackson.databind.DeserializationContext;
import com.fasterxml.jackson.databind.JavaType;
import com.fasterxml.jackson.databind.JsonDeserializer;
import com.fasterxml.jackson.databind.JsonMappingException;
import com.fasterxml.jackson.databind.JsonSerializer;
import com.fasterxml.jackson.databind.SerializerProvider;
import com.fasterxml.jackson.databind.deser.ContextualDeserializer;
import java.io.IOException;

/** Writes and reads the fields of {@link FirnText} and {@link FirnId} with Jackson 2. */
final class Jackson2 {
    private Jackson2() {}

    /** Writes longs as unsigned text, also those of containers. */
    static final class Writer extends JsonSerializer<Object> {
        @Override
        public void serialize(Object value, JsonGenerator to, SerializerProvider provider) throws IOException {
            provider.defaultSerializeValue(Texts.of(value), to);
        }
    }

    /** Reads an unsigned number. */
    static class One extends JsonDeserializer<Object> {
        @Override
        public Object deserialize(JsonParser from, DeserializationContext context) throws IOException {
            String text = from.getValueAsString("");
            try {
                return Long.parseUnsignedLong(text);
            } catch (NumberFormatException e) {
                return context.handleWeirdStringValue(Long.class, text, "it is not an ID");
            }
        }
    }

    /** Reads unsigned numbers, also those of containers. Other fields are read as usual. */
    static final class Reader extends One implements ContextualDeserializer {
        @Override
        public JsonDeserializer<?> createContextual(DeserializationContext context, BeanProperty property)
                throws JsonMappingException {
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
