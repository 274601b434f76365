import { createCipheriv, type Cipher } from "node:crypto";
import { needText, ParseError } from "./errors.js";
import { bitsOf } from "./format.js";
import { decode, encode, uuidOf } from "./typed.js";

const low62 = (1n << 62n) - 1n;

/**
 * Veils and unveils the IDs of one sequencer. Veiled IDs hide when and how many IDs were made. They
 * do not authorize, and a wrong key gives another ID and not an error. docs/veil.md specifies them.
 */
export class Veiled {
  readonly #ciphers: Map<number, FF1>;
  readonly #newest: number;
  readonly #bits: number;

  /**
   * The keys are lines of hexadecimal digits, each with its number and a colon in front unless it
   * is 1. The key with the highest number writes. `bits` says how many bits are veiled: 63 for the
   * layout default, 53 for js53, 122 for uuidv7, 64 for layouts that use all bits.
   */
  constructor(keys: string, sequencer: string, bits: 53 | 63 | 64 | 122 = 63) {
    if (![53, 63, 64, 122].includes(bits)) throw new RangeError("bits must be 53, 63, 64 or 122");
    needText("keys", keys);
    needText("sequencer", sequencer);
    if (!sequencer) throw new TypeError("sequencer is empty: write the name of the sequencer");
    this.#bits = bits;
    this.#ciphers = new Map([...parseKeys(keys)].map(([number, key]) => [number, new FF1(key, sequencer, bits)]));
    this.#newest = Math.max(...this.#ciphers.keys());
  }

  /** Returns the veiled text of an ID, with the number of the newest key. */
  format(id: bigint | string): string {
    return `v${this.#newest}_${encode(this.#turn(id, this.#newest, true))}`;
  }

  /** Returns the ID of 64 bits of a veiled text. It throws a ParseError if format cannot have written the text. */
  parse(text: string): bigint {
    return this.#parse(text, 64) as bigint;
  }

  /** Is like parse, for UUIDs. */
  parse128(text: string): string {
    return this.#parse(text, 128) as string;
  }

  /** Returns the veiled ID as a number or UUID, which does not name its key. */
  veil<ID extends bigint | string>(id: ID): ID {
    return this.#turn(id, undefined, true) as ID;
  }

  /** Returns the ID of a veiled number or UUID. Any other one gives some ID too. */
  unveil<ID extends bigint | string>(veiled: ID): ID {
    return this.#turn(veiled, undefined, false) as ID;
  }

  #parse(text: string, bits: 64 | 128): bigint | string {
    if (typeof text !== "string") throw new ParseError(text, "it is not a string");
    const [prefix = "", number = 0] = /^v([1-9]\d{0,3})_/.exec(text) ?? [];
    if (!prefix) throw new ParseError(text, "it does not begin with v, the number of a key and _");
    if (!this.#ciphers.has(Number(number)))
      throw new ParseError(text, `it was veiled with key ${number}, which is not known`);
    const veiled = decode(text, prefix.length, bits);
    try {
      return this.#turn(bits === 64 ? veiled : uuidOf(veiled), Number(number), false);
    } catch (error) {
      throw new ParseError(text, (error as Error).message);
    }
  }

