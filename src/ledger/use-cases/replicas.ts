import { createNextRead } from '../../base/runtime/next-read.ts';
import { pause } from '../../base/runtime/pause.ts';
import { createSince } from '../../base/runtime/since.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import { late, within } from '../../base/runtime/within.ts';
import {
  findOtherHistory,
  hasReached,
  judgeReplica,
  type ReplicaState,
  unfit,
} from '../rules/replica-state.ts';
import {
  addressOf,
  isDenied,
  isMissingTable,
  openBeside,
  openDatabase,
  openPool,
} from '../store/database.ts';
import type { Ledger, LedgerReader } from '../store/ledger.ts';
import {
  findLeafHash,
  type PrimaryPosition,
  readPrimaryPosition,
  readReplicaPosition,
  readStartTime,
  type ReplicaPosition,
} from '../store/replica.ts';
import { SessionError } from '../store/session.ts';

/** How old an answer is at most. */
export interface AsOf {
  /** It shows every event up to this one. */
  readonly seq: number;
  readonly at: Date;
  /** There are newer commits, and it is long enough ago to tell a person. */
  readonly isBehind: boolean;
}

/** What was read, and how old it may be; the age is left out where no replica is configured. */
export interface Read<T> {
  readonly value: T;
  readonly asOf?: AsOf;
}

/** Where a present state is read. */
export interface PresentReader extends LedgerReader {
  /** The ledger's clock, in Unix seconds; undefined on the primary, whose own clock that is. */
  readonly nowSecs: number | undefined;
}

/**
 * Reads that replicas may answer instead of the primary. `read` must change nothing, for the primary is asked again where a replica
 * fails: no caller gets an error because of one.
 */
export interface ReplicaReads {
  /**
   * For reads that may be up to a minute old. What a replica does not have, as `undefined`, the primary may have.
   * @param since the state must not be older than this
   */
  older<T>(
    primary: LedgerReader,
    read: (from: LedgerReader) => Promise<T>,
    since?: () => Promise<Date | undefined>,
  ): Promise<Read<T>>;
  /**
   * For reads of the present: no older than anything that any gateway has read from the primary or answered before this call, and no
   * newer than what the primary shows.
   * @param lastSeqOf the last event that the value shows
   */
  present<T>(
    primary: LedgerReader,
    read: (from: PresentReader) => Promise<T>,
    lastSeqOf: (value: T) => number,
  ): Promise<Read<T>>;
}

/** A replica as the operator knows it. */
export interface KnownReplica {
  readonly name: string;
  readonly state: ReplicaState;
  /** RFC 3339: since when it is used, or is not. */
  readonly since: string;
  /** Reads that it answered, and those that it began and the primary answered. */
  readonly answered: number;
  readonly failed: number;
}

export interface Replicas extends ReplicaReads {
  all(): readonly KnownReplica[];
  /** Compares every replica with the primary. */
  look(): Promise<void>;
  close(): Promise<void>;
}

/** For a gateway without replicas. */
export const primaryOnly: ReplicaReads = {
  older: async (primary, read) => ({ value: await read(primary) }),
  present: async (primary, read) => ({ value: await read({ ...primary, nowSecs: undefined }) }),
};

const lookTimeoutMs = 2_000;
/** A replica whose last look was longer ago is not used: this process did not have the time for it. */
const lookValidMs = 5_000;
/** For the time that a replica on a good connection is behind. */
const catchUpMs = 100;
const catchUpPollMs = 4;
/** Above this it is not waited for. */
const catchableMs = 2_000;
/** A replica that takes longer has not answered. */
const timeLimitsMs = { older: 10_000, present: 1_000 } as const;
/** A console page shows how old its state is from here on. */
const tellBehindMs = 2_000;

interface ReplicaOptions {
  readonly urls: readonly string[];
  readonly role: string | undefined;
  readonly ledger: Ledger;
  readonly log: OperatorLog;
}

