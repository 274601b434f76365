import { width128, width64, type Width } from "./answer.js";
import { newCore, type Core } from "./core.js";
import type { FirnError } from "./errors.js";
import { Prefetcher } from "./prefetcher.js";
import { checkName, type Sequencer } from "./sequencer.js";
import { now } from "./servers.js";

/** How to connect to https:// servers. The fields are those of node:tls. */
export interface TLSOptions {
  /** Certificates of authorities in PEM, instead of the usual ones. */
  ca?: string | Uint8Array | (string | Uint8Array)[];
  /** This client's certificate, in PEM. */
  cert?: string | Uint8Array;
  /** The key of cert, in PEM. */
  key?: string | Uint8Array;
  passphrase?: string;
  /** The name in the server's certificate, if it is not the host name. */
  servername?: string;
  /** False accepts any certificate: anyone on the network path can read and change the traffic. */
  rejectUnauthorized?: boolean;
}

/** A message about a server. */
export interface LogEvent {
  level: "info" | "warn";
  /** "server failed" or "server answers again". */
  message: string;
  /** The server, as in the option `servers`. */
  server: string;
  sequencer: string;
  error?: FirnError;
}

/** Options of a Client. All times are in milliseconds. */
export interface ClientOptions {
  /** Authenticates the client. A function is called for each request, so that tokens can change. */
  token?: string | (() => string | Promise<string>);
  /** How to connect to https:// servers. A function is called for each request, so that certificates can change. */
  tls?: TLSOptions | (() => TLSOptions);
  /** How long one request may take; 5,000 by default. */
  timeout?: number;
  /** How long a request is tried, across all servers and their pauses; 10,000 by default. */
  patience?: number;
  /** The maximum age of an ID when it is handed out; 600,000 by default, which is 10 minutes. */
  validity?: number;
  /** How many IDs to fetch at first; 100 by default. The number doubles and halves with the use. */
  batch?: number;
  /** How many IDs to fetch at most; 10,000 by default. */
  maxBatch?: number;
  /** Receives a message when a server fails, and when it answers again. */
  log?: (event: LogEvent) => void;
}

/** The state of a server for a Client. */
export interface ServerStatus {
  /** The server, as in the option `servers`. */
  server: string;
  /** Since it last worked. */
  failures: number;
  /** For how many more milliseconds it is asked only if no other server works. */
  leftOut: number;
  /** Why calls do not wait for it while another server works. */
  error?: FirnError;
}

/** What a Client and a FakeClient have in common. */
export interface Sequencers {
  /** Returns the sequencer with this name, whose IDs have 64 bits. Each name has one object. */
  sequencer(name: string): Sequencer<bigint>;
  /** Is like sequencer, for IDs of 128 bits. */
  sequencer128(name: string): Sequencer<string>;
  /** Closes all sequencers and connections. */
  close(): Promise<void>;
  /** Closes the client at the end of the block of an `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * A Client gets IDs from servers that run `firn serve`. A program needs only one, and each worker
 * thread one of its own.
 */
export class Client implements Sequencers {
  readonly #core: Core;
  readonly #sequencers = new Map<string, Prefetcher<bigint>>();
  readonly #sequencers128 = new Map<string, Prefetcher<string>>();
  #closed = false;

  /**
   * Makes a Client. It does not connect, so the servers may start later. The servers are
   * `http://HOST:PORT` or `https://HOST:PORT`, perhaps with a path, and serve the same sequencers.
   */
  constructor(servers: readonly string[], options: ClientOptions = {}) {
    this.#core = newCore(servers, options);
  }

  sequencer(name: string): Sequencer<bigint> {
    return this.#sequencer(this.#sequencers, name, width64);
  }

  sequencer128(name: string): Sequencer<string> {
    return this.#sequencer(this.#sequencers128, name, width128);
  }

  /** Returns the state of the servers, in the order of the option `servers`. */
  servers(): ServerStatus[] {
    return this.#core.servers.map(({ name, health: h }) => ({
      server: name,
      failures: h.failures,
      leftOut: h.error ? Math.max(0, Math.ceil(Math.max(h.until, h.probe) - now())) : 0,
      ...(h.error && { error: h.error }),
    }));
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const all of [this.#sequencers, this.#sequencers128]) for (const s of all.values()) await s.close();
    this.#core.http.destroy();
    this.#core.https.destroy();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #sequencer<ID>(all: Map<string, Prefetcher<ID>>, name: string, width: Width<ID>): Sequencer<ID> {
    checkName(name);
    let s = all.get(name);
    if (!s) {
      s = new Prefetcher(this.#core, name, width, () => all.delete(name));
      all.set(name, s);
      if (this.#closed) void s.close();
    }
    return s;
  }
}
