import { randomBytes } from "node:crypto";
import type { ClientRequest, IncomingMessage } from "node:http";
import { Batch, expand, faultOf, maxRun, otherWidth, wrongLength } from "./answer.js";
import type { Source } from "./call.js";
import {
  AnswerError,
  connectionError,
  FirnError,
  needText,
  noAnswer,
  printable,
  quote,
  ServerError,
} from "./errors.js";
import { after, now, type Server } from "./servers.js";

/** How much of a problem is read. Those of servers are shorter. */
const maxProblem = 16 << 10;

/** The error of the option token, which no other server would change. */
export class TokenError extends FirnError {}

/**
 * An Exchange is one request to one server for count IDs. It calls done once, unless it is
 * canceled, and before that slow, if the answer takes longer than hedgeAfter.
 */
export class Exchange<ID> {
  readonly start = now();
  isSlow = false;
  #request: ClientRequest | undefined;
  #over = false;
  readonly #timers: (() => void)[];

  constructor(
    readonly source: Source<ID>,
    readonly server: Server,
    readonly count: number,
    /** Where IDs of runs go, in whose form it then asks for them. */
    readonly into: Buffer | undefined,
    hedgeAfter: number,
    slow: () => void,
    private readonly done: (result: Batch<ID> | FirnError, timedOut: boolean) => void,
  ) {
    this.#timers = [
      after(hedgeAfter, () => {
        this.isSlow = true;
        slow();
      }),
      after(source.core.timeout, () => this.#end(this.noAnswer(), true)),
    ];
    queueMicrotask(() => void this.#begin()); // done must not be called before the caller has the Exchange
  }

  /** noAnswer returns the error of a request without an answer until now. */
  noAnswer(): FirnError {
    return noAnswer(this.source.name, this.server.name, now() - this.start);
  }

  /** cancel ends the request without a result. An ID that it made is lost. */
  cancel(): void {
    this.#over = true;
    for (const stop of this.#timers) stop();
    this.#request?.destroy();
  }

  #end(result: Batch<ID> | FirnError, timedOut = false): void {
    if (this.#over) return;
    // A connection with an unread answer cannot be used again.
    if (result instanceof FirnError) this.cancel();
    this.#over = true;
    for (const stop of this.#timers) stop();
    this.done(result, timedOut);
  }

  async #begin(): Promise<void> {
    const { core, name } = this.source;
    const headers: Record<string, string> = {
      Accept: this.#media,
      "Content-Length": "0",
      "User-Agent": "firn-client",
      // New in every request and returned with its answer, which shows answers from a cache.
      "Firn-Nonce": randomBytes(16).toString("hex"),
    };
    let tls = {};
    try {
      const token = typeof core.token === "function" ? await core.token() : core.token;
      if (token) headers.Authorization = `Bearer ${checkToken(token)}`;
      if (this.server.secure) tls = (typeof core.tls === "function" ? core.tls() : core.tls) ?? {};
    } catch (cause) {
      const text = cause instanceof Error ? cause.message : String(cause);
      return this.#end(new TokenError(`${quote(name)}: get the option token or tls: ${text}`, { cause }));
    }
    if (!this.#over) this.#send(headers, tls);
  }

  #send(headers: Record<string, string>, tls: object): void {
    const { core, name, width } = this.source;
    const format = this.into ? "&runs=true&format=hex" : "";
    const path = `/v1/sequencers/${encodeURIComponent(name)}/next?count=${this.count}${format}`;
    const fail = (cause: unknown): void => this.#end(connectionError(name, this.server.name, cause));
    let request: ClientRequest;
    try {
      request = this.server.request(path, this.server.secure ? core.https : core.http, {
        ...tls,
        method: "POST",
        headers,
      });
    } catch (cause) {
      return fail(cause); // such as a certificate that cannot be parsed
    }
    this.#request = request;
    let answered = false;
    request.on("socket", (socket) => socket.unref());
    request.on("error", (cause: NodeJS.ErrnoException) => {
      // The server has closed a connection that was kept alive. A retry never repeats an ID.
      if (!this.#over && !answered && request.reusedSocket && (cause.code === "ECONNRESET" || cause.code === "EPIPE"))
        return this.#send(headers, tls);
      fail(cause);
    });
    request.on("response", (response) => {
      answered = true;
      const limit = response.statusCode === 200 ? this.count * (this.into ? maxRun : width.size) : maxProblem;
      const chunks: Buffer[] = [];
      let length = 0;
      const finish = (): void => {
        // A request that was given up must not write into the array of its call.
        if (!this.#over) this.#end(this.#read(response, Buffer.concat(chunks), headers["Firn-Nonce"]!));
      };
      const most = Number(response.headers["content-length"] ?? 0);
      if (response.statusCode === 200 && most > limit) return finish(); // read reports the length
      response.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        if ((length += chunk.length) > limit) finish();
      });
      response.on("end", finish);
      response.on("error", (cause) => {
        // Even a part of a problem is informative.
        if (response.statusCode !== 200) return finish();
        fail(new Error(`the answer was cut off after ${length} bytes`, { cause }));
      });
    });
    request.end();
  }

  get #media(): string {
    return this.into ? "application/json" : "application/octet-stream";
  }

  /** read returns the IDs of an answer, or its error. */
  #read(response: IncomingMessage, body: Buffer, nonce: string): Batch<ID> | FirnError {
    const { name, width } = this.source;
    const unusable = (reason: string): AnswerError => new AnswerError(name, this.server.name, reason);
    if (response.statusCode !== 200) return problem(name, this.server.name, response, body);
    const type = response.headers["content-type"] ?? "";
    if (type.split(";")[0]?.trim().toLowerCase() !== this.#media)
      return unusable(`it is ${quote(printable(type))}, not ${this.#media}: is this a Firn server?`);
    // A proxy may drop the header.
    const echo = response.headers["firn-nonce"];
    if (echo !== undefined && echo !== nonce)
      return unusable(
        "it is the answer to another request: something between this program and the server caches or mixes up answers",
      );
    let bytes = body;
    let fault = "";
    if (this.into) {
      bytes = this.into.subarray(0, this.count * width.size);
      fault = expand(body, bytes);
    } else {
      const length = Math.max(body.length, Number(response.headers["content-length"] ?? 0));
      if (length === this.count * (24 - width.size)) fault = otherWidth(24 - width.size);
      else if (length > this.count * width.size) fault = wrongLength(length, width.size, this.count);
    }
    fault ||= faultOf(bytes, width.size, this.count);
    if (fault) return unusable(fault);
    const batch = new Batch(width, bytes);
    if (this.source.isRepeat(batch.at(0)))
      return unusable(
        "it begins with the same ID as the previous one: something between this program and the server caches answers",
      );
    return batch;
  }
}

/** checkToken returns a token without white space at its ends, such as the newline of a file. */
export function checkToken(token: string): string {
  needText("the token", token);
  const text = token.trim();
  if (!/^[!-~]*$/.test(text))
    throw new TypeError("the token has a character that is not allowed, such as a space or a newline");
  return text;
}

/** problem parses an answer with a status other than 200. */
function problem(name: string, server: string, response: IncomingMessage, body: Buffer): ServerError {
  const text = body.toString("utf8", 0, maxProblem);
  let kind = "";
  let detail = text.trim() && `the answer begins with ${quote(printable(text.trim()))}`;
  const location = response.headers.location;
  if (location !== undefined) detail = `a redirect to ${quote(printable(location))}`;
  if (response.headers["content-type"]?.startsWith("application/problem+json")) {
    try {
      const p = JSON.parse(text) as Partial<Record<"type" | "title" | "detail", unknown>>;
      const [type, title, about] = [p.type, p.title, p.detail].map((v) => (typeof v === "string" ? printable(v) : ""));
      kind = /^urn:firn:problem:(.*)/.exec(type!)?.[1] ?? "";
      detail = about! || title!;
    } catch {
      // The text describes it.
    }
  }
  return new ServerError(
    name,
    server,
    response.statusCode ?? 0,
    kind,
    detail,
    retryAfter(response.headers["retry-after"] ?? ""),
  );
}

/** retryAfter returns the milliseconds of the header of this name, or 0 for anything but seconds, such as a date. */
function retryAfter(text: string): number {
  return /^\d{1,9}$/.test(text) ? 1000 * Number(text) : 0;
}
