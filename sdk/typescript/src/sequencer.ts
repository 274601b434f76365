import { show } from "./errors.js";

/** Options of one call. */
export interface CallOptions {
  /** Ends the wait for an ID. Other callers still get the IDs of a request in progress. */
  signal?: AbortSignal | undefined;
}

/**
 * A Sequencer hands out the IDs of one name: `bigint` for IDs of 64 bits, and `string` in the form
 * 8-4-4-4-12 for IDs of 128 bits. Iteration gives the same IDs as `next`.
 */
export interface Sequencer<ID> extends AsyncIterable<ID> {
  readonly name: string;
  /**
   * Returns the next ID. It waits only if none has been fetched: for the first one, after a long
   * pause, and if IDs are used faster than they arrive.
   */
  next(options?: CallOptions): Promise<ID>;
  /** Returns the next ID if one has been fetched. Otherwise it returns undefined and triggers a fetch. */
  tryNext(): ID | undefined;
  /** Requests n IDs from servers, up to 100,000 in a request: they are made now, not fetched before. */
  take(n: number, options?: CallOptions): Promise<ID[]>;
  /** Is like take for IDs of 64 bits, without a bigint for each: use it for a million. */
  array(this: Sequencer<bigint>, n: number, options?: CallOptions): Promise<BigUint64Array>;
  /** Closes the sequencer. Fetched IDs are lost, and calls fail with a ClosedError, including those that wait. */
  close(): Promise<void>;
}

/** The maximum number of IDs in a request. */
export const maxTake = 100_000;

/** checkName throws if a sequencer cannot have this name. */
export function checkName(name: string): void {
  if (typeof name !== "string" || !/^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/.test(name))
    throw new TypeError(
      `${show(name)} is not the name of a sequencer: ` +
        "it has 1 to 128 letters, digits and . _ - :, and begins with a letter or a digit",
    );
}

/** checkCount throws if a call cannot give n IDs. */
export function checkCount(n: number): void {
  const most = 2 ** 32 - 1; // of an array
  if (!Number.isInteger(n) || n < 1 || n > most)
    throw new RangeError(`n is ${show(n)}: it must be an integer from 1 to ${most}`);
}

/** checkWidth throws if IDs of this many bytes do not fit an array. */
export function checkWidth(size: number): void {
  if (size !== 8) throw new TypeError("array has IDs of 64 bits: use take for those of 128");
}

/** signalOf returns the signal in the options of a call, and throws if they are something else. */
export function signalOf(options: CallOptions | undefined): AbortSignal | undefined {
  if (options === undefined) return undefined;
  if (
    typeof options !== "object" ||
    (options as unknown) === null ||
    "aborted" in options ||
    Object.keys(options).some((key) => key !== "signal")
  )
    throw new TypeError(`the options of a call are ${show(options)}: write { signal }`);
  const signal = options.signal as Partial<AbortSignal> | null | undefined;
  if (signal === undefined || (typeof signal?.aborted === "boolean" && typeof signal.addEventListener === "function"))
    return signal as AbortSignal | undefined;
  throw new TypeError(`signal is ${show(signal)}: it must be an AbortSignal`);
}