  #turn(id: bigint | string, key: number | undefined, veil: boolean): bigint | string {
    if (key === undefined && this.#ciphers.size > 1)
      throw new TypeError("veiled numbers do not name their key: give only one in keys");
    const [what, version, other] = veil ? ["ID", 7n, 8n] : ["veiled ID", 8n, 7n];
    const cipher = this.#ciphers.get(key ?? this.#newest)!;
    const x = bitsOf(id);
    if ((typeof id === "string") !== (this.#bits === 122))
      throw new TypeError(`${what} ${id} has not the width of the layout's IDs`);
    if (typeof id === "bigint") {
      if (x === 0n || x >> BigInt(this.#bits))
        throw new RangeError(`${what} ${id} is outside of 1 to ${(1n << BigInt(this.#bits)) - 1n}`);
      return cipher.permute(x, veil);
    }
    if (((x >> 62n) & 3n) !== 2n || ((x >> 76n) & 15n) !== version)
      throw new TypeError(`${what} ${id} is not a UUID of version ${version}`);
    const free = ((x >> 80n) << 74n) | (((x >> 64n) & 0xfffn) << 62n) | (x & low62);
    if (free === 0n) throw new RangeError(`${what} ${id} has no bits besides version and variant`);
    const y = cipher.permute(free, veil);
    const top = ((y >> 74n) << 16n) | (other << 12n) | ((y >> 62n) & 0xfffn);
    return uuidOf((top << 64n) | (2n << 62n) | (y & low62));
  }
}

/** parseKeys parses the lines of a file of keys. Errors do not contain keys. */
function parseKeys(text: string): Map<number, Buffer> {
  const keys = new Map<number, Buffer>();
  for (const [i, line] of text.split("\n").entries()) {
    if (/^\s*(#|$)/.test(line)) continue;
    const found = /^\s*(?:([1-9]\d{0,3}): *)?([\da-f]*)\s*$/i.exec(line);
    if (!found) throw new TypeError(`keys: line ${i + 1}: write hexadecimal digits, or NUMBER:DIGITS`);
    const [number, key] = [Number(found[1] ?? 1), found[2] ?? ""];
    if (![32, 48, 64].includes(key.length))
      throw new TypeError(`keys: line ${i + 1}: the key has ${key.length} digits: use 32, 48 or 64`);
    if (keys.has(number)) throw new TypeError(`keys: line ${i + 1}: key ${number} is there twice`);
    keys.set(number, Buffer.from(key, "hex"));
  }
  if (keys.size === 0) throw new TypeError("keys: no key found: write 64 digits, as from openssl rand -hex 32");
  return keys;
}

/** FF1 of NIST SP 800-38G with AES, radix 2 and ten rounds, for numbers from 1. */
class FF1 {
  readonly #aes: Cipher;
  readonly #widths: [bigint, bigint];
  readonly #size: number; // bytes of a half
  readonly #last: bigint;

  constructor(key: Buffer, sequencer: string, bits: number) {
    this.#aes = createCipheriv(`aes-${8 * key.length}-ecb`, key, null).setAutoPadding(false);
    this.#widths = [BigInt(bits >> 1), BigInt(bits - (bits >> 1))];
    this.#size = Math.ceil(Number(this.#widths[1]) / 8);
    const tweak = Buffer.from(`${sequencer}/${bits}`);
    const head = Buffer.alloc(16 + 16 * Math.ceil((tweak.length + 1 + this.#size) / 16));
    head.set([1, 2, 1, 0, 0, 2, 10, bits >> 1, 0, 0, 0, bits]);
    head.writeUInt32BE(tweak.length, 12);
    head.set(tweak, 16);
    // Of the message that a round hashes, only the last block changes.
    this.#last = 0n;
    for (let at = 0; at < head.length; at += 16) {
      if (at > 0) this.#last = this.#encrypt(this.#last);
      this.#last ^= BigInt("0x" + head.toString("hex", at, at + 16));
    }
  }

  permute(id: bigint, encrypt: boolean): bigint {
    const unused = BigInt(128 - 8 * (4 * Math.ceil(this.#size / 4) + 4)); // of the hash
    const low = this.#widths[1];
    do {
      let [a, b] = [id >> low, BigInt.asUintN(Number(low), id)];
      if (!encrypt) [a, b] = [b, a];
      for (let n = 0; n < 10; n++) {
        const i = encrypt ? n : 9 - n;
        const hash = this.#encrypt(this.#last ^ (BigInt(i) << BigInt(8 * this.#size)) ^ b) >> unused;
        [a, b] = [b, BigInt.asUintN(Number(this.#widths[i % 2]), encrypt ? a + hash : a - hash)];
      }
      if (!encrypt) [a, b] = [b, a];
      id = (a << low) | b;
    } while (id === 0n);
    return id;
  }

  #encrypt(block: bigint): bigint {
    return BigInt("0x" + this.#aes.update(block.toString(16).padStart(32, "0"), "hex", "hex"));
  }
}
