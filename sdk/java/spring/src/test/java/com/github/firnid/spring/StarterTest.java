package com.github.firnid.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.annotation.JsonAnyGetter;
import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.annotation.JsonSerialize;
import com.fasterxml.jackson.databind.ser.std.ToStringSerializer;
import com.github.firnid.client.Client;
import com.github.firnid.client.FakeClient;
import jakarta.persistence.Entity;
import jakarta.persistence.EntityManager;
import jakarta.persistence.Id;
import jakarta.persistence.Table;
import java.io.IOException;
import java.lang.reflect.Field;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.AutoConfigurationPackage;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.transaction.support.TransactionTemplate;

class StarterTest {
    private final ApplicationContextRunner runner =
            new ApplicationContextRunner().withConfiguration(AutoConfigurations.of(FirnAutoConfiguration.class));

    @Entity
    static class Invoice {
        @Id
        @FirnId("invoices")
        private String id;
    }

    @Entity
    @Table(name = "sessions")
    static class Session {
        @Id
        @FirnId("sessions")
        private UUID id;
    }

    @Configuration
    @EnableAutoConfiguration
    @AutoConfigurationPackage
    static class Application {}

    /** A Spring Boot application with Hibernate, PostgreSQL and a Firn server. */
    @Test
    void entitiesGetIds(@TempDir Path dir) throws Exception {
        Assumptions.assumeTrue(Programs.hasPostgres(), "no PostgreSQL here");
        Assumptions.assumeTrue(Programs.hasFirn(), "neither FIRN_URL nor FIRN_PROGRAM is set");
        try (Programs programs = new Programs(dir)) {
            String database = programs.startPostgres();
            String firn = programs.startFirn();
            try (ConfigurableApplicationContext c = new SpringApplicationBuilder(Application.class)
                    .properties(
                            "firn.servers=" + firn,
                            "spring.datasource.url=" + database,
                            "spring.datasource.username=postgres",
                            "spring.jpa.hibernate.ddl-auto=create",
                            "spring.jpa.properties.hibernate.jdbc.batch_size=50",
                            "spring.main.banner-mode=off")
                    .run()) {
                TransactionTemplate transaction = c.getBean(TransactionTemplate.class);
                EntityManager em = c.getBean(EntityManager.class);
                c.getBean(Client.class).sequencer("orders").next();
                Set<Long> ids = new HashSet<>();
                transaction.executeWithoutResult(t -> {
                    for (int i = 0; i < 500; i++) {
                        Order o = new Order("tea " + i);
                        em.persist(o);
                        ids.add(o.getId()); // before the row is inserted
                    }
                    Invoice invoice = new Invoice();
                    em.persist(invoice);
                    assertTrue(invoice.id.matches("[0-9]{15,20}"), invoice.id);
                });
                assertEquals(500, ids.size());
                List<Long> stored = em.createQuery("select o.id from Order o", Long.class).getResultList();
                assertEquals(ids, new HashSet<>(stored));
            }
        }
    }

    @Test
    void sequencersOf128Bits(@TempDir Path dir) throws Exception {
        Assumptions.assumeTrue(Programs.hasPostgres(), "no PostgreSQL here");
        try (Programs programs = new Programs(dir)) {
            String database = programs.startPostgres();
            try (ConfigurableApplicationContext c = new SpringApplicationBuilder(Application.class, Fakes.class)
                    .properties(
                            "spring.datasource.url=" + database,
                            "spring.datasource.username=postgres",
                            "spring.jpa.hibernate.ddl-auto=create",
                            "spring.main.banner-mode=off")
                    .run()) {
                Session s = new Session();
                c.getBean(TransactionTemplate.class)
                        .executeWithoutResult(t -> c.getBean(EntityManager.class).persist(s));
                assertEquals(7, s.id.version());
            }
        }
    }

    @Configuration
    static class Fakes {
        @Bean
        Client client() {
            return new FakeClient(Clock.systemUTC(), 1);
        }
    }

    @Test
    void theClientHasTheProperties(@TempDir Path dir) throws Exception {
        Path token = Files.writeString(dir.resolve("token"), "firn_x\n");
        runner.withPropertyValues(
                        "firn.servers=http://a:3476,http://b:3476", "firn.token-file=" + token, "firn.timeout=2s",
                        "firn.patience=3s", "firn.validity=1m", "firn.first-batch=10", "firn.max-batch=20")
                .run(c -> assertEquals(2, c.getBean(Client.class).servers().size()));
    }

