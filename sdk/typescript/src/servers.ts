import { request as requestHTTP, type Agent, type ClientRequest, type RequestOptions } from "node:http";
import { request as requestHTTPS } from "node:https";
import type { Call } from "./call.js";
import { ServerError, type FirnError } from "./errors.js";

/** Milliseconds since some time; steps of the system's clock do not change it. */
export const now = (): number => performance.now();

/**
 * after calls f in so many milliseconds, and returns a function that cancels it. The timer does not
 * keep the program alive. An answer that has arrived by then is processed first, even if the
 * program was too busy to do so in time.
 */
export function after(milliseconds: number, f: () => void): () => void {
  let immediate: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => (immediate = setImmediate(f)), Math.max(0, milliseconds));
  timer.unref();
  return () => {
    clearTimeout(timer);
    clearImmediate(immediate);
  };
}

/**
 * A Health is the state of a server, as a whole or for one sequencer. A server whose last request
 * failed, or takes long, is a suspect: as long as another one works, calls do not wait for it, and
 * only probes are sent to it.
 */
export class Health {
  /** Since it last worked. */
  failures = 0;
  /** It is not used before. */
  until = 0;
  /** Why it is a suspect. */
  error: FirnError | undefined;
  /** Time of the last failure. */
  failed = 0;
  /** No probe is sent before. */
  probe = 0;
  /** The server asked for the pause, so it is not a last resort either. */
  asked = false;

  /** Records the failure of a request that began at start. Concurrent requests fail together and count once. */
  fail(start: number, wish: number, error: FirnError): void {
    const t = now();
    if (this.failures === 0 || start >= this.failed) {
      this.failures++;
      this.failed = t;
      this.asked = false;
      this.until = t + pause(this.failures);
    }
    if (wish > 0) {
      this.asked = true;
      this.until = t + Math.min(wish, longestWish) * (1 + Math.random() / 10); // never less than the server asked for
    }
    this.suspect(start, error, true);
  }

  /**
   * Makes the server a suspect. The next probe waits at least as long as the request took. A request
   * that only takes long does not hide why the previous one failed.
   */
  suspect(start: number, error: FirnError, failed: boolean): void {
    const t = now();
    if (failed || this.failures === 0) this.error = error;
    this.probe = t + Math.max(this.until - t, t - start, pause(1));
  }

  /** Whether the server gives its own reason to be left out now. */
  refuses(t: number): boolean {
    return this.asked && this.until > t;
  }
}

// How long a server is left out. The time doubles with each failure, up to the longest. The
// shortest is about what a server takes to start.
const shortestPause = 250;
const longestPause = 10_000;
const longestWish = 300_000; // from a Retry-After

/**
 * pause returns how long a server is left out after a number of failures. It is random, so that
 * clients that have seen the same failure do not return at once.
 */
function pause(failures: number): number {
  const longest = Math.min(shortestPause * 2 ** (failures - 1), longestPause);
  return (longest / 2) * (1 + Math.random());
}

/** A Server is one of the option servers. */
export class Server {
  readonly health = new Health();
  readonly secure: boolean;
  readonly #url: URL;

  constructor(
    readonly name: string,
    url: URL,
  ) {
    this.#url = url;
    this.secure = url.protocol === "https:";
  }

  /** request begins a request for a path below that of the server. */
  request(path: string, agent: Agent, options: RequestOptions): ClientRequest {
    const u = this.#url;
    return (this.secure ? requestHTTPS : requestHTTP)({
      ...options,
      agent,
      host: u.hostname.replace(/^\[|\]$/g, ""),
      port: u.port || (this.secure ? 443 : 80),
      path: u.pathname.replace(/\/+$/, "") + path,
    });
  }
}

/** How long a request may take before another server is asked beside it, or twice as long as usual. */
export const slowAfter = 200;

/** A Choice is what a call does next. */
export interface Choice {
  server?: Server;
  /** Suspects to probe beside it. */
  probes: Server[];
  /** Without a server: milliseconds until one is available, or undefined if none will be. */
  wait?: number;
}

