import { needText, ParseError, quote } from "./errors.js";
import { bitsOf } from "./format.js";

const digits = "0123456789abcdefghjkmnpqrstvwxyz";

/** What a character that is not a digit may mean. */
const meant = new Map([
  ["i", "1"],
  ["l", "1"],
  ["o", "0"],
  ["u", "v"],
]);

/**
 * Formats and parses the IDs of one prefix: `order_03887nf7a8003`. The text is the prefix, `_` and
 * the ID in Crockford's base32, in lower case: 13 digits for IDs of 64 bits, 26 for 128. These are
 * the rules of TypeID 0.3; docs/forms.md specifies them.
 */
export class Typed {
  /**
   * A prefix has 1 to 63 characters of a-z and _, and begins and ends with a letter. With an empty
   * prefix, the text is only the digits.
   */
  constructor(readonly prefix: string) {
    needText("prefix", prefix);
    const fault = prefix === "" ? "" : faultOf(prefix);
    if (fault) throw new TypeError(fault);
  }

  /** Returns the typed text of an ID. */
  format(id: bigint | string): string {
    return (this.prefix && this.prefix + "_") + encode(id);
  }

  /** Returns the ID of 64 bits of a typed text. It throws a ParseError unless format writes exactly this text. */
  parse(text: string): bigint {
    return decode(text, this.#start(text), 64);
  }

  /** Is like parse, for IDs of 128 bits. */
  parse128(text: string): string {
    return uuidOf(decode(text, this.#start(text), 128));
  }

  /** start returns where the digits begin. */
  #start(text: string): number {
    if (typeof text !== "string") fail(text, "it is not a string");
    const end = text.lastIndexOf("_");
    const prefix = text.slice(0, Math.max(end, 0));
    const fault = end < 0 ? "" : faultOf(prefix);
    if (fault) fail(text, fault);
    if (prefix !== this.prefix) fail(text, `its prefix is ${quote(prefix)}, not ${quote(this.prefix)}`);
    return end + 1;
  }
}

/** encode returns the digits of an ID: 13 for 64 bits, 26 for 128. */
export function encode(id: bigint | string): string {
  const bits = bitsOf(id);
  let text = "";
  for (let shift = typeof id === "bigint" ? 60n : 125n; shift >= 0n; shift -= 5n)
    text += digits.charAt(Number((bits >> shift) & 31n));
  return text;
}

/** decode returns the number of a text whose digits begin at start. */
export function decode(text: string, start: number, bits: 64 | 128): bigint {
  let number = 0n;
  let at = start;
  for (const c of text.slice(start, start + 100)) {
    const digit = digits.indexOf(c);
    const lower = c.toLowerCase();
    if (digit >= 0) number = (number << 5n) | BigInt(digit);
    else if (digits.includes(lower))
      fail(text, `${quote(c)} at offset ${at} is in upper case; it may mean ${quote(lower)}`);
    else if (meant.has(lower))
      fail(text, `${quote(c)} at offset ${at} is not a digit; it may mean ${quote(meant.get(lower) ?? "")}`);
    else fail(text, `${quote(c)} at offset ${at} is not a digit; digits are ${digits}`);
    at += c.length;
  }
  const count = text.length - start;
  if (count !== 13 && count !== 26)
    fail(text, `it has ${count} digits after the prefix; an ID of 64 bits has 13, and one of 128 has 26`);
  const has = count === 13 ? 64 : 128;
  if (number >> BigInt(has))
    fail(
      text,
      `${quote(text.charAt(start))} at offset ${start} is more than "${has === 64 ? "f" : 7}": more than ${has} bits`,
    );
  if (has !== bits) fail(text, `it has ${has} bits after the prefix, not ${bits}`);
  return number;
}

/** uuidOf writes a number of 128 bits in the form 8-4-4-4-12. */
export function uuidOf(bits: bigint): string {
  return bits
    .toString(16)
    .padStart(32, "0")
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** faultOf returns what is wrong with a prefix, or "". */
function faultOf(prefix: string): string {
  const other = /[^a-z_]/u.exec(prefix);
  const reason =
    prefix === ""
      ? "is empty"
      : prefix.length > 63
        ? `has ${prefix.length} characters`
        : other
          ? `has ${quote(other[0])} at offset ${other.index}`
          : prefix.startsWith("_") || prefix.endsWith("_")
            ? "begins or ends with an underscore"
            : "";
  return (
    reason &&
    `prefix ${quote(prefix)} ${reason}; a prefix has 1 to 63 characters of a-z and _, and begins and ends with a letter`
  );
}

function fail(text: string, reason: string): never {
  throw new ParseError(text, reason);
}