    @Test
    void badPropertiesAreNamed() {
        fails("the property firn.servers is missing");
        fails("properties firn.*: server \"x\": a server is http://HOST:PORT", "firn.servers=x");
        fails("maxBatch is 0", "firn.servers=http://a", "firn.max-batch=0");
        fails("both firn.token and firn.token-file", "firn.servers=http://a", "firn.token=a", "firn.token-file=b");
    }

    private void fails(String want, String... properties) {
        runner.withPropertyValues(properties).run(c -> {
            Throwable cause = c.getStartupFailure();
            while (cause.getCause() != null && !(cause instanceof IllegalArgumentException)) {
                cause = cause.getCause();
            }
            assertTrue(cause.getMessage().contains(want), cause.getMessage());
        });
    }

    @Test
    void theClientOfTheProgramIsUsed() {
        runner.withUserConfiguration(Fakes.class).run(c -> {
            assertInstanceOf(FakeClient.class, c.getBean(Client.class));
            assertSame(c.getBean(Client.class), c.getBean("client"));
        });
    }

    record Shown(@FirnText long id, @FirnText Long other) {}

    record Many(
            @FirnText List<Long> list,
            @FirnText long[] array,
            @FirnText Long[] boxed,
            @FirnText Map<String, Long> map,
            @FirnText BigInteger big,
            @FirnText String text,
            @FirnText UUID wide) {}

    /** What both generations of Jackson do. */
    interface Json {
        String write(Object value) throws Exception;

        <T> T read(String text, Class<T> type) throws Exception;
    }

    private static final Map<String, Json> JACKSON = Map.of(
            "2", new Json() {
                @Override
                public String write(Object value) throws Exception {
                    return new ObjectMapper().writeValueAsString(value);
                }

                @Override
                public <T> T read(String text, Class<T> type) throws Exception {
                    return new ObjectMapper().readValue(text, type);
                }
            },
            "3", new Json() {
                @Override
                public String write(Object value) {
                    return new tools.jackson.databind.ObjectMapper().writeValueAsString(value);
                }

                @Override
                public <T> T read(String text, Class<T> type) {
                    return new tools.jackson.databind.ObjectMapper().readValue(text, type);
                }
            });

    @ParameterizedTest
    @ValueSource(strings = {"2", "3"})
    void idsAreTextInJson(String generation) throws Exception {
        Json json = JACKSON.get(generation);
        Shown shown = new Shown(117232474546765825L, -1L);
        String text = "{\"id\":\"117232474546765825\",\"other\":\"18446744073709551615\"}";
        assertEquals(text, json.write(shown));
        assertEquals(shown, json.read(text, Shown.class));
        assertEquals(new Shown(5, null), json.read("{\"id\":5,\"other\":null}", Shown.class));
        assertEquals(new Shown(-2, -3L), json.read("{\"id\":-2,\"other\":-3}", Shown.class)); // written as numbers
        String bad = assertThrows(Exception.class, () -> json.read("{\"id\":\"x\"}", Shown.class)).getMessage();
        assertTrue(bad.contains("it is not an ID"), bad);

        UUID wide = UUID.fromString("019ac0de-0000-7000-8000-000000000001");
        Many many = new Many(
                Arrays.asList(-1L, null), new long[] {-2}, new Long[] {8L}, Map.of("a", -1L), BigInteger.TEN.pow(30), "x", wide);
        text = "{\"list\":[\"18446744073709551615\",null],\"array\":[\"18446744073709551614\"],\"boxed\":[\"8\"],"
                + "\"map\":{\"a\":\"18446744073709551615\"},\"big\":\"1" + "0".repeat(30) + "\",\"text\":\"x\",\"wide\":\"" + wide + "\"}";
        assertEquals(text, json.write(many));
        Many read = json.read(text, Many.class);
        assertEquals(List.of(many.list, many.map, many.big, many.text, many.wide),
                List.of(read.list, read.map, read.big, read.text, read.wide));
        assertEquals(List.of(-2L, 8L), List.of(read.array[0], read.boxed[0]));

        Order order = new Order("tea"); // its field has only @FirnId
        Field id = Order.class.getDeclaredField("id");
        id.setAccessible(true);
        id.set(order, 117232474546765825L);
        text = json.write(order);
        assertTrue(text.contains("\"id\":\"117232474546765825\""), text);
        assertEquals(order.getId(), json.read("{\"id\":\"117232474546765825\"}", Order.class).getId());
        assertEquals("117232474546765825", inJavaScript(text));
    }

    record Keys(@FirnText Map<Long, Long> ids, @FirnText Map<Long, String> names, @FirnText Map<String, String> texts) {}

    static class Rest {
        private final Map<Long, Object> rest = new HashMap<>();

