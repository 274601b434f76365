import type { Sequencers } from "./client.js";
import { ClosedError, show } from "./errors.js";
import { checkCount, checkName, checkWidth, signalOf, type CallOptions, type Sequencer } from "./sequencer.js";

/** Options of a FakeClient. */
export interface FakeOptions {
  /** The clock, in Unix milliseconds; by default it always shows 2026-07-01T00:00:00Z. */
  now?: () => number;
  /** The node ID in IDs of 64 bits, 0 to 1023; 0 by default. */
  node?: number;
  /** Chooses the random bits in IDs of 128 bits; 1 by default. */
  seed?: number;
}

const epoch = Date.UTC(2026, 0, 1);
const usualTime = Date.UTC(2026, 6, 1);

/**
 * A FakeClient is a Client for unit tests: it makes increasing IDs without a server, the same in
 * every run. IDs of 64 bits have the layout default, IDs of 128 bits the layout uuidv7. The first ID
 * of each millisecond is odd: from 2026-01-26 on no number holds it, so a test notices rounding.
 */
export class FakeClient implements Sequencers {
  /** While it is set, next and take fail with it, and tryNext returns undefined. */
  error: Error | undefined;
  readonly #all = new Map<string, Fake<bigint>>();
  readonly #all128 = new Map<string, Fake<string>>();
  readonly #now: () => number;
  readonly #node: number;
  readonly #seed: number;

  constructor({ now = () => usualTime, node = 0, seed = 1 }: FakeOptions = {}) {
    if (typeof now !== "function") throw new TypeError(`now is ${show(now)}: it must be a function`);
    if (!Number.isInteger(node) || node < 0 || node > 1023)
      throw new RangeError(`node is ${show(node)}: it must be an integer from 0 to 1023`);
    if (!Number.isInteger(seed)) throw new RangeError(`seed is ${show(seed)}: it must be an integer`);
    [this.#now, this.#node, this.#seed] = [now, node, seed];
  }

  sequencer(name: string): Sequencer<bigint> {
    // time:41 node:10 seq:12
    return this.#get(this.#all, name, 8, (tick, seq) => {
      const time = tick - epoch;
      if (time < 0 || time >= 2 ** 41)
        throw new RangeError(`the clock shows ${tick}: the layout default has times from 2026-01-01 to 2095-09-07`);
      return (BigInt(time) << 22n) | BigInt((this.#node << 12) | seq);
    });
  }

  sequencer128(name: string): Sequencer<string> {
    const random = randomBits(this.#seed);
    // time:48 version:4 seq:12 variant:2 rand:62
    return this.#get(this.#all128, name, 16, (tick, seq) => {
      const hex = (n: number, width: number): string => n.toString(16).padStart(width, "0");
      const time = hex(tick, 12);
      const rest = hex((random() & 0x3fff) | 0x8000, 4) + "-" + hex(random() & 0xffff, 4) + hex(random() >>> 0, 8);
      return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(seq, 3)}-${rest}`;
    });
  }

  async close(): Promise<void> {
    for (const all of [this.#all, this.#all128]) for (const s of all.values()) await s.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #get<ID>(all: Map<string, Fake<ID>>, name: string, size: number, make: (tick: number, seq: number) => ID): Fake<ID> {
    checkName(name);
    let s = all.get(name);
    if (!s) all.set(name, (s = new Fake(this, name, size, this.#now, make)));
    return s;
  }
}

/** A Fake makes IDs: 4095 in each tick, and then it runs ahead of the clock. */
class Fake<ID> implements Sequencer<ID> {
  #tick = -1;
  #seq = 0;
  #closed = false;

  constructor(
    private readonly client: FakeClient,
    readonly name: string,
    private readonly size: number,
    private readonly now: () => number,
    private readonly make: (tick: number, seq: number) => ID,
  ) {}

  tryNext(): ID | undefined {
    if (this.#closed) throw new ClosedError(`sequencer ${JSON.stringify(this.name)} is closed`);
    return this.client.error ? undefined : this.#make();
  }

  // A call fails by its promise, as that of a Client does.
  async next(options?: CallOptions): Promise<ID> {
    return (await this.take(1, options))[0] as ID;
  }

  // eslint-disable-next-line @typescript-eslint/require-await
  async take(n: number, options?: CallOptions): Promise<ID[]> {
    checkCount(n);
    signalOf(options)?.throwIfAborted();
    if (this.#closed) throw new ClosedError(`sequencer ${JSON.stringify(this.name)} is closed`);
    if (this.client.error) throw this.client.error;
    return Array.from({ length: n }, () => this.#make());
  }

  async array(n: number, options?: CallOptions): Promise<BigUint64Array> {
    checkWidth(this.size);
    return BigUint64Array.from((await this.take(n, options)) as bigint[]);
  }

  [Symbol.asyncIterator](): AsyncIterator<ID, never> {
    return { next: async () => ({ value: await this.next() }) };
  }

  close(): Promise<void> {
    this.#closed = true;
    return Promise.resolve();
  }

  #make(): ID {
    const time = Math.floor(this.now());
    if (time > this.#tick) [this.#tick, this.#seq] = [time, 1];
    else if (++this.#seq > 4095) [this.#tick, this.#seq] = [this.#tick + 1, 0];
    return this.make(this.#tick, this.#seq);
  }
}

/** randomBits returns a function that gives 32 random bits, always the same for a seed (mulberry32). */
function randomBits(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return t ^ (t >>> 14);
  };
}
