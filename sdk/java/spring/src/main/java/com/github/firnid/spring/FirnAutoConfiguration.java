package com.github.firnid.spring;

import com.github.firnid.client.Client;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.orm.jpa.AbstractEntityManagerFactoryBean;

/** Makes the {@link Client} of the properties {@code firn.*}, unless the program has one, and gives it to Hibernate. */
@AutoConfiguration
@EnableConfigurationProperties(FirnProperties.class)
public class FirnAutoConfiguration {
    /** Makes the configuration. */
    public FirnAutoConfiguration() {}

    @Bean
    @ConditionalOnMissingBean
    Client firnClient(FirnProperties properties) {
        return properties.client();
    }

    /**
     * For {@link FirnId}. It uses only classes of Spring that Spring Boot 3 and 4 share, and so serves the entity
     * manager factories that a program makes itself too.
     */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass({AbstractEntityManagerFactoryBean.class, FirnIdGenerator.class})
    static class Hibernate {
        @Bean
        static BeanPostProcessor firnHibernate(ObjectProvider<Client> client) {
            return new BeanPostProcessor() {
                @Override
                public Object postProcessBeforeInitialization(Object bean, String name) {
                    if (bean instanceof AbstractEntityManagerFactoryBean factory) {
                        factory.getJpaPropertyMap().putIfAbsent(FirnIdGenerator.CLIENT, client.getObject());
                    }
                    return bean;
                }
            };
        }
    }
}