        @JsonAnyGetter
        @FirnText
        public Map<Long, Object> rest() {
            return rest;
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"2", "3"})
    void keysOfMaps(String generation) throws Exception {
        Json json = JACKSON.get(generation);
        Keys keys = new Keys(Map.of(-1L, -2L), Map.of(-1L, "x"), Map.of("-1", "x"));
        String text = "{\"ids\":{\"18446744073709551615\":\"18446744073709551614\"},"
                + "\"names\":{\"18446744073709551615\":\"x\"},\"texts\":{\"-1\":\"x\"}}";
        assertEquals(text, json.write(keys));
        assertEquals(keys, json.read(text, Keys.class));
        String bad = assertThrows(Exception.class, () -> json.read("{\"ids\":{\"x\":1}}", Keys.class)).getMessage();
        assertTrue(bad.contains("it is not an ID"), bad);

        Rest any = new Rest();
        any.rest.put(-1L, List.of(-2L));
        assertEquals("{\"18446744073709551615\":[\"18446744073709551614\"]}", json.write(any));
        any.rest.clear();
        assertEquals("{}", json.write(any));
    }

    record Plain(long id, Long other) {}

    /** A field without a value is read as it is without the annotation. */
    @ParameterizedTest
    @ValueSource(strings = {"{}", "{\"id\":null,\"other\":null}"})
    void noValue(String text) throws Exception {
        for (boolean strict : new boolean[] {false, true}) {
            ObjectMapper two = new ObjectMapper()
                    .configure(com.fasterxml.jackson.databind.DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES, strict);
            tools.jackson.databind.ObjectMapper three = tools.jackson.databind.json.JsonMapper.builder()
                    .configure(tools.jackson.databind.DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES, strict)
                    .build();
            if (strict) {
                for (Class<?> type : List.of(Plain.class, Shown.class)) {
                    assertThrows(com.fasterxml.jackson.core.JacksonException.class, () -> two.readValue(text, type));
                    assertThrows(tools.jackson.core.JacksonException.class, () -> three.readValue(text, type));
                }
            } else {
                assertEquals(new Plain(0, null), two.readValue(text, Plain.class));
                assertEquals(new Shown(0, null), two.readValue(text, Shown.class));
                assertEquals(new Shown(0, null), three.readValue(text, Shown.class));
            }
        }
    }

    static class Cached {
        @FirnText public Object id = 5L;
        @FirnText public List<Long> list = new ArrayList<>(List.of(6L));
        @FirnText public Map<String, Long> map = new HashMap<>(Map.of("a", 7L));
        @FirnText @JsonInclude(JsonInclude.Include.NON_EMPTY) public Set<Long> none = Set.of();
        @FirnText @JsonSerialize(using = ToStringSerializer.class) public long own = -1; // Jackson 2 only
    }

    /** Caches write the types of objects too. */
    @Test
    void defaultTyping() throws Exception {
        String want = "{\"id\":[\"java.lang.Long\",\"5\"],\"list\":[\"java.util.ArrayList\",[\"6\"]],"
                + "\"map\":[\"java.util.HashMap\",{\"a\":\"7\"}],\"own\":\"";
        ObjectMapper two = new ObjectMapper();
        two.activateDefaultTyping(two.getPolymorphicTypeValidator(), ObjectMapper.DefaultTyping.NON_CONCRETE_AND_ARRAYS);
        String text = two.writeValueAsString(new Cached());
        assertEquals(want + "-1\"}", text);
        Cached read = two.readValue(text.replace("-1", "1"), Cached.class);
        assertEquals(List.of(5L, List.of(6L), Map.of("a", 7L)), List.of(read.id, read.list, read.map));
        tools.jackson.databind.ObjectMapper three = tools.jackson.databind.json.JsonMapper.builder()
                .activateDefaultTyping(
                        tools.jackson.databind.jsontype.BasicPolymorphicTypeValidator.builder()
                                .allowIfSubType(Object.class)
                                .build(),
                        tools.jackson.databind.DefaultTyping.NON_CONCRETE_AND_ARRAYS)
                .build();
        text = three.writeValueAsString(new Cached());
        assertEquals(want + "18446744073709551615\"}", text);
        read = three.readValue(text, Cached.class);
        assertEquals(List.of(5L, List.of(6L), Map.of("a", 7L), -1L), List.of(read.id, read.list, read.map, read.own));
    }

    /** Returns the ID of an object as JavaScript reads it, if Node is here. */
    private static String inJavaScript(String json) throws Exception {
        try {
            Process p = new ProcessBuilder("node", "-p", "JSON.parse(process.argv[1]).id", json).start();
            return new String(p.getInputStream().readAllBytes()).strip();
        } catch (IOException e) {
            return Assumptions.abort("no Node here");
        }
    }
}
