/** The IDs of an answer, in their order. `at` makes the ID with an index below `count`. */
export interface Batch<ID> {
  readonly count: number;
  at(index: number): ID;
}

/** A Width is how IDs of one width are read. */
export interface Width<ID> {
  /** Bytes of an ID. */
  readonly size: 8 | 16;
  readonly method: "sequencer" | "sequencer128";
  /** batch returns the IDs of a packed answer, which has the right length. */
  batch(bytes: Buffer): Batch<ID>;
}

class Batch64 implements Batch<bigint> {
  readonly #ids: BigUint64Array;
  constructor(
    readonly count: number,
    bytes: Buffer,
  ) {
    this.#ids = new BigUint64Array(count);
    for (let i = 0; i < count; i++) this.#ids[i] = bytes.readBigUInt64BE(8 * i);
  }
  at(index: number): bigint {
    return this.#ids[index]!;
  }
}

class Batch128 implements Batch<string> {
  constructor(
    readonly count: number,
    readonly bytes: Buffer,
  ) {}
  at(index: number): string {
    const hex = this.bytes.toString("hex", 16 * index, 16 * index + 16);
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  }
}

export const width64: Width<bigint> = {
  size: 8,
  method: "sequencer",
  batch: (bytes) => new Batch64(bytes.length / 8, bytes),
};

export const width128: Width<string> = {
  size: 16,
  method: "sequencer128",
  batch: (bytes) => new Batch128(bytes.length / 16, bytes),
};

/**
 * faultOf returns what is wrong with a packed answer to a request for count IDs, or "". Anything
 * other than exactly the requested number of IDs, each of them once, is wrong.
 */
export function faultOf(bytes: Buffer, size: number, count: number): string {
  if (bytes.length !== count * size)
    return `it has ${bytes.length} bytes, not the ${count * size} of ${count} IDs of ${8 * size} bits`;
  let ascending = true;
  for (let i = 0; i < count; i++) {
    const at = i * size;
    if (bytes.readBigUInt64BE(at) === 0n && (size === 8 || bytes.readBigUInt64BE(at + 8) === 0n))
      return "it has the ID 0, which is never made";
    ascending &&= i === 0 || bytes.compare(bytes, at - size, at, at, at + size) > 0;
  }
  // IDs of a layout whose time is not on top come in any order.
  if (!ascending) {
    const all = new Set<string>();
    for (let at = 0; at < bytes.length; at += size) all.add(bytes.toString("latin1", at, at + size));
    if (all.size < count) return "it contains an ID twice";
  }
  return "";
}
