package com.github.firnid.spring;

import com.fasterxml.jackson.annotation.JsonAnyGetter;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import tools.jackson.core.JsonGenerator;
import tools.jackson.core.JsonParser;
import tools.jackson.core.JsonToken;
import tools.jackson.core.type.WritableTypeId;
import tools.jackson.databind.BeanProperty;
import tools.jackson.databind.DeserializationContext;
import tools.jackson.databind.JavaType;
import tools.jackson.databind.KeyDeserializer;
import tools.jackson.databind.SerializationContext;
import tools.jackson.databind.ValueDeserializer;
import tools.jackson.databind.ValueSerializer;
import tools.jackson.databind.jsontype.TypeSerializer;
import tools.jackson.databind.type.MapLikeType;

/** Writes and reads the fields of {@link FirnText} and {@link FirnId} with Jackson 3. */
final class Jackson3 {
    private Jackson3() {}

    /** Writes numbers as text, also those of containers. */
    static final class Writer extends ValueSerializer<Object> {
        private final boolean isAny;

        Writer() {
            this(false);
        }

        /** With isAny, it writes the members of an object without the object around them. */
        private Writer(boolean isAny) {
            this.isAny = isAny;
        }

        @Override
        public ValueSerializer<?> createContextual(SerializationContext provider, BeanProperty property) {
            return new Writer(property != null && property.getAnnotation(JsonAnyGetter.class) != null);
        }

        @Override
        public void serialize(Object value, JsonGenerator to, SerializationContext provider) {
            Object text = Texts.of(value);
            if (isAny) {
                inside(text, to, provider);
            } else if (text instanceof List) {
                to.writeStartArray();
                inside(text, to, provider);
                to.writeEndArray();
            } else {
                provider.writeValue(to, text);
            }
        }

        /** Is called for default typing. */
        @Override
        public void serializeWithType(Object value, JsonGenerator to, SerializationContext provider, TypeSerializer types) {
            Object text = Texts.of(value);
            JsonToken shape = text instanceof Map
                    ? JsonToken.START_OBJECT
                    : text instanceof List ? JsonToken.START_ARRAY : JsonToken.VALUE_STRING;
            WritableTypeId id = types.writeTypePrefix(to, provider, types.typeId(value, shape));
            inside(text, to, provider);
            types.writeTypeSuffix(to, provider, id);
        }

        private static void inside(Object text, JsonGenerator to, SerializationContext provider) {
            if (text instanceof List<?> all) {
                for (Object one : all) {
                    provider.writeValue(to, one);
                }
            } else if (text instanceof Map<?, ?> all) {
                for (Map.Entry<?, ?> one : all.entrySet()) {
                    to.writeName(String.valueOf(one.getKey()));
                    provider.writeValue(to, one.getValue());
                }
            } else {
                provider.writeValue(to, text);
            }
        }

        @Override
        public boolean isEmpty(SerializationContext provider, Object value) {
            return Texts.isEmpty(value);
        }
    }

    /** Reads an unsigned number. */
    static class One extends ValueDeserializer<Object> {
        @Override
        public Object deserialize(JsonParser from, DeserializationContext context) {
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
        public Object deserializeKey(String text, DeserializationContext context) {
            try {
                return Long.parseUnsignedLong(text);
            } catch (NumberFormatException e) {
                return context.handleWeirdKey(Long.class, text, "it is not an ID");
            }
        }
    }

    /** Reads an unsigned number, and takes null or no value as Jackson does, which may be 0 for a primitive. */
    private static final class Field extends One {
        private final ValueDeserializer<Object> usual;

        Field(ValueDeserializer<Object> usual) {
            this.usual = usual;
        }

        @Override
        public Object getNullValue(DeserializationContext context) {
            return usual.getNullValue(context);
        }

        @Override
        public Object getAbsentValue(DeserializationContext context) {
            return usual.getAbsentValue(context);
        }
    }

    /** Reads unsigned numbers as an array. */
    private static final class Longs extends ValueDeserializer<Object> {
        private final ValueDeserializer<Object> boxed;

        Longs(ValueDeserializer<Object> boxed) {
            this.boxed = boxed;
        }

        @Override
        public Object deserialize(JsonParser from, DeserializationContext context) {
            return Arrays.stream((Long[]) boxed.deserialize(from, context)).mapToLong(Long::longValue).toArray();
        }
    }

    /** Reads unsigned numbers, also those of containers. Other fields are read as usual. */
    static final class Reader extends One {
        @Override
        public ValueDeserializer<?> createContextual(DeserializationContext context, BeanProperty property) {
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