/** The replicas at these addresses: none is used before the first look. */
export function openReplicas({ urls, role, ledger, log }: ReplicaOptions): Replicas {
  const beside = openBeside(ledger.pool, lookTimeoutMs);
  let knownSeq = 0;
  const position = createNextRead(async () => {
    const found = await readPrimaryPosition(beside);
    knownSeq = Math.max(knownSeq, found.seq);
    return found;
  });
  /** Before a read of the primary. */
  const asOfPrimary = (): AsOf => ({
    seq: Math.max(knownSeq, ledger.lane.state.seq),
    at: new Date(),
    isBehind: false,
  });
  const primary: Primary = { position, leafHash: (seq) => findLeafHash(beside, seq) };
  const replicas = urls.map((url) => new Replica(url, role, primary, log));
  let turn = 0;
  const find = (isWanted: (state: FitState) => boolean): Replica | undefined => {
    const fit = replicas.filter(({ fit: state }) => state && isWanted(state));
    return fit[turn++ % fit.length];
  };

  return {
    async older(on, read, since) {
      const from = replicas.some(({ fit }) => fit) ? await since?.() : undefined;
      const replica = find(({ asOfMs }) => asOfMs >= (from?.getTime() ?? 0));
      // before the read: what is read later is not older
      const asOf = replica?.fit && asOfReplica(replica.fit);
      const found = await replica?.answer(timeLimitsMs.older, () => read(replica));
      if (found?.value !== undefined && asOf) return { value: found.value, asOf };
      const asOfNow = asOfPrimary();
      return { value: await read(on), asOf: asOfNow };
    },
    async present(on, read, lastSeqOf) {
      const replica = find(({ behindMs }) => behindMs <= catchableMs);
      const reached = await replica?.reached();
      if (replica && reached) {
        const { seq, nowMs } = reached;
        const from = { pool: replica.pool, db: replica.db, nowSecs: Math.floor(nowMs / 1_000) };
        const found = await replica.answer(timeLimitsMs.present, () => read(from));
        // a later event may be one that no synchronous standby has: after a failover it would be gone
        if (found && lastSeqOf(found.value) <= seq)
          return { ...found, asOf: { seq, at: new Date(nowMs), isBehind: false } };
      }
      const asOf = asOfPrimary();
      return { value: await read({ ...on, nowSecs: undefined }), asOf };
    },
    all: () => replicas.map((replica) => replica.known()),
    async look() {
      // one that does not answer must not delay the next look at the others
      await within(lookTimeoutMs, Promise.all(replicas.map((replica) => replica.look())));
    },
    async close() {
      await Promise.all([beside.end(), ...replicas.map((replica) => replica.close())]);
    },
  };
}

type FitState = Extract<ReplicaState, { kind: 'fit' }>;

function asOfReplica({ seq, asOfMs, behindMs }: FitState): AsOf {
  return { seq, at: new Date(asOfMs), isBehind: behindMs >= tellBehindMs };
}

interface Primary {
  /** Of a read that began after the call. */
  readonly position: () => Promise<PrimaryPosition>;
  /** Of its event in this place; undefined if there is none. */
  readonly leafHash: (seq: number) => Promise<string | undefined>;
}

class Replica implements LedgerReader {
  readonly pool: LedgerReader['pool'];
  readonly db: LedgerReader['db'];
  /** The primary's position once the replica has come to it; undefined if that takes too long. */
  readonly #reached: () => Promise<PrimaryPosition | undefined>;
  readonly #name: string;
  readonly #beside: LedgerReader['pool'];
  readonly #primary: Primary;
  readonly #log: OperatorLog;
  readonly #since = createSince();
  #state: ReplicaState = unfit('unknown', 'it was not looked at yet');
  #lookedAtMs = 0;
  #looking: Promise<void> | undefined;
  /** Of the server that was looked at. What was found is not true of another one, as a load balancer may lead to. */
  #startedAt: string | undefined;
  /** Aborts once it is not fit. */
  #lost = new AbortController();
  #answered = 0;
  #failed = 0;

