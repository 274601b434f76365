import { Batch, type Width } from "./answer.js";
import { Call, closed, type Source } from "./call.js";
import type { Core } from "./core.js";
import type { Exchange } from "./exchange.js";
import { now, slowAfter, View } from "./servers.js";
import { checkCount, checkWidth, maxTake, signalOf, type CallOptions, type Sequencer } from "./sequencer.js";

/** How many IDs are handed out in one turn of the event loop without reading the clock. */
const unchecked = 64;

/** A validity below this many milliseconds is checked for each ID. */
const shortValidity = 1000;

/** A batch that is used up within this many milliseconds was too small. */
const soon = 1000;

/** A time by two clocks. */
interface Moment {
  wall: number;
  mono: number;
}

interface Waiter<ID> {
  /** The number of fetches that had begun before the call. */
  round: number;
  resolve(id: ID): void;
  reject(error: Error): void;
}

/** A Prefetcher is the Sequencer of a Client: it fetches IDs before they are needed. */
export class Prefetcher<ID> implements Sequencer<ID>, Source<ID> {
  readonly view: View;
  readonly probes = new Set<Exchange<ID>>();
  most = maxTake;
  runs = true;

  // IDs are taken from #batch at #next, without further checks as long as #next is below #limit.
  readonly #none: Batch<ID>;
  #batch: Batch<ID>;
  #next = 0;
  #limit = 0;
  #low = 0; // from here on, the next batch is fetched
  #fetched: Moment = { wall: 0, mono: 0 }; // when the fetch of #batch began
  #begun = 0; // time of the batch's first use

  #ready: { batch: Batch<ID>; began: Moment } | undefined;
  #size: number; // IDs to ask for
  #isSlow = false; // the last fetch took long: larger ones would take longer
  #fetch: Call<ID> | undefined;
  #rounds = 0;
  readonly #waiters = new Set<Waiter<ID>>();
  readonly #takes = new Set<Call<ID>>();
  #last: ID | undefined;
  #closed = false;
  #turn = false; // #endTurn will be called

  constructor(
    readonly core: Core,
    readonly name: string,
    readonly width: Width<ID>,
    private readonly forget: () => void,
  ) {
    this.view = new View(core.servers, core.timeout);
    this.#size = core.batch;
    this.#batch = this.#none = new Batch(width, Buffer.alloc(0));
  }

