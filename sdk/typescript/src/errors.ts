import { STATUS_CODES } from "node:http";
import { inspect } from "node:util";

/** The base class of all errors of this package except those of invalid arguments. */
export class FirnError extends Error {}

/** A call on a sequencer that is closed, or was closed while the call waited. */
export class ClosedError extends FirnError {}

/** A text that is not an ID of the expected form. The message names the character or prefix. */
export class ParseError extends FirnError {
  /** @internal */
  constructor(text: string, reason: string) {
    super(`parse ID ${show(text)}: ${reason}`);
  }
}

/** An answer other than the requested IDs. None of its IDs is used. */
export class AnswerError extends FirnError {
  constructor(
    readonly sequencer: string,
    /** The server, as in the option `servers`. */
    readonly server: string,
    reason: string,
  ) {
    super(`${place(sequencer, server)}: the answer cannot be used: ${reason}`);
  }
}

/** No server gave the IDs. */
export class UnavailableError extends FirnError {
  constructor(
    readonly sequencer: string,
    /** The last failure of each server. */
    readonly errors: readonly FirnError[],
  ) {
    super(`no server gives IDs of ${quote(sequencer)}: ${errors.map((e) => e.message).join("; ")}`);
  }
}

/**
 * A server's answer to a request that it did not fulfill. `kind` identifies the error; the page of
 * the HTTP API lists the kinds.
 */
export class ServerError extends FirnError {
  constructor(
    readonly sequencer: string,
    /** The server, as in the option `servers`. */
    readonly server: string,
    /** The HTTP status. */
    readonly status: number,
    /** "busy", "detached", …: the problem's type without urn:firn:problem:, or "". */
    readonly kind: string,
    /** What is wrong and what would be right. */
    readonly detail: string,
    /** After how many milliseconds the server asks to retry, or 0. */
    readonly retryAfter: number,
  ) {
    const what = kind || (STATUS_CODES[status] ?? "").toLowerCase();
    const hint = hintOf(kind, status, detail);
    super(`${place(sequencer, server)}: ${[`${status} ${what}`.trim(), detail, hint].filter(Boolean).join(": ")}`);
  }

  /** Whether the same server may fulfill the same request later. @internal */
  get again(): boolean {
    // 502 and 504 come from a proxy that cannot reach its server.
    return [408, 429, 502, 503, 504].includes(this.status);
  }

  /**
   * Whether the server as a whole does not work; most problems concern one sequencer. One without a
   * kind does not come from a Firn server.
   * @internal
   */
  get ofServer(): boolean {
    return wholeServer.includes(this.kind);
  }

  /** Whether the request is wrong, so that probably no server fulfills it. @internal */
  get ofRequest(): boolean {
    return this.status >= 400 && this.status < 500 && !this.again && !this.ofServer;
  }
}

// Names that survive the renaming of classes by bundlers.
const named = { FirnError, ClosedError, ParseError, AnswerError, UnavailableError, ServerError };
for (const [name, { prototype }] of Object.entries(named)) prototype.name = name;

/** The kinds of problems that concern a server as a whole. */
const wholeServer = ["", "unauthorized", "no-store", "foreign-host", "internal", "draining"];

/** What the user of this package can do about some kinds of problems. */
const hints = new Map([
  ["unexpected-body", "something between this program and the server adds a body to requests"],
  ["unexpected-range", "something between this program and the server asks for parts of answers"],
  ["batch-too-large", "take fewer IDs at once, or set a smaller maxBatch"],
  ["cross-site", "something between this program and the server adds the headers of a browser"],
  ["unauthorized", "check the option token"],
  ["forbidden", "the token in the option token needs the role generate for this sequencer"],
  ["no-sequencer", "check the name, or create it: firn sequencer create"],
  ["no-store", "start the server with --store"],
  ["not-found", "check the paths in the option servers"],
  ["foreign-host", "use localhost or a loopback address in the option servers, or start the server with --allow-host"],
  ["bad-config", "run firn config check on the server: its configuration of this sequencer is invalid"],
  ["internal", "see the server's log"],
  ["time-over", "create another sequencer, with more time bits in its layout"],
  ["busy", "clients ask for more IDs than one node ID can make: add servers"],
  ["clock", "correct the server's clock"],
  ["clock-ahead", "compare the server's clock with a time server"],
  ["nodes-exhausted", "stop a server, or choose a layout with more node bits"],
  ["store-unavailable", "see the server's log"],
  ["store-rolled-back", "run firn node fence"],
  ["moved", "ask a server of that store, or bring it back: firn sequencer move"],
  ["detached", "run firn sequencer attach"],
  ["destroyed", "create it again: firn sequencer create"],
  ["bad-record", "see the server's log"],
  ["too-many-names", "start the server with a higher --max-sequencers, or use fewer names"],
  ["rate-limited", "ask less often, or have the limit of this token raised"],
]);

