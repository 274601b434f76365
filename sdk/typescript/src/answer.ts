/** A Width is how IDs of one width are read. */
export interface Width<ID> {
  /** Bytes of an ID. */
  readonly size: 8 | 16;
  readonly method: "sequencer" | "sequencer128";
  read(batch: Batch<ID>, index: number): ID;
}

/** A Batch is the IDs of an answer, in their order. */
export class Batch<ID> {
  readonly count: number;
  readonly view: DataView;

  constructor(
    private readonly width: Width<ID>,
    readonly bytes: Buffer,
  ) {
    this.count = bytes.length / width.size;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  at(index: number): ID {
    return this.width.read(this, index);
  }
}

export const width64: Width<bigint> = {
  size: 8,
  method: "sequencer",
  read: ({ view }, index) => view.getBigUint64(8 * index),
};

export const width128: Width<string> = {
  size: 16,
  method: "sequencer128",
  read: ({ bytes }, index) => {
    const hex = bytes.toString("hex", 16 * index, 16 * index + 16);
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  },
};

/** wrongLength says that an answer has another number of bytes than so many IDs. */
export function wrongLength(length: number, size: number, count: number): string {
  return `it has ${length} bytes, not the ${count * size} of ${count} IDs of ${8 * size} bits`;
}

/**
 * faultOf returns what is wrong with a packed answer to a request for count IDs, or "". Anything
 * other than exactly the requested number of IDs, each of them once, is wrong.
 */
export function faultOf(bytes: Buffer, size: number, count: number): string {
  if (bytes.length !== count * size) return wrongLength(bytes.length, size, count);
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
