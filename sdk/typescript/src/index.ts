/**
 * Unique, time-ordered IDs from Firn servers.
 *
 *     const client = new Client(["http://127.0.0.1:3476"]);
 *     const orders = client.sequencer("orders");
 *     const id = await orders.next(); // a bigint
 *
 * @module
 */
export { Client } from "./client.js";
export type { ClientOptions, LogEvent, Sequencers, ServerStatus, TLSOptions } from "./client.js";
export type { CallOptions, Sequencer } from "./sequencer.js";
export { AnswerError, ClosedError, FirnError, ParseError, ServerError, UnavailableError } from "./errors.js";
export { format } from "./format.js";
export { installToJSON, replacer } from "./json.js";
export { Typed } from "./typed.js";
export { Veiled } from "./veil.js";