  readonly isRepeat = (first: ID): boolean => {
    if (first === this.#last) return true;
    this.#last = first;
    return false;
  };

  // An await in here would cost a third more, even where it is not reached.
  async next(options?: CallOptions): Promise<ID> {
    const signal = signalOf(options);
    return this.#take() ?? this.#wait(signal);
  }

  tryNext(): ID | undefined {
    const id = this.#take();
    if (id === undefined) {
      if (this.#closed) throw closed(this.name);
      this.#begin();
    }
    return id;
  }

  #take(): ID | undefined {
    return this.#next < this.#limit || this.#renew() ? this.#batch.at(this.#next++) : undefined;
  }

  async take(n: number, options?: CallOptions): Promise<ID[]> {
    checkCount(n);
    const ids: ID[] = [];
    await this.#split(n, options, undefined, (batch) => {
      for (let i = 0; i < batch.count; i++) ids.push(batch.at(i));
    });
    return ids;
  }

  async array(n: number, options?: CallOptions): Promise<BigUint64Array> {
    checkCount(n);
    checkWidth(this.width.size);
    const ids = new BigUint64Array(n);
    const own = Buffer.from(ids.buffer);
    await this.#split(n, options, own, (batch, at) => {
      if (batch.bytes.buffer !== own.buffer) batch.bytes.copy(own, 8 * at); // the layout has no runs
    });
    if (new Uint8Array(Uint16Array.of(1).buffer)[0]) own.swap64(); // little-endian
    return ids;
  }

  [Symbol.asyncIterator](): AsyncIterator<ID, never> {
    const next = async (): Promise<{ value: ID }> => {
      const value = this.#take();
      return value === undefined ? this.#wait().then((value) => ({ value })) : { value };
    };
    return { next };
  }

  close(): Promise<void> {
    if (!this.#closed) {
      this.#closed = true;
      this.forget();
      this.#batch = this.#none;
      this.#ready = undefined;
      this.#next = this.#limit = 0;
      for (const x of this.probes) x.cancel();
      for (const call of this.#takes) call.finish(closed(this.name));
      this.#fetch?.finish(closed(this.name));
    }
    return Promise.resolve();
  }

  /**
   * renew makes IDs available from #next to #limit, as far as they have been fetched and are not
   * too old, and reports whether there are any.
   */
  #renew(): boolean {
    for (;;) {
      const { count } = this.#batch;
      if (this.#next < count) {
        const { wall, mono } = this.#fetched;
        // The wall clock goes on during a suspend, and the other one is never set.
        const age = Math.max(Date.now() - wall, now() - mono);
        if (age < this.core.validity) {
          if (this.#next >= this.#low && !this.#ready) {
            this.#low = count;
            this.#begin();
          }
          const most = this.core.validity < shortValidity ? 1 : unchecked;
          this.#limit = Math.min(this.#next + most, this.#next < this.#low ? this.#low : count);
          this.#endTurnLater();
          return true;
        }
        if (count - this.#next > count / 2) this.#size = Math.max(1, this.#size >> 1);
      } else if (count > 0 && !this.#isSlow && count >= this.#size && now() - this.#begun < soon) {
        this.#size = Math.min(2 * this.#size, this.core.maxBatch);
      }
      this.#batch = this.#none;
      this.#next = this.#limit = 0;
      if (!this.#ready) return false;
      this.#put(this.#ready);
      this.#ready = undefined;
    }
  }

  /** put makes a batch the current one. */
  #put(ready: { batch: Batch<ID>; began: Moment }): void {
    this.#batch = ready.batch;
    this.#fetched = ready.began;
    this.#next = this.#limit = 0;
    this.#low = ready.batch.count >> 1;
    this.#begun = now();
  }

  /**
   * endTurnLater has the clock read again in the next turn of the event loop, before which the
   * process may be suspended.
   */
  #endTurnLater(): void {
    if (this.#turn) return;
    this.#turn = true;
    setImmediate(this.#endTurn);
  }

  readonly #endTurn = (): void => {
    this.#turn = false;
    this.#limit = Math.min(this.#limit, this.#next);
  };

  /** begin begins a fetch, unless one is in progress. */
  #begin(): void {
    if (this.#fetch || this.#closed) return;
    const began = { wall: Date.now(), mono: now() };
    const count = Math.min(this.core.maxBatch, Math.max(this.#size, this.#isSlow ? 0 : this.#waiters.size));
    this.#rounds++;
    this.#fetch = new Call<ID>(this, count, (result) => {
      this.#fetch = undefined;
      this.#arrive(result, began);
    });
  }

  /** arrive hands the IDs of a fetch to the calls that wait, or its error to those for which it began. */
  #arrive(result: Batch<ID> | Error, began: Moment): void {
    if (result instanceof Error) {
      for (const w of this.#waiters) if (this.#closed || w.round < this.#rounds) w.reject(result);
      // Fetch again when half of the rest is used.
      this.#low = this.#next + ((this.#batch.count - this.#next + 1) >> 1);
      this.#limit = Math.min(this.#limit, this.#low);
    } else {
      this.#isSlow = now() - began.mono >= slowAfter;
      this.#ready = { batch: result, began };
      if (this.#waiters.size > 0) {
        // They get these IDs however short the validity is.
        this.#put(this.#ready);
        this.#ready = undefined;
        for (const w of this.#waiters) {
          if (this.#next === result.count) break;
          w.resolve(result.at(this.#next++));
        }
        this.#limit = this.#next;
      }
    }
    if (this.#waiters.size > 0 && !this.#renew()) this.#begin();
  }

  /** wait returns the next ID once it has arrived. */
  #wait(signal?: AbortSignal): Promise<ID> {
    if (this.#closed) return Promise.reject(closed(this.name));
    return this.#hold<ID>(signal, (resolve, reject) => {
      const waiter = { round: this.#rounds, resolve, reject };
      this.#waiters.add(waiter);
      this.#begin();
      return () => this.#waiters.delete(waiter);
    });
  }

  /** split requests n IDs, as many as a request can have at a time. */
  async #split(
    n: number,
    options: CallOptions | undefined,
    into: Buffer | undefined,
    add: (batch: Batch<ID>, at: number) => void,
  ): Promise<void> {
    const signal = signalOf(options);
    for (let at = 0; at < n;) {
      const batch = await this.#direct(Math.min(n - at, maxTake), signal, into?.subarray(8 * at));
      add(batch, at);
      at += batch.count;
    }
  }

  /** direct requests up to n IDs for one caller. */
  #direct(n: number, signal: AbortSignal | undefined, into?: Buffer): Promise<Batch<ID>> {
    if (this.#closed) return Promise.reject(closed(this.name));
    return this.#hold<Batch<ID>>(signal, (resolve, reject) => {
      const done = (result: Batch<ID> | Error): void => {
        if (result instanceof Error) reject(result);
        else resolve(result);
      };
      const call = new Call<ID>(this, n, done, into);
      this.#takes.add(call);
      return () => {
        this.#takes.delete(call);
        call.finish(closed(this.name)); // unless it has finished
      };
    });
  }

  /**
   * hold returns the result of a wait that begin begins, and keeps the program alive until then. An
   * abort ends it. The function that begin returns is called at the end.
   */
  #hold<T>(
    signal: AbortSignal | undefined,
    begin: (resolve: (value: T) => void, reject: (error: Error) => void) => () => void,
  ): Promise<T> {
    if (signal?.aborted) return Promise.reject(signal.reason as Error);
    const { core } = this;
    core.hold();
    return new Promise<T>((resolve, reject) => {
      let over = false;
      const leave = (settle: () => void): void => {
        if (over) return;
        over = true;
        core.release();
        signal?.removeEventListener("abort", abort);
        settle();
        end();
      };
      const fail = (error: Error): void => leave(() => reject(error));
      const abort = (): void => fail(signal?.reason as Error);
      signal?.addEventListener("abort", abort);
      const end = begin((value) => leave(() => resolve(value)), fail);
    });
  }
}
