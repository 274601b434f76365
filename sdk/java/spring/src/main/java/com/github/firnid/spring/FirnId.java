package com.github.firnid.spring;

import com.fasterxml.jackson.annotation.JacksonAnnotationsInside;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.hibernate.annotations.IdGeneratorType;

/**
 * Lets Hibernate take the ID of an entity from a sequencer of Firn, before the row is inserted. No database
 * sequence is needed, and inserts can be batched.
 *
 * <pre>{@code
 * @Id
 * @FirnId("orders")
 * private Long id;
 * }</pre>
 *
 * <p>The ID is a {@code long}, {@code Long} or {@code String} (the decimal number) for sequencers of 64 bits, and
 * a {@code UUID} for those of 128.
 *
 * <p>In JSON of Jackson, a {@code long} is text, as with {@link FirnText}, unless the field has a {@code
 * JsonSerialize} of its own.
 *
 * <p>In Spring Boot, the {@link com.github.firnid.client.Client} is the bean of the application. Otherwise, put it
 * into the properties of Hibernate under the name {@link FirnIdGenerator#CLIENT}.
 */
@IdGeneratorType(FirnIdGenerator.class)
@JacksonAnnotationsInside
@com.fasterxml.jackson.databind.annotation.JsonSerialize(using = Jackson2.Writer.class)
@com.fasterxml.jackson.databind.annotation.JsonDeserialize(using = Jackson2.Reader.class)
@tools.jackson.databind.annotation.JsonSerialize(using = Jackson3.Writer.class)
@tools.jackson.databind.annotation.JsonDeserialize(using = Jackson3.Reader.class)
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.FIELD, ElementType.METHOD})
public @interface FirnId {
    /**
     * The name of the sequencer; by default the name of the entity's table.
     *
     * @return the name
     */
    String value() default "";
}
