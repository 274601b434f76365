import { printable, quote } from "./errors.js";

/** A Width is how IDs of one width are read. */
export interface Width<ID> {
  /** Bytes of an ID. */
  readonly size: 8 | 16;
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
  read: ({ view }, index) => view.getBigUint64(8 * index),
};

export const width128: Width<string> = {
  size: 16,
  read: ({ bytes }, index) => {
    const hex = bytes.toString("hex", 16 * index, 16 * index + 16);
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  },
};

/** wrongLength says that an answer has another number of bytes than so many IDs. */
export function wrongLength(length: number, size: number, count: number): string {
  return `it has ${length} bytes, not the ${count * size} of ${count} IDs of ${8 * size} bits`;
}

/** otherWidth says that a sequencer has IDs of so many bytes, and not of the expected ones. */
export function otherWidth(size: number): string {
  const method = size === 8 ? "sequencer" : "sequencer128";
  return `the sequencer has IDs of ${8 * size} bits: use the client's method ${method}`;
}

/** The most bytes of an answer with runs, for each ID: those of a run. */
export const maxRun = 128;

/** expand writes the IDs of runs into bytes, packed, and returns what is wrong with them, or "". */
export function expand(answer: Buffer, bytes: Buffer): string {
  const text = answer.toString("latin1");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let at = 0;
  try {
    for (const run of (JSON.parse(text) as { runs: { first: string; step: string; count: number }[] }).runs) {
      if (/^[\da-f]{32}$/.test(run.first)) return otherWidth(16);
      if (!/^[\da-f]{16}$/.test(run.first) || !/^[1-9]\d{0,18}$/.test(run.step) || !(run.count > 0))
        throw new TypeError("not a run");
      const first = BigInt("0x" + run.first);
      const step = BigInt(run.step);
      if ((first + step * BigInt(run.count - 1)) >> 64n) return "a run exceeds the greatest ID";
      const end = at + 8 * run.count;
      if (end > bytes.length) return `it has more IDs than the ${bytes.length / 8} requested`;
      const [stepHigh, stepLow] = [Number(step >> 32n), Number(step & 0xffff_ffffn)];
      let [high, low] = [Number(first >> 32n), Number(first & 0xffff_ffffn)];
      for (; at < end; at += 8) {
        view.setUint32(at, high);
        view.setUint32(at + 4, low);
        low += stepLow;
        high += stepHigh + (low > 0xffff_ffff ? 1 : 0);
        low >>>= 0;
      }
    }
  } catch {
    return `its runs cannot be read: ${quote(printable(text))}`;
  }
  return at < bytes.length ? `it has ${at / 8} IDs, not the ${bytes.length / 8} requested` : "";
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
