/** The IDs of an answer, in their order. */
export interface Batch<ID> {
  readonly count: number;
  /** The IDs, packed. */
  readonly bytes: Buffer;
  /** at makes the ID with an index below count. */
  at(index: number): ID;
}

/** A Width is how IDs of one width are read. */
export interface Width<ID> {
  /** Bytes of an ID. */
  readonly size: 8 | 16;
  readonly method: "sequencer" | "sequencer128";
  /** batch returns the IDs of a packed answer, which has the right length. It keeps the bytes. */
  batch(bytes: Buffer): Batch<ID>;
}

class Batch64 implements Batch<bigint> {
  readonly #view: DataView;
  constructor(
    readonly count: number,
    readonly bytes: Buffer,
  ) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset);
  }
  at(index: number): bigint {
    return this.#view.getBigUint64(8 * index);
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
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let ascending = true;
  for (let at = 0; at < bytes.length; at += size) {
    let isZero = true;
    let growth = 0; // of the first word that differs from the previous ID's
    for (let word = at; word < at + size; word += 4) {
      const value = view.getUint32(word);
      isZero &&= value === 0;
      if (at > 0) growth ||= value - view.getUint32(word - size);
    }
    if (isZero) return "it has the ID 0, which is never made";
    ascending &&= at === 0 || growth > 0;
  }
  // IDs of a layout whose time is not on top come in any order.
  if (!ascending) {
    const all = new Set<string>();
    for (let at = 0; at < bytes.length; at += size) all.add(bytes.toString("latin1", at, at + size));
    if (all.size < count) return "it contains an ID twice";
  }
  return "";
}
