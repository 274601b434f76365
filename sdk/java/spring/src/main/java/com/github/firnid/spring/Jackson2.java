package com.github.firnid.spring;

import com.fasterxml.jackson.annotation.JsonAnyGetter;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.type.WritableTypeId;
import com.fasterxml.jackson.databind.BeanProperty;
import com.fasterxml.jackson.databind.DeserializationContext;
import com.fasterxml.jackson.databind.JavaType;
import com.fasterxml.jackson.databind.JsonDeserializer;
import com.fasterxml.jackson.databind.JsonMappingException;
import com.fasterxml.jackson.databind.JsonSerializer;
import com.fasterxml.jackson.databind.KeyDeserializer;
import com.fasterxml.jackson.databind.SerializerProvider;
import com.fasterxml.jackson.databind.deser.ContextualDeserializer;
import com.fasterxml.jackson.databind.jsontype.TypeSerializer;
import com.fasterxml.jackson.databind.ser.ContextualSerializer;
import com.fasterxml.jackson.databind.type.MapLikeType;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** Writes and reads the fields of {@link FirnText} and {@link FirnId} with Jackson 2. */
final class Jackson2 {
    private Jackson2() {}

    /** Writes numbers as text, also those of containers. */
    static final class Writer extends JsonSerializer<Object> implements ContextualSerializer {
        private final boolean isAny;

        Writer() {
            this(false);
        }

        /** With isAny, it writes the members of an object without the object around them. */
        private Writer(boolean isAny) {
            this.isAny = isAny;
        }

        @Override
        public JsonSerializer<?> createContextual(SerializerProvider provider, BeanProperty property) {
            return new Writer(property != null && property.getAnnotation(JsonAnyGetter.class) != null);
        }

        @Override
        public void serialize(Object value, JsonGenerator to, SerializerProvider provider) throws IOException {
            Object text = Texts.of(value);
            if (isAny) {
                inside(text, to, provider);
            } else if (text instanceof List) {
                to.writeStartArray();
                inside(text, to, provider);
                to.writeEndArray();
            } else {
                provider.defaultSerializeValue(text, to);
            }
        }

        /** Is called for default typing. */
        @Override
        public void serializeWithType(Object value, JsonGenerator to, SerializerProvider provider, TypeSerializer types)
                throws IOException {
            Object text = Texts.of(value);
            JsonToken shape = text instanceof Map
                    ? JsonToken.START_OBJECT
                    : text instanceof List ? JsonToken.START_ARRAY : JsonToken.VALUE_STRING;
            WritableTypeId id = types.writeTypePrefix(to, types.typeId(value, shape));
            inside(text, to, provider);
            types.writeTypeSuffix(to, id);
        }

        private static void inside(Object text, JsonGenerator to, SerializerProvider provider) throws IOException {
            if (text instanceof List<?> all) {
                for (Object one : all) {
                    provider.defaultSerializeValue(one, to);
                }
            } else if (text instanceof Map<?, ?> all) {
                for (Map.Entry<?, ?> one : all.entrySet()) {
                    to.writeFieldName(String.valueOf(one.getKey()));
                    provider.defaultSerializeValue(one.getValue(), to);
                }
            } else {
                provider.defaultSerializeValue(text, to);
            }
        }

        @Override
        public boolean isEmpty(SerializerProvider provider, Object value) {
            return Texts.isEmpty(value);
        }
    }

    /** Reads an unsigned number. */
    static class One extends JsonDeserializer<Object> {
        @Override
        public Object deserialize(JsonParser from, DeserializationContext context) throws IOException {
            String text = from.getValueAsString("");
            if (text.startsWith("-") && from.hasToken(JsonToken.VALUE_NUMBER_INT)) {
                return from.getLongValue(); // an ID from 2^63 on, written as a number
            }
            try {
                return Long.parseUnsignedLong(text);
            } catch (NumberFormatException e) {
                return context.handleWeirdStringValue(Long.class, text, "it is not an ID");
            }
        }
    }

    /** Reads an unsigned number as the key of a map. */
    private static final class Key extends KeyDeserializer {
        @Override
        public Object deserializeKey(String text, DeserializationContext context) throws IOException {
            try {
                return Long.parseUnsignedLong(text);
            } catch (NumberFormatException e) {
                return context.handleWeirdKey(Long.class, text, "it is not an ID");
            }
        }
    }

    /** Reads an unsigned number, and takes null or no value as Jackson does, which may be 0 for a primitive. */
    private static final class Field extends One {
        private final JsonDeserializer<Object> usual;

        Field(JsonDeserializer<Object> usual) {
            this.usual = usual;
        }

        @Override
        public Object getNullValue(DeserializationContext context) throws JsonMappingException {
            return usual.getNullValue(context);
        }

        @Override
        public Object getAbsentValue(DeserializationContext context) throws JsonMappingException {
            return usual.getAbsentValue(context);
        }
    }

    /** Reads unsigned numbers as an array. */
    private static final class Longs extends JsonDeserializer<Object> {
        private final JsonDeserializer<Object> boxed;

        Longs(JsonDeserializer<Object> boxed) {
            this.boxed = boxed;
        }

        @Override
        public Object deserialize(JsonParser from, DeserializationContext context) throws IOException {
            return Arrays.stream((Long[]) boxed.deserialize(from, context)).mapToLong(Long::longValue).toArray();
        }
    }

    /** Reads unsigned numbers, also those of containers. Other fields are read as usual. */
    static final class Reader extends One implements ContextualDeserializer {
        @Override
        public JsonDeserializer<?> createContextual(DeserializationContext context, BeanProperty property)
                throws JsonMappingException {
            JavaType type = property == null ? context.getContextualType() : property.getType();
            if (type == null) {
                return this;
            }
            if (type.hasRawClass(Long.class) || type.hasRawClass(long.class)) {
                return new Field(context.findContextualValueDeserializer(type, property));
            }
            if (type.hasRawClass(long[].class)) {
                JavaType boxed = context.constructType(Long[].class).withContentValueHandler(new One());
                return new Longs(context.findContextualValueDeserializer(boxed, property));
            }
            JavaType content = type.getContentType();
            boolean boxed = content != null && content.hasRawClass(Long.class);
            if (boxed) {
                type = type.withContentValueHandler(new One());
            }
            if (type instanceof MapLikeType map && map.getKeyType().hasRawClass(Long.class)) {
                type = map.withKeyValueHandler(new Key());
            }
            return context.findContextualValueDeserializer(type, property);
        }
    }
}