/** A View is the list of servers as one sequencer sees it. */
export class View {
  readonly #own = new Map<Server, Health>();
  /** How long the first answer to a call takes, a moving average. */
  #usual = 0;
  /** Until when no server is asked, because one has refused this client with status 429. */
  #limited = 0;

  constructor(
    readonly servers: readonly Server[],
    private readonly timeout: number,
  ) {
    for (const s of servers) this.#own.set(s, new Health());
  }

  /**
   * pick chooses a random server among those that are not suspects, and the suspects to probe
   * beside it. If all are suspects, it chooses a random one that is not left out, or else the last
   * resort: the one that returns first, among those that the call has not tried and that have not
   * asked for the pause themselves.
   */
  pick<ID>(c: Call<ID>): Choice {
    const t = now();
    if (this.#limited > t) return { wait: this.#limited - t, probes: [] };
    const good: Server[] = [];
    const fit: Server[] = [];
    const probes: Server[] = [];
    let resort: Server | undefined;
    let resortAt = Infinity;
    let soonest = Infinity;
    for (const s of this.servers) {
      if (c.refused.has(s) || c.pending.has(s)) continue;
      const own = this.own(s);
      const h = s.health;
      if (!h.error && !own.error) {
        good.push(s);
        continue;
      }
      if (t > h.probe && t > own.probe) probes.push(s);
      const until = Math.max(h.until, own.until);
      if (until <= t) {
        fit.push(s);
        continue;
      }
      if (!c.tried.has(s) && !h.refuses(t) && !own.refuses(t) && until < resortAt) [resort, resortAt] = [s, until];
      soonest = Math.min(soonest, until);
    }
    if (good.length > 0) {
      // No other probe before these have ended.
      for (const s of probes) s.health.probe = this.own(s).probe = t + this.timeout;
      return { server: good[Math.floor(Math.random() * good.length)]!, probes };
    }
    const server = fit[Math.floor(Math.random() * fit.length)] ?? resort;
    if (server) return { server, probes: [] };
    return soonest < Infinity ? { wait: soonest - t, probes: [] } : { probes: [] };
  }

  /** How long a request may take before another server is asked: one that always takes longer than others is slow. */
  get hedgeAfter(): number {
    return Math.max(slowAfter, 2 * this.#usual);
  }

  /** worked records an answer to a request, and reports whether the server had failed before. */
  worked(s: Server, start: number, probe: boolean): boolean {
    const own = this.own(s);
    const had = s.health.failures > 0 || own.failures > 0;
    Object.assign(s.health, new Health());
    Object.assign(own, new Health());
    this.#limited = 0;
    if (!probe) this.#usual += (Math.min(now() - start, 2 * this.hedgeAfter) - this.#usual) / 8;
    return had;
  }

  /** failed records a failure, for this sequencer or as a whole, and reports whether it is the first. */
  failed(s: Server, start: number, whole: boolean, wish: number, error: FirnError): boolean {
    const own = this.own(s);
    const h = whole ? s.health : own;
    const first = h.failures === 0;
    h.fail(start, wish, error);
    if (error instanceof ServerError && error.status === 429) this.#limited = Math.max(this.#limited, h.until);
    if (own.error) own.suspect(start, error, true);
    return first;
  }

  /**
   * late makes a suspect of a server that takes long; a call with little time proves nothing. It may
   * answer requests of other sequencers, so it must also answer one of this.
   */
  late(s: Server, start: number, error: FirnError): void {
    if (now() - start + 1 < this.hedgeAfter) return; // timers end up to 1 ms early
    s.health.suspect(start, error, false);
    this.own(s).suspect(start, error, false);
  }

  /** error returns the last failure of a server. */
  error(s: Server): FirnError | undefined {
    const own = this.own(s);
    return own.error && (!s.health.error || own.failed > s.health.failed) ? own.error : s.health.error;
  }

  private own(s: Server): Health {
    return this.#own.get(s)!;
  }
}
