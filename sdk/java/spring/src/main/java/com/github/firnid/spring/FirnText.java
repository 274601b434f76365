package com.github.firnid.spring;

import com.fasterxml.jackson.annotation.JacksonAnnotationsInside;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Lets Jackson 2 and 3 write an ID as text, because JavaScript rounds numbers above 2^53. It reads text, and
 * numbers as well. The field may also be an array, a collection, an optional or a map. A {@code
 * JsonSerialize} that follows replaces it.
 *
 * <pre>{@code
 * record Order(@FirnText long id, @FirnText List<Long> parts) {}
 * }</pre>
 */
@JacksonAnnotationsInside
@com.fasterxml.jackson.databind.annotation.JsonSerialize(using = Jackson2.Writer.class)
@com.fasterxml.jackson.databind.annotation.JsonDeserialize(using = Jackson2.Reader.class)
@tools.jackson.databind.annotation.JsonSerialize(using = Jackson3.Writer.class)
@tools.jackson.databind.annotation.JsonDeserialize(using = Jackson3.Reader.class)
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.FIELD, ElementType.METHOD, ElementType.PARAMETER})
public @interface FirnText {}