/** hintOf returns the hint for a kind or, without one, for a status. */
function hintOf(kind: string, status: number, detail: string): string {
  if (kind) return hints.get(kind) ?? "";
  if (status === 400 && /https/i.test(detail)) return "the server speaks TLS: write https:// in the option servers";
  if (status === 401 || status === 403) return "check the option token";
  if (status >= 300 && status < 400)
    return "redirects are not followed, as a token would be sent along: put the target address into the option servers";
  if (status < 500) return "is this a Firn server? Check the addresses and paths in the option servers";
  return "";
}

/** Codes of certificates that do not fit. */
const untrusted = /^(UNABLE_TO|SELF_SIGNED|DEPTH_ZERO|CERT_|ERR_TLS_CERT)/;

/** Reasons of OpenSSL for an answer that is not TLS. */
const notTLS = /wrong version number|packet length/;

/** What to change after an error of the connection with a code that starts so. */
const advice: [RegExp, string][] = [
  [/^ECONNREFUSED/, "is the server running, and the port in the option servers right?"],
  [/^(ENOTFOUND|EAI_)/, "check the host name in the option servers"],
  [/^HPE_/, "the answer is not HTTP: is this a Firn server?"],
  [/^ERR_TLS_CERT_ALTNAME/, "use a host name of the certificate in the option servers"],
  [untrusted, "set the option tls.ca to the certificate of the server's authority"],
  [/certificate required/, "set the options tls.cert and tls.key"],
  [notTLS, "the server does not speak TLS: write http:// in the option servers"],
  [/^(EPROTO|ERR_(SSL|OSSL|TLS|INVALID_ARG))/, "check the option tls"],
];

/** A certificate or protocol that does not fit, which no retry changes. @internal */
export class TLSError extends FirnError {}

/** connectionError returns the error of a request without an answer. @internal */
export function connectionError(sequencer: string, server: string, cause: unknown): FirnError {
  const e = cause as NodeJS.ErrnoException & { errors?: Error[] };
  const code = e.code ?? "";
  // A host with several addresses has one error for each.
  const message = e.message || (e.errors?.map((each) => each.message).join(", ") ?? code);
  // A line of OpenSSL: …error:0A00010B:SSL routines:ssl3_get_record:wrong version number:…
  const reason = /error:[\dA-F]{8}:[^:]*:[^:]*:([^:\n]*)/.exec(message)?.[1];
  const what = [
    reason === undefined ? message : `TLS failed: ${reason}`,
    advice.find(([of]) => of.test(code) || of.test(reason ?? ""))?.[1],
  ];
  const isTLS = notTLS.test(reason ?? "") || untrusted.test(code);
  return new (isTLS ? TLSError : FirnError)(
    `${place(sequencer, server)}: ${printable(what.filter(Boolean).join(": "))}`,
    { cause },
  );
}

/** noAnswer returns the error of a request without an answer until now. @internal */
export function noAnswer(sequencer: string, server: string, milliseconds: number): FirnError {
  return new FirnError(`${place(sequencer, server)}: no answer after ${Math.round(milliseconds)} ms`);
}

/** place names a sequencer at a server. @internal */
export function place(sequencer: string, server: string): string {
  return `${quote(sequencer)} at ${server}`;
}

/** quote quotes a text, truncated to fit a log line. @internal */
export function quote(text: string): string {
  return text.length <= 80 ? JSON.stringify(text) : JSON.stringify(text.slice(0, 80)) + "…";
}

/**
 * show writes any argument for an error: of an object, which may hold a token or a key, only its kind.
 * @internal
 */
export function show(value: unknown): string {
  if (typeof value === "string") return quote(value);
  if (Array.isArray(value)) return "an array";
  if (typeof value === "function") return "a function";
  if (typeof value !== "object" || value === null) return inspect(value).slice(0, 80);
  return (value.constructor as { name: string } | undefined)?.name ?? "an object";
}

/** needText throws if an argument, which may be a secret, is not a string. @internal */
export function needText(what: string, value: unknown): void {
  if (typeof value !== "string") throw new TypeError(`${what} is of type ${typeof value}: it must be a string`);
}

/** printable replaces what a terminal might interpret. @internal */
export function printable(text: string): string {
  return text.replace(/\p{C}/gu, "\ufffd");
}
