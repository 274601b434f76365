package com.github.firnid.client;

/**
 * The state of a server for a client.
 *
 * @param server the server as in the options of the client
 * @param failures how often it failed since it last worked
 * @param error why calls do not wait for it while another server works; null if they do
 */
public record ServerStatus(String server, int failures, FirnException error) {}
