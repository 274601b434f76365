import { show } from "./errors.js";

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** The alphabets with a name of their own. */
const named = new Map([
  ["dec", digits.slice(0, 10)],
  ["hex", "0123456789abcdef"],
  ["bin", "01"],
  ["base32", "0123456789ABCDEFGHJKMNPQRSTVWXYZ"], // Crockford's
  ["base58", "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"], // Bitcoin's
]);

/**
 * Writes an ID as a text in one of the server's formats: dec, hex, bin, base32, base36, base58,
 * base62, base2 to base62, flake2 to flake62, or uuid. dec and flake2 to flake62 have no leading
 * zeros; texts of the others have the width of the greatest ID, and sort like the IDs. An ID of 64
 * bits is a bigint, one of 128 bits a string in the form 8-4-4-4-12.
 */
export function format(id: bigint | string, format: string): string {
  const bits = bitsOf(id);
  const wide = typeof id === "string";
  if (wide && format === "uuid") return id.toLowerCase();
  const [, kind, base] = /^(base|flake)([1-9]\d?)$/.exec(format) ?? [];
  const alphabet =
    named.get(format) ?? (Number(base) >= 2 && Number(base) <= 62 ? digits.slice(0, Number(base)) : undefined);
  if (alphabet === undefined)
    throw new TypeError(
      `${show(format)} is not a format of IDs of ${wide ? 128 : 64} bits: write dec, hex, bin, base32, base36, ` +
        `base58, base62, base2 to base62, flake2 to flake62${wide ? " or uuid" : ""}`,
    );
  const n = BigInt(alphabet.length);
  let text = "";
  for (let rest = bits; rest > 0n; rest /= n) text = alphabet.charAt(Number(rest % n)) + text;
  const pad = format !== "dec" && kind !== "flake";
  const width = pad ? Math.ceil((wide ? 128 : 64) / Math.log2(alphabet.length)) : 1;
  return text.padStart(width, alphabet.charAt(0));
}

/** bitsOf returns an ID as a number. */
export function bitsOf(id: bigint | string): bigint {
  if (typeof id === "string") {
    if (!/^[\da-f]{8}-([\da-f]{4}-){3}[\da-f]{12}$/i.test(id))
      throw new TypeError(`${show(id)} is not an ID of 128 bits in the form 8-4-4-4-12`);
    return BigInt("0x" + id.replaceAll("-", ""));
  }
  if (typeof id !== "bigint")
    throw new TypeError(`${show(id)} is not an ID: one of 64 bits is a bigint, one of 128 a string`);
  if (BigInt.asUintN(64, id) !== id) throw new RangeError(`${id} is not an ID of 64 bits`);
  return id;
}
