package com.github.firnid.spring;

import com.fasterxml.jackson.annotation.JacksonAnnotationsInside;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.DeserializationContext;
import com.fasterxml.jackson.databind.SerializerProvider;
import com.fasterxml.jackson.databind.annotation.JsonDeserialize;
import com.fasterxml.jackson.databind.annotation.JsonSerialize;
import com.fasterxml.jackson.databind.deser.std.StdScalarDeserializer;
import com.fasterxml.jackson.databind.ser.std.StdScalarSerializer;
import java.io.IOException;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Lets Jackson write an ID as text, because JavaScript rounds numbers above 2^53. It reads text, and numbers as
 * well.
 *
 * <pre>{@code
 * record Order(@FirnText long id) {}
 * }</pre>
 */
@JacksonAnnotationsInside
@JsonSerialize(using = FirnText.Writer.class)
@JsonDeserialize(using = FirnText.Reader.class)
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.FIELD, ElementType.METHOD, ElementType.PARAMETER})
public @interface FirnText {
    /** Writes unsigned numbers. */
    final class Writer extends StdScalarSerializer<Long> {
        private static final long serialVersionUID = 1;

        /** Is called by Jackson. */
        public Writer() {
            super(Long.class);
        }

        @Override
        public void serialize(Long id, JsonGenerator to, SerializerProvider provider) throws IOException {
            to.writeString(Long.toUnsignedString(id));
        }
    }

    /** Reads unsigned numbers. */
    final class Reader extends StdScalarDeserializer<Long> {
        private static final long serialVersionUID = 1;

        /** Is called by Jackson. */
        public Reader() {
            super(Long.class);
        }

        @Override
        public Long deserialize(JsonParser from, DeserializationContext context) throws IOException {
            String text = from.getValueAsString("");
            try {
                return Long.parseUnsignedLong(text);
            } catch (NumberFormatException e) {
                return (Long) context.handleWeirdStringValue(Long.class, text, "it is not an ID");
            }
        }
    }
}
