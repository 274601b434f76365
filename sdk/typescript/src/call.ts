import type { Batch, Width } from "./answer.js";
import type { Core } from "./core.js";
import { AnswerError, ClosedError, FirnError, quote, ServerError, TLSError, UnavailableError } from "./errors.js";
import { Exchange, TokenError } from "./exchange.js";
import { after, now, type Server, type View } from "./servers.js";

/** What calls of one sequencer share. */
export interface Source<ID> {
  readonly core: Core;
  readonly name: string;
  readonly width: Width<ID>;
  readonly view: View;
  /** How many IDs can be requested at a time. */
  most: number;
  /** Requests in progress beside those of calls. */
  readonly probes: Set<Exchange<ID>>;
  /** Whether the layout may have runs, as no server has said otherwise. */
  runs: boolean;
  /** isRepeat reports whether an answer begins with the same ID as the previous one. */
  isRepeat(first: ID): boolean;
}

/**
 * A Call gets one request for up to count IDs answered. It sends the request to a server and, if
 * the answer takes long, to other servers beside it, one after the other. It returns the first
 * answer; the other requests end, and their IDs are lost. If all fail, it tries again, until the
 * option patience has passed.
 */
export class Call<ID> {
  readonly tried = new Set<Server>();
  /** Not to be tried again, and why. */
  readonly refused = new Map<Server, FirnError>();
  readonly pending = new Map<Server, Exchange<ID>>();
  readonly #source: Source<ID>;
  readonly #done: (result: Batch<ID> | Error) => void;
  readonly #end: number;
  #count: number;
  #timeouts = 0;
  #refusal: ServerError | undefined;
  #over = false;
  #stopWait: (() => void) | undefined;
  readonly #stopPatience: () => void;

  /** With an array for IDs of 64 bits, it asks for runs, which leave less memory to collect. */
  constructor(
    source: Source<ID>,
    count: number,
    done: (result: Batch<ID> | Error) => void,
    private readonly into?: Buffer,
  ) {
    this.#source = source;
    this.#count = count;
    this.#done = done;
    this.#end = now() + source.core.patience;
    this.#stopPatience = after(source.core.patience, () => this.#giveUp());
    queueMicrotask(() => this.#step()); // done must not be called before the caller has the Call
  }

  /** finish ends the call and its requests. */
  finish(result: Batch<ID> | Error): void {
    if (this.#over) return;
    this.#over = true;
    this.#stopPatience();
    this.#stopWait?.();
    for (const x of this.pending.values()) x.cancel();
    this.pending.clear();
    this.#done(result);
  }

  #giveUp(): void {
    const { name, view } = this.#source;
    const [first, ...others] = this.refused.values();
    // All refuse for the same reason, such as the token.
    if (
      first instanceof ServerError &&
      this.refused.size === view.servers.length &&
      others.every((e) => e instanceof ServerError && e.kind === first.kind)
    )
      return this.finish(first);
    this.finish(
      new UnavailableError(
        name,
        view.servers.flatMap((s) => view.error(s) ?? this.pending.get(s)?.noAnswer() ?? []),
      ),
    );
  }

  /** step asks the next server, or waits until one is available. */
  #step(): void {
    if (this.#over) return;
    this.#stopWait?.();
    const { view } = this.#source;
    const { server, probes, wait } = view.pick(this);
    for (const s of probes) probe(this.#source, s);
    if (server) return this.#send(server);
    if (wait !== undefined && !this.#refusal && now() + wait < this.#end) {
      this.#stopWait = after(wait, () => this.#step());
    } else if (this.pending.size === 0) {
      // The servers that answer agree that the request is wrong, so waiting for others is no use.
      if (this.#refusal) this.finish(this.#refusal);
      else this.#giveUp();
    }
  }

  #send(server: Server): void {
    const source = this.#source;
    const count = (this.#count = Math.min(this.#count, source.most));
    // Leave half of the time for another server.
    const hedgeAfter = Math.min(source.view.hedgeAfter, (this.#end - now()) / 2);
    const x = new Exchange<ID>(
      source,
      server,
      count,
      source.runs ? this.into : undefined,
      hedgeAfter,
      () => {
        source.view.late(server, x.start, x.noAnswer());
        this.#step();
      },
      (result, timedOut) => {
        this.pending.delete(server);
        this.tried.add(server);
        // Perhaps it is too much for all.
        if (timedOut && ++this.#timeouts >= source.view.servers.length) this.#count = Math.max(1, count >> 1);
        settle(source, x, result, false);
        if (!(result instanceof FirnError)) return this.finish(result);
        if (result instanceof TokenError) return this.finish(result);
        if (result instanceof AnswerError || result instanceof TLSError) this.refused.set(server, result);
        if (result instanceof ServerError) {
          if (result.kind === "batch-too-large" && count > 1) source.most = count >> 1;
          else if (result.kind === "no-runs" && x.into) source.runs = false;
          else {
            if (!result.again) this.refused.set(server, result);
            if (result.ofRequest) this.#refusal ??= result;
          }
        }
        this.#step();
      },
    );
    this.pending.set(server, x);
  }
}

/** probe asks a suspect for one ID, which is lost, while calls use other servers. */
function probe<ID>(source: Source<ID>, server: Server): void {
  const x = new Exchange<ID>(
    source,
    server,
    1,
    undefined,
    source.view.hedgeAfter,
    () => undefined,
    (result) => {
      source.probes.delete(x);
      settle(source, x, result, true);
    },
  );
  source.probes.add(x);
}

/** settle records the result of a request. */
function settle<ID>(source: Source<ID>, x: Exchange<ID>, result: Batch<ID> | FirnError, isProbe: boolean): void {
  const { view, core, name } = source;
  const { server, start } = x;
  if (!(result instanceof FirnError)) {
    const had = view.worked(server, start, isProbe);
    // It was probably stopped, so a probe must be answered in time first.
    if (x.isSlow) view.late(server, start, x.noAnswer());
    if (had) core.log({ level: "info", message: "server answers again", server: server.name, sequencer: name });
    return;
  }
  let whole = true;
  let wish = 0;
  if (result instanceof TokenError) return;
  if (result instanceof AnswerError) whole = false; // IDs of one sequencer may have the other width
  if (result instanceof ServerError) {
    if ((result.kind === "batch-too-large" && x.count > 1) || (result.kind === "no-runs" && x.into)) return;
    whole = result.ofServer;
    wish = result.retryAfter;
  }
  if (view.failed(server, start, whole, wish, result))
    core.log({ level: "warn", message: "server failed", server: server.name, sequencer: name, error: result });
}

/** closed returns the error of a call on a closed sequencer. */
export function closed(name: string): ClosedError {
  return new ClosedError(`sequencer ${quote(name)} is closed`);
}
