/**
 * Limits that no operator has a reason to set: by table of the configuration, with whose keys each appears in the
 * frozen configuration. Tests change some for a gateway of theirs (`LoadOptions`).
 */
const constants = {
  jobs: {
    /** How far in the future a delegated caller's signature may expire: what claims of its nonce cost is bounded by a day. */
    maxSignatureTtlSecs: 86_400,
    /** Of a verification, which changes nothing: a client may send its payment again. */
    facilitatorVerifyTimeoutMs: 10_000,
    /** To the facilitator. Over HTTP/1.1 each payment that waits takes one: 85 payments a second for 128 at 1.5 s, so far more. */
    facilitatorConnections: 2_000,
    /** For a transfer that the facilitator reports: it is in a block already, and an RPC is seldom more than a block behind. */
    confirmTimeoutMs: 5_000,
  },
  limits: {
    /** Of all requests in flight together, arriving and processed: the manifests give a gateway three times as much. */
    maxBodyMemoryBytes: 536_870_912,
    /** Of one gateway to all clients together, if no key authenticates quotes: each is then in the ledger for good. */
    quotesPerSecond: 200,
    /** Of each kind of event that strangers can cause, over all gateways: a flood leaves half a gigabyte a day. What is beyond it is summed. */
    quoteEventsPerSec: 5,
    /** Of those that wait: a facilitator that answers nothing may take half of the default of all outstanding calls. */
    maxUnsettledCalls: 5_000,
    /** What one Node process can have under way with the memory that its bodies may take. */
    maxInFlightRequests: 2_000,
    /** Requests that wait for a result hold a connection and a few KiB each, no work; one client has at most a fiftieth. */
    maxWaitingRequests: 5_000,
    maxWaitingRequestsPerClient: 100,
    /** A client that reads less for half a minute loses its connection: 16 kbit/s are slower than any network that pays. */
    leastReadBytesPerSec: 2_048,
  },
  alerts: {
    /** A condition that lasts is reported to each shift of people, not each minute. */
    repeatSecs: 14_400,
    /** A settlement is confirmed within seconds; five minutes are the validity of a usual signature. */
    unresolvedAfterSecs: 300,
  },
  rateSource: {
    /** For this long after a rollup's sequencer is up again its aggregator is not trusted: as Chainlink advises. */
    sequencerGraceSecs: 3_600,
  },
  delivery: {
    /** The pause after the first failure, if the longest one is no shorter; it doubles, and half of it is random. */
    backoffBaseMs: 1_000,
    /** The longest pause: a runner that is repaired gets its calls within half an hour. */
    backoffCapMs: 1_800_000,
    /** For a job whose policy has no number: with the pauses, a runner may fail for 12 hours before its calls are dead letters. */
    maxAttempts: 60,
    /** How much longer the lease of a push lasts than its time limit: for recording the answer, also on a busy machine. */
    leaseMarginSecs: 30,
    /** A larger result needs `[result_store]`: results in the database are written, replicated and backed up with the ledger. */
    maxResultBytes: 1_048_576,
  },
  jetstream: {
    /** Of each of the two streams: the largest bodies of all calls that wait for two runners. */
    maxBytes: 1_073_741_824,
    /** Calls of one runner that wait in the broker; the others wait in the database, where they keep their order. */
    maxWaiting: 500,
    /** How long a call may wait in the broker: a runner refuses a message that was signed 300 seconds ago. */
    takeWithinSecs: 120,
  },
  retention: {
    /** Request ids of credit, which after it would move credit again; operators' tokens and API keys after they ended. */
    recordsDays: 400,
    /** People who never confirmed their address, and mails that no program has taken: personal data without a use. */
    personalDays: 7,
  },
  routes: {
    /** How long a process that is gone keeps others from a paid request; it extends its lease while the answer takes. */
    leaseSecs: 30,
    /** A longer answer is the upstream's failure: downloads are shorter, and an upstream that never ends is stopped. */
    maxResponseBytes: 4_294_967_296,
    /** How long a paid request without a complete answer can be repeated: a program that waits longer is owed its refund instead. */
    retrySecs: 600,
  },
  callbacks: {
    /** A receiver that is down is tried for a day; its client finds the result at the receipt in any case. */
    giveUpAfterSecs: 86_400,
  },
  discovery: {
    /** A listing that two looks in a row do not find is reported, and a service that is silent for as long. */
    graceSecs: 7_200,
    /** Pages of one look: a longer list says nothing about what is not on its first pages. */
    maxPages: 500,
    /** Of one look: a page is there within a second. */
    lookTimeoutSecs: 300,
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
    /** The operator is alerted if the last block that was read is older: a final block is at most half as old. */
    behindAfterSecs: 3_600,
  },
  chat: {
    /** Completions of an address without credentials: as fast as a person reads. `anonymous_per_day` says how many. */
    anonymousPerMinute: 10,
    /** Of a session: a person at a page. A program has an API key. */
    sessionPerMinute: 30,
    /** Of an account that pays by spends: it prepays each request, and each costs a signature. */
    spendAuthPerMinute: 120,
    /** Of a client address: refused requests that no credential counts. Twice those of a key, since many share an address. */
    refusedPerMinute: 120,
    /** Requests of a client address with an invalid credential, a minute: a person mistypes less often, and a key has 192 random bits. */
    failedAuthPerMinute: 20,
    /** Completions at the same time, in one gateway, of a key, an account, a client address: half of an upstream's slots. */
    maxConcurrentPerClient: 128,
    /** Of these, how many of free models. */
    maxConcurrentFreePerClient: 24,
    /** Of a request without credentials: its body is parsed before anything is known of its caller. */
    anonymousMaxBodyBytes: 1_048_576,
    /** Of every request: two million tokens of text, or some pictures in base64; no model takes more. */
    maxBodyBytes: 10_485_760,
    /** Leading bits that make two IPv6 addresses one client: a network of a household. */
    ipv6Prefix: 64,
  },
  spend: {
    /** Part of a spend that each of its two transactions may cost: together they leave nothing of one that costs more. */
    maxGasPercent: 50,
    /** How long a spend must stay valid beyond the request, so that it can be paid out: some twenty blocks of a slow chain. */
    claimMarginSecs: 300,
    /** How long a request waits for its spend to land: some blocks. */
    authorizeTimeoutMs: 30_000,
    /** How long a spend waits for those before it, which come at the same time. */
    nonceWaitMs: 5_000,
  },
  identity: {
    /** How long a customer's session lasts: a week, without extension. A stolen cookie is of no use after it. */
    sessionDays: 7,
  },
  console: {
    /** How long a sign-in with a second factor opens the console: a working day. */
    sessionHours: 12,
  },
  upstream: {
    connectTimeoutMs: 5_000,
    /** Of `timeout_ms`: a pause in an answer may take half of what its beginning may, a whole answer five times as much. */
    idleOfTimeout: 0.5,
    totalOfTimeout: 5,
    /** How long a client may read nothing of its stream before another request may take its slot. */
    stalledReaderTimeoutMs: 10_000,
  },
  log: {
    /** How often a head is signed: a receipt is proven a second after the payment, and a signature takes a millisecond. */
    sealEveryMs: 1_000,
    /** A head is signed earlier than its interval says once this many events wait: proofs stay small. */
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
