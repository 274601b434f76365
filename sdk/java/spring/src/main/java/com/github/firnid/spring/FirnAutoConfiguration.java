package com.github.firnid.spring;

import com.github.firnid.client.Client;
import org.hibernate.generator.BeforeExecutionGenerator;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.orm.jpa.HibernateJpaAutoConfiguration;
import org.springframework.boot.autoconfigure.orm.jpa.HibernatePropertiesCustomizer;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Makes the {@link Client} of the properties {@code firn.*}, unless the program has one, and gives it to Hibernate. */
@AutoConfiguration(before = HibernateJpaAutoConfiguration.class)
@EnableConfigurationProperties(FirnProperties.class)
public class FirnAutoConfiguration {
    /** Makes the configuration. */
    public FirnAutoConfiguration() {}

    @Bean
    @ConditionalOnMissingBean
    Client firnClient(FirnProperties properties) {
        return properties.client();
    }

    /** For {@link FirnId}. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass({BeforeExecutionGenerator.class, HibernatePropertiesCustomizer.class})
    static class Hibernate {
        @Bean
        HibernatePropertiesCustomizer firnHibernate(Client client) {
            return properties -> properties.put(FirnIdGenerator.CLIENT, client);
        }
    }
}
