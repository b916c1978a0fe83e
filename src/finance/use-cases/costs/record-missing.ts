import type pg from 'pg';
import type { Config } from '../../../base/config/config.ts';
import type { EventData } from '../../../ledger/rules/event.ts';
import { type CostPurpose, costStream } from '../../../base/values/transaction-cost.ts';
import { type Caip2, chainIdOf, type Hex } from '../../../base/values/primitives.ts';
import type { Publications } from '../../../audit/peers/anchors/publications.ts';
import { listSendingEvents, readFirstEventMs, type SendingEvent } from '../../../payments/store/costs.ts';
import { readOrigins } from '../../../audit/store/log.ts';
import { readStreamsUpTo } from '../../../ledger/store/projection.ts';
import { ownAccounts } from '../../../payments/use-cases/costs/own-accounts.ts';
import {
  type CostAnswer,
  type CostReader,
  recordCost,
} from '../../../payments/use-cases/costs/record-cost.ts';
import type { LedgerWriter } from '../../../ledger/store/ledger.ts';

/** A transaction that the ledger names, and that the operator may have sent. */
interface NamedTransaction {
  readonly network: Caip2;
  readonly transaction: Hex;
  readonly purpose: CostPurpose;
  /** Whose tokens it moved: an account of the operator, by the event that names it. */
  readonly from: string;
}

export interface MissingCosts {
  /** Of this network alone. */
  readonly network: Caip2 | undefined;
  /** Accounts that somebody states to be the operator's. */
  readonly stated: readonly string[];
  readonly operator: string | undefined;
  /** Publications of tree heads are looked for since then; undefined: since the ledger's first event. */
  readonly publishedSinceMs: number | undefined;
}

/** Where costs are read. */
export interface CostSources {
  /** By network. */
  readonly chains: ReadonlyMap<string, CostReader>;
  /** Where tree heads of the log are published: no event of the ledger names these transactions. */
  readonly publications: readonly Publications[];
  readonly config: Config | undefined;
  readonly onProgress: (what: string, done: bigint, all: bigint) => void;
}

export type MissingCost =
  | (NamedTransaction & {
      readonly answer:
        | CostAnswer
        /** It was recorded, and an operator has taken that back: nothing is recorded again by itself. */
        | { readonly kind: 'reversed'; readonly reversal: EventData<'operator_cost_reversed'> };
    })
  /** The chain did not say which tree heads were published. */
  | (Pick<Publications, 'network' | 'contract'> & { readonly unsearched: string });

const eventsAtOnce = 1_000;
/** After so many answers in a row that did not come, a network is asked no more. */
const mostUnanswered = 3;
/** How far the clock of the database may be ahead of a chain's. */
const clocksDifferMs = 86_400_000;

/**
 * Finds the transactions of refunds, sweeps, transfers and spends, and of published tree heads, without a recorded cost, and records each:
 * the result of each, in the order of the events that name them, and of the chain. A repetition records what could not be recorded before.
 */
export async function* recordMissingCosts(
  ledger: LedgerWriter,
  missing: MissingCosts,
  sources: CostSources,
): AsyncGenerator<MissingCost> {
  const recorder = new MissingRecorder(ledger, missing, sources.config);
  const isWanted = (network: Caip2): boolean => missing.network === undefined || missing.network === network;
  for await (const named of namedInLedger(ledger.pool))
    yield* recorder.recordAll(
      named.filter(({ network }) => isWanted(network)),
      (network) => sources.chains.get(network),
    );
  const sinceMs = missing.publishedSinceMs ?? (await readFirstEventMs(ledger.pool));
  if (sinceMs === undefined) return;
  const sinceSecs = Math.floor((sinceMs - clocksDifferMs) / 1_000);
  const origins = await readOrigins(ledger.pool);
  for (const publications of sources.publications.filter(({ network }) => isWanted(network))) {
    const { network, contract } = publications;
    const onProgress = (done: bigint, all: bigint): void =>
      sources.onProgress(`anchors on ${network}`, done, all);
    for await (const range of publications.find({ sinceSecs, origins, others: missing.stated, onProgress })) {
      if (range.kind === 'unavailable') yield { network, contract, unsearched: range.cause };
      else {
        const named = range.published.map(({ transaction, by: from }) => ({ network, transaction, from }));
        yield* recorder.recordAll(
          named.map((one) => ({ ...one, purpose: 'anchor' })),
          () => publications,
        );
      }
    }
  }
}

/** The transactions that events name, some at a time. */
async function* namedInLedger(pool: pg.Pool): AsyncGenerator<readonly NamedTransaction[]> {
  for (let after = 0; ;) {
    const events = await listSendingEvents(pool, after, eventsAtOnce);
    yield events.flatMap((event) => namedIn(event) ?? []);
    const last = events.at(-1);
    if (!last || events.length < eventsAtOnce) return;
    after = last.seq;
  }
}

