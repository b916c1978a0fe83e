import type pg from 'pg';
import type { Config } from '../config/config.ts';
import type { EventData } from '../domain/events/event.ts';
import { type CostPurpose, costStream } from '../domain/payments/transaction-cost.ts';
import { type Caip2, chainIdOf, type Hex } from '../domain/values/primitives.ts';
import { listSendingEvents, type SendingEvent } from '../store/costs.ts';
import { readStreamsUpTo } from '../store/projection.ts';
import { ownAccounts } from './own-accounts.ts';
import { type CostAnswer, type CostLedger, type CostReader, recordCost } from './record-cost.ts';

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
}

export type MissingCost = NamedTransaction & {
  readonly answer:
    | CostAnswer
    /** It was recorded, and an operator has taken that back: nothing is recorded again by itself. */
    | { readonly kind: 'reversed'; readonly reversal: EventData<'operator_cost_reversed'> };
};

const eventsAtOnce = 1_000;
/** After so many answers in a row that did not come, a network is asked no more. */
const mostUnanswered = 3;

/**
 * Finds the transactions of refunds, sweeps, transfers and spends without a recorded cost, and records each: what each has come to, in the
 * order of the events that name them. A repetition records what could not be recorded before.
 */
export async function* recordMissingCosts(
  ledger: CostLedger,
  { network, stated, operator }: MissingCosts,
  chains: ReadonlyMap<string, CostReader>,
  config?: Config,
): AsyncGenerator<MissingCost> {
  const recorder = new MissingRecorder(ledger, { stated, operator }, chains, config);
  for (let after = 0; ;) {
    const events = await listSendingEvents(ledger.pool, after, eventsAtOnce);
    const named = events.flatMap((event) => namedIn(event) ?? []);
    const wanted = named.filter((one) => network === undefined || one.network === network);
    for (const { one, reversal } of await withoutCost(ledger.pool, wanted)) {
      if (!recorder.isFirst(one)) continue;
      yield { ...one, answer: reversal ? { kind: 'reversed', reversal } : await recorder.record(one) };
    }
    const last = events.at(-1);
    if (!last || events.length < eventsAtOnce) return;
    after = last.seq;
  }
}

/** Records costs, and remembers what it has tried. */
class MissingRecorder {
  readonly #ledger: CostLedger;
  readonly #by: Pick<MissingCosts, 'stated' | 'operator'>;
  readonly #chains: ReadonlyMap<string, CostReader>;
  readonly #config: Config | undefined;
  readonly #own = new Map<string, ReadonlySet<string>>();
  readonly #tried = new Set<string>();
  readonly #unanswered = new Map<string, number>();

  constructor(
    ledger: CostLedger,
    by: Pick<MissingCosts, 'stated' | 'operator'>,
    chains: ReadonlyMap<string, CostReader>,
    config: Config | undefined,
  ) {
    this.#ledger = ledger;
    this.#by = by;
    this.#chains = chains;
    this.#config = config;
  }

  /** Whether the transaction is named for the first time: one may be many refunds. */
  isFirst(one: NamedTransaction): boolean {
    const name = streamOf(one);
    return !this.#tried.has(name) && this.#tried.add(name).has(name);
  }

  async record({ network, transaction, purpose, from }: NamedTransaction): Promise<CostAnswer> {
    const unanswered = this.#unanswered.get(network) ?? 0;
    if (unanswered >= mostUnanswered)
      return { kind: 'refused', code: 'chain_unavailable', detail: 'not asked any more' };
    const own = new Set([...(await this.#ownOf(network)), from]);
    const order = { network, transaction, purpose, own, operator: this.#by.operator };
    const answer = await recordCost(this.#ledger, order, this.#chains.get(network));
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

/** Those of which no cost stands recorded, with the reversal where one was. */
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

/** The transaction of the operator that an event names; undefined where somebody else has sent it. */
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
