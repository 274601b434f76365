/**
 * A replacer for JSON.stringify that writes a bigint as a text of its digits. A JSON number would be
 * rounded above 2^53 by most readers.
 */
export function replacer(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? value.toString() : value;
}

/**
 * Lets JSON.stringify itself write a bigint as a text of its digits, in the whole program. It sets
 * BigInt.prototype.toJSON, so call it only in a program, not in a library.
 */
export function installToJSON(): void {
  Object.defineProperty(BigInt.prototype, "toJSON", {
    value(this: bigint) {
      return this.toString();
    },
    configurable: true,
    writable: true,
  });
}