/** Records costs, and remembers the transactions that it tried. */
class MissingRecorder {
  readonly #ledger: LedgerWriter;
  readonly #by: Pick<MissingCosts, 'stated' | 'operator'>;
  readonly #config: Config | undefined;
  readonly #own = new Map<string, ReadonlySet<string>>();
  readonly #tried = new Set<string>();
  readonly #unanswered = new Map<string, number>();

  constructor(
    ledger: LedgerWriter,
    by: Pick<MissingCosts, 'stated' | 'operator'>,
    config: Config | undefined,
  ) {
    this.#ledger = ledger;
    this.#by = by;
    this.#config = config;
  }

  /** Records those that have no cost on record, each once. */
  async *recordAll(
    named: readonly NamedTransaction[],
    readerOf: (network: Caip2) => CostReader | undefined,
  ): AsyncGenerator<MissingCost> {
    for (const { one, reversal } of await withoutCost(this.#ledger.pool, named)) {
      if (!this.#isFirst(one)) continue;
      const answer = reversal
        ? ({ kind: 'reversed', reversal } as const)
        : await this.#record(one, readerOf(one.network));
      yield { ...one, answer };
    }
  }

  /** Whether the transaction is named for the first time: one may be many refunds. */
  #isFirst(one: NamedTransaction): boolean {
    const name = streamOf(one);
    return !this.#tried.has(name) && this.#tried.add(name).has(name);
  }

  async #record(
    { network, transaction, purpose, from }: NamedTransaction,
    reader: CostReader | undefined,
  ): Promise<CostAnswer> {
    const unanswered = this.#unanswered.get(network) ?? 0;
    if (unanswered >= mostUnanswered)
      return { kind: 'refused', code: 'chain_unavailable', detail: 'not asked any more' };
    const own = new Set([...(await this.#ownOf(network)), from]);
    const order = { network, transaction, purpose, own, operator: this.#by.operator };
    const answer = await recordCost(this.#ledger, order, reader);
    const isUnanswered = answer.kind === 'refused' && answer.code === 'chain_unavailable';
    this.#unanswered.set(network, isUnanswered ? unanswered + 1 : 0);
    return answer;
  }

  async #ownOf(network: Caip2): Promise<ReadonlySet<string>> {
    const known = this.#own.get(network);
    if (known) return known;
    const own = await ownAccounts(this.#ledger.pool, network, this.#by.stated, this.#config);
    this.#own.set(network, own);
    return own;
  }
}

/** Those of which no cost stands recorded, with the reversal if one was. */
async function withoutCost(
  pool: pg.Pool,
  named: readonly NamedTransaction[],
): Promise<{ one: NamedTransaction; reversal: EventData<'operator_cost_reversed'> | undefined }[]> {
  const streams = await readStreamsUpTo(pool, [...new Set(named.map(streamOf))], Number.MAX_SAFE_INTEGER);
  const lastOf = new Map(streams.map((events) => [events[0]?.stream, events.at(-1)]));
  return named.flatMap((one) => {
    const last = lastOf.get(streamOf(one));
    if (last?.type === 'transaction_cost_recorded') return [];
    return { one, reversal: last?.type === 'operator_cost_reversed' ? last.data : undefined };
  });
}

function streamOf({ network, transaction }: NamedTransaction): string {
  return costStream(chainIdOf(network) ?? 0, transaction);
}

/** The transaction of the operator that an event names; undefined if somebody else has sent it. */
function namedIn(event: SendingEvent): NamedTransaction | undefined {
  const { network } = event.data;
  const of = (transaction: string, purpose: CostPurpose, from: string): NamedTransaction => ({
    network: network as Caip2,
    transaction: transaction as Hex,
    purpose,
    from,
  });
  switch (event.type) {
    case 'refunded':
      return of(event.data.transaction, 'refund', event.data.refunded_from);
    case 'operator_sweep_recorded':
      return of(event.data.transaction, 'sweep', event.data.pay_to);
    case 'operator_transfer_recorded': {
      const { as, returned, transaction, received_from: from } = event.data;
      if (returned) return of(returned.transaction, 'transfer', returned.from);
      return as === 'own' ? of(transaction, 'transfer', from) : undefined;
    }
    case 'spend_authorized':
    case 'spend_paid_out': {
      const { transaction, operator } = event.data;
      const purpose = event.type === 'spend_authorized' ? 'authorization' : 'claim';
      return transaction === undefined ? undefined : of(transaction, purpose, operator);
    }
  }
}
