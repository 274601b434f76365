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
  /** Closes the sequencer. Fetched IDs are lost, and calls fail with a ClosedError, including those that wait. */
  close(): Promise<void>;
}

/** The maximum number of IDs in a request. */
export const maxTake = 100_000;

/** checkTake throws if take cannot give n IDs. */
export function checkTake(n: number): void {
  if (!Number.isSafeInteger(n) || n < 1) throw new RangeError(`take(${n}): n must be an integer from 1`);
}
