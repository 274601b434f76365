package com.github.firnid.spring;

import com.github.firnid.client.Client;
import com.github.firnid.client.Sequencer;
import java.lang.reflect.Member;
import java.util.EnumSet;
import java.util.UUID;
import java.util.function.Supplier;
import org.hibernate.HibernateException;
import org.hibernate.engine.config.spi.ConfigurationService;
import org.hibernate.engine.spi.SharedSessionContractImplementor;
import org.hibernate.generator.AnnotationBasedGenerator;
import org.hibernate.generator.BeforeExecutionGenerator;
import org.hibernate.generator.EventType;
import org.hibernate.generator.EventTypeSets;
import org.hibernate.generator.GeneratorCreationContext;

/** Generates the IDs of {@link FirnId}. */
public final class FirnIdGenerator implements BeforeExecutionGenerator, AnnotationBasedGenerator<FirnId> {
    private static final long serialVersionUID = 1;

    /** The name of the {@link Client} in the properties of Hibernate. */
    public static final String CLIENT = "com.github.firnid.client";

    private transient Supplier<Object> ids;

    /** Is called by Hibernate, or by Spring for Hibernate. */
    public FirnIdGenerator() {}

    @Override
    public void initialize(FirnId annotation, Member member, GeneratorCreationContext context) {
        String entity = context.getPersistentClass().getEntityName();
        String table = context.getPersistentClass().getTable().getName();
        String name = annotation.value().isEmpty() ? table : annotation.value();
        Object setting = context.getServiceRegistry()
                .requireService(ConfigurationService.class)
                .getSettings()
                .get(CLIENT);
        if (!(setting instanceof Client client)) {
            throw new HibernateException("@FirnId of " + entity + ": the property " + CLIENT
                    + " of Hibernate is not set: it must be a Client");
        }
        Class<?> type = context.getProperty().getType().getReturnedClass();
        if (type == Long.class || type == long.class) {
            ids = client.sequencer(name)::next;
        } else if (type == String.class) {
            Sequencer numbers = client.sequencer(name);
            ids = () -> Long.toUnsignedString(numbers.next());
        } else if (type == UUID.class) {
            ids = client.sequencer128(name)::next;
        } else {
            throw new HibernateException(
                    "@FirnId of " + entity + ": the ID is a " + type.getName() + ": it must be a long, String or UUID");
        }
    }

    @Override
    public Object generate(SharedSessionContractImplementor session, Object owner, Object current, EventType event) {
        return ids.get();
    }

    @Override
    public EnumSet<EventType> getEventTypes() {
        return EventTypeSets.INSERT_ONLY;
    }
}