  constructor(url: string, role: string | undefined, primary: Primary, log: OperatorLog) {
    this.#name = addressOf(url).server;
    this.#primary = primary;
    this.#log = log;
    // one that was promoted gets no writes from here
    const options = { url, role, settings: { default_transaction_read_only: 'on' } };
    this.#beside = openPool({ ...options, maxConnections: 1, queryTimeoutMs: lookTimeoutMs });
    this.pool = openPool({
      ...options,
      onConnect: async (client) => {
        if ((await readStartTime(client)) !== this.#startedAt)
          throw new Error('this address leads to another server than before');
      },
    });
    this.db = openDatabase(this.pool);
    this.#reached = createNextRead(() => this.#catchUp());
  }

  /** Undefined while it is not fit. */
  get fit(): FitState | undefined {
    const isLookedAt = performance.now() - this.#lookedAtMs < lookValidMs;
    return isLookedAt && this.#state.kind === 'fit' ? this.#state : undefined;
  }

  known(): KnownReplica {
    const state =
      this.#state.kind === 'fit' && !this.fit ? unfit('unreachable', 'it has not answered') : this.#state;
    return {
      name: this.#name,
      state,
      since: this.#since.of('used', state.kind === 'fit'),
      answered: this.#answered,
      failed: this.#failed,
    };
  }

  /** Undefined if it failed, took too long or was found not to be fit meanwhile. */
  async answer<T>(limitMs: number, read: () => Promise<T>): Promise<{ readonly value: T } | undefined> {
    if (this.#lost.signal.aborted) return undefined;
    try {
      const value = await unlessAborted(this.#lost.signal, within(limitMs, read()));
      if (value !== late) {
        this.#answered++;
        return { value };
      }
    } catch (err) {
      this.#log.warn({ replica: this.#name, err }, 'a read of a replica failed: the primary answers it');
    }
    this.#failed++;
    return undefined;
  }

  async reached(): Promise<PrimaryPosition | undefined> {
    // the primary answers, or fails itself
    return this.#reached().catch(() => undefined);
  }

  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => (this.#looking = undefined));
    return this.#looking;
  }

  async close(): Promise<void> {
    await Promise.all([this.#beside.end(), this.pool.end()]);
  }

  async #catchUp(): Promise<PrimaryPosition | undefined> {
    const primary = await this.#primary.position();
    const endMs = performance.now() + catchUpMs;
    do {
      const replica = await readReplicaPosition(this.#beside);
      const compared = { primary, replica };
      if (replica.startedAt !== this.#startedAt || findOtherHistory(compared)) return undefined;
      if (hasReached(compared)) return primary;
      await pause(catchUpPollMs);
    } while (performance.now() < endMs);
    return undefined;
  }

  async #look(): Promise<void> {
    const was = this.#state;
    this.#state = await this.#judge();
    this.#lookedAtMs = performance.now();
    const isFit = this.#state.kind === 'fit';
    if (isFit && this.#lost.signal.aborted) this.#lost = new AbortController();
    if (!isFit) this.#lost.abort();
    if (faultOf(was) === faultOf(this.#state)) return;
    const replica = this.#name;
    if (this.#state.kind === 'fit') this.#log.info({ replica }, 'a replica answers reads');
    else
      this.#log.warn({ replica, detail: this.#state.detail }, 'a replica is not used: the primary answers');
  }

  async #judge(): Promise<ReplicaState> {
    let replica: ReplicaPosition;
    try {
      replica = await readReplicaPosition(this.#beside);
    } catch (error) {
      return whyUnread(error);
    }
    this.#startedAt = replica.startedAt;
    try {
      const primary = await this.#primary.position();
      const hash = replica.seq === 0 ? undefined : await this.#primary.leafHash(replica.seq);
      return judgeReplica({ primary, replica }, hash);
    } catch {
      return unfit('unknown', 'the primary does not answer, so it is not known how far it is behind');
    }
  }
}

function faultOf(state: ReplicaState): string | undefined {
  return state.kind === 'unfit' ? state.fault : undefined;
}

function whyUnread(error: unknown): ReplicaState {
  if (isMissingTable(error)) return unfit('other_ledger', 'it has no ledger, or one of another version');
  if (isDenied(error) || error instanceof SessionError)
    return unfit(
      'not_told',
      'its sessions are not as reads need them, or it does not tell its position. Let REPLICA_URL lead to PostgreSQL itself, with the user ' +
        'of DATABASE_URL, who may execute pg_control_system(), pg_control_checkpoint() and pg_control_recovery()',
    );
  return unfit('unreachable', 'it cannot be reached, or refuses the user of REPLICA_URL');
}

async function unlessAborted<T>(signal: AbortSignal, reading: Promise<T>): Promise<T | typeof late> {
  const { promise: aborted, resolve } = Promise.withResolvers<typeof late>();
  const end = (): void => resolve(late);
  signal.addEventListener('abort', end, { once: true });
  try {
    return await Promise.race([reading, aborted]);
  } finally {
    signal.removeEventListener('abort', end);
  }
}
