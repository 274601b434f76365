import { Agent } from "node:http";
import { Agent as AgentTLS } from "node:https";
import { startupSnapshot } from "node:v8";
import type { ClientOptions } from "./client.js";
import { quote, show } from "./errors.js";
import { checkToken } from "./exchange.js";
import { maxTake } from "./sequencer.js";
import { Server } from "./servers.js";

/** What sequencers share. */
export interface Core extends Required<Omit<ClientOptions, "token" | "tls">> {
  readonly token: ClientOptions["token"];
  readonly tls: ClientOptions["tls"];
  readonly servers: readonly Server[];
  readonly http: Agent;
  readonly https: AgentTLS;
  /** hold keeps the program alive until release is called as often as hold. */
  hold(): void;
  release(): void;
}

/** newCore checks the arguments of a Client and fills in defaults. Its error lists all faults. */
export function newCore(list: readonly string[], o: ClientOptions): Core {
  if (typeof o !== "object" || (o as unknown) === null)
    throw new TypeError("the options must be an object, such as { patience: 3000 }"); // without it: it may be a token
  const faults: string[] = [];
  const servers: Server[] = [];
  const seen = new Set<string>();
  if (!Array.isArray(list)) faults.push('servers must be an array, such as ["http://127.0.0.1:3476"]');
  else if (list.length === 0) faults.push('servers is empty: name at least one, such as ["http://127.0.0.1:3476"]');
  else
    for (const text of list as unknown[]) {
      const url = typeof text === "string" && URL.canParse(text) ? new URL(text) : undefined;
      const name = show(typeof text === "string" ? text.replace(/.*@|\?.*/gs, "…") : text); // without secrets
      if (!url || !["http:", "https:"].includes(url.protocol) || !/^https?:\/\//i.test(String(text)))
        faults.push(`server ${name}: write http://HOST:PORT or https://HOST:PORT`);
      else if (url.username || url.password)
        faults.push("a server has a user name or a password: use the option token");
      else if (url.search || url.hash)
        faults.push(`server ${name} has a query or a fragment: write http://HOST:PORT or https://HOST:PORT`);
      else if (seen.has(url.href)) faults.push(`server ${name} occurs twice`);
      else {
        seen.add(url.href);
        servers.push(new Server(String(text), url));
      }
    }
  const number = (
    key: "timeout" | "patience" | "validity" | "batch" | "maxBatch",
    usual: number,
    most: number,
  ): number => {
    const value: unknown = o[key] ?? usual;
    if (typeof value === "number" && value >= 1 && value <= most && (most !== maxTake || Number.isInteger(value)))
      return value;
    faults.push(`${key} is ${show(value)}: it must be a number from 1 to ${most}`);
    return usual;
  };
  const known = ["token", "tls", "timeout", "patience", "validity", "batch", "maxBatch", "log"];
  for (const key of Object.keys(o))
    if (!known.includes(key)) faults.push(`the option ${quote(key)} does not exist: write ${known.join(", ")}`);
  const maxBatch = number("maxBatch", Math.max(10_000, Number(o.batch) || 0), maxTake);
  const batch = number("batch", Math.min(100, maxBatch), maxTake);
  if (batch > maxBatch) faults.push(`batch is ${batch}: it cannot exceed maxBatch, which is ${maxBatch}`);
  const longest = 2 ** 31 - 1; // of a timer
  const times = { timeout: number("timeout", 5000, longest), patience: number("patience", 10_000, longest) };
  const validity = number("validity", 600_000, Infinity);
  if (typeof o.token === "string")
    try {
      checkToken(o.token);
    } catch (e) {
      faults.push((e as Error).message);
    }
  else if (o.token !== undefined && typeof o.token !== "function") faults.push("token must be a string or a function");
  if (o.log !== undefined && typeof o.log !== "function") faults.push(`log is ${show(o.log)}: it must be a function`);
  if (o.tls !== undefined && typeof o.tls !== "function" && (typeof o.tls !== "object" || (o.tls as unknown) === null))
    faults.push("tls must be an object or a function");
  else if (o.tls !== undefined && servers.length > 0 && !servers.some((s) => s.secure))
    faults.push("tls is set, but no server is https://");
  if (faults.length > 0) throw new TypeError(faults.join("; "));
  if (startupSnapshot.isBuildingSnapshot())
    throw new TypeError(
      "a Client cannot be part of a startup snapshot, because all programs started from it would hand out the same IDs",
    );

  // Connections of several sequencers are kept, but for less than the 2 minutes after which the
  // server closes them.
  const keep = { keepAlive: true, maxFreeSockets: 32, timeout: 90_000 };
  let keeper: NodeJS.Timeout | undefined;
  let held = 0;
  return {
    ...times,
    validity,
    batch,
    maxBatch,
    token: o.token,
    tls: o.tls,
    // The caller's code must not run while the state of a sequencer changes.
    log: (event) => {
      if (o.log) queueMicrotask(() => o.log?.(event));
    },
    servers,
    http: new Agent(keep),
    https: new AgentTLS(keep),
    // Timers and sockets do not keep the program alive, so a call that waits does.
    hold: () => {
      if (held++ === 0) (keeper ??= setInterval(() => undefined, longest)).ref();
    },
    release: () => {
      if (--held === 0) keeper?.unref();
    },
  };
}
