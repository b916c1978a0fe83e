/**
 * What a gateway keeps to and no operator has a reason to set: by table of the configuration, beside the keys of which it appears in the
 * frozen configuration. Tests change some for a gateway of theirs (`LoadOptions`).
 */
const constants = {
  jobs: {
    /** How far in the future a delegated caller's signature may expire: what claims of its nonce cost is bounded by a day. */
    maxSignatureTtlSecs: 86_400,
    /** To the facilitator. Over HTTP/1.1 each payment that waits takes one: 85 payments a second for 128 at 1.5 s, so far more. */
    facilitatorConnections: 2_000,
  },
  limits: {
    /** Of one gateway to all clients together, where no key authenticates quotes: each is then in the ledger for good. */
    quotesPerSecond: 200,
    /** Of those that wait: a facilitator that answers nothing may take half of the default of all outstanding calls. */
    maxUnsettledCalls: 5_000,
    /** What one Node process can have under way with the memory that its bodies may take. */
    maxInFlightRequests: 2_000,
    /** Requests that wait for a result hold a connection and a few KiB each, no work; one client has at most a fiftieth. */
    maxWaitingRequests: 5_000,
    maxWaitingRequestsPerClient: 100,
  },
  alerts: {
    /** A condition that lasts is reported to each shift of people, not each minute. */
    repeatSecs: 14_400,
    /** A settlement is confirmed within seconds; five minutes are the validity of a usual signature. */
    unresolvedAfterSecs: 300,
  },
  callbacks: {
    /** A receiver that is down is tried for a day; its client finds the result at the receipt in any case. */
    giveUpAfterSecs: 86_400,
  },
  discovery: {
    everySecs: 3_600,
    /** Of one page. */
    timeoutMs: 10_000,
  },
  webhookTrigger: {
    /** The largest difference between the clocks of sender and gateway: as Standard Webhooks advises. */
    toleranceSecs: 300,
    maxBodyBytes: 1_048_576,
  },
  cronTrigger: {
    /** With `missed = "all"`: the newest of them fire. */
    missedMost: 100,
    /** A time that is older was missed: a gateway fires within seconds. */
    missedAfterSecs: 60,
  },
  chainTrigger: {
    /** Chains make a block every few seconds. */
    pollSecs: 5,
  },
  chat: {
    /** Of `max_concurrent_per_client`, how many of free models. */
    maxConcurrentFreePerClient: 24,
    /** Of a request without credentials: its body is parsed before anything is known of its caller. */
    anonymousMaxBodyBytes: 1_048_576,
    /** Leading bits that make two IPv6 addresses one client: a network of a household. */
    ipv6Prefix: 64,
  },
  upstream: {
    connectTimeoutMs: 5_000,
    /** How long a client may read nothing of its stream before another request may take its slot. */
    stalledReaderTimeoutMs: 10_000,
  },
  log: {
    /** A head is signed earlier than its interval says once so many events wait: proofs stay small. */
    sealEveryEvents: 10_000,
  },
} as const;

type Widened = {
  readonly [T in keyof typeof constants]: Readonly<Record<keyof (typeof constants)[T], number>>;
};

/** The constants of a gateway. */
export type Constants = Widened;

/** Other values of some constants, by table. */
export type ConstantChanges = { readonly [T in keyof Widened]?: Partial<Widened[T]> };

export function withChanges(changes: ConstantChanges): Constants {
  const tables = Object.keys(constants) as (keyof Widened)[];
  const changed = tables.map((table) => [table, { ...constants[table], ...changes[table] }]);
  // the same tables, each with the same names
  return Object.fromEntries(changed) as Constants;
}
