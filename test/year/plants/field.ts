import type { LedgerEvent } from '../../../src/ledger/rules/event.ts';
import { ofPayment } from '../../../src/payments/rules/payment.ts';
import type { Claim } from '../../../src/ledger/store/append-batch.ts';
import { readTransferHolders, transferClaim } from '../../../src/payments/store/claims.ts';
import type { Period } from '../../../src/base/values/period.ts';
import { placeData } from '../../../src/payments/rules/chain-transfer.ts';
import type { Address, Hex } from '../../../src/base/values/primitives.ts';
import { network, payTo, type YearToken } from '../chain.ts';
import { reconcilePeriod } from '../close.ts';
import { closeByTwo } from '../periods.ts';
import { makeSale, recordSale, startSale } from '../sale.ts';
import { deliverAll, mineStep, settleAll } from '../step.ts';
import { operators, type Sale, setClock, type World } from '../world.ts';

/** A transfer's place on the chain, as events have it. */
export type Place = ReturnType<typeof placeData> & { readonly transaction: Hex };

/** What must be found, and nothing besides, beyond what is found in a sound ledger. */
export interface Expected {
  /** Class and subject of each item that reconciling finds. */
  readonly items?: readonly string[];
  /** Those that it finds no longer. */
  readonly gone?: readonly string[];
  /** The number of the event that `verify` names. */
  readonly fault?: number;
  /** The tables of read models and claims whose row `verify` names. */
  readonly rows?: readonly string[];
  /** For each of these rows, in their order, words that say which row it is and what is wrong. */
  readonly named?: readonly string[];
  /** The checkpoint that was kept before does not hold: an event that it covers was changed. */
  readonly checkpoint?: true;
  /** The code with which reconciling refuses the ledger. */
  readonly refused?: string;
  /** What of the closed month is not as it was: the head of the log, exports. */
  readonly changed?: readonly string[];
  /** A refund that is due contradicts the events of its payment. */
  readonly contradicted?: number;
  /** The newest block must not become final. */
  readonly isUnfinished?: true;
}

/** A break and what must be found of it. */
export interface Plant {
  readonly name: string;
  plant(field: Field): Promise<Expected>;
}

/** Where breaks are planted: a copy of a sound ledger whose month is over, and its chain. */
export class Field {
  readonly world: World;
  /** Payments of the month that were delivered. */
  readonly delivered: readonly Sale[];
  /** Payments of the month whose refund is due. */
  readonly due: readonly Sale[];
  readonly period: Period;
  #next: number;

  constructor(world: World, period: Period, sales: readonly Sale[]) {
    this.world = world;
    this.period = period;
    this.delivered = sales.filter(({ fate, isReported }) => fate === 'delivered' && !isReported);
    this.due = sales.filter(({ booked }) => booked.dueAtoms > 0n);
    this.#next = 9_000_000 + world.counts.size;
  }

  /** A sale of the month that is not used by another part of the plant. */
  sale(list: readonly Sale[], n = 0): Sale {
    const sale = list[n];
    if (!sale) throw new Error('the month has no such sale');
    return sale;
  }

  /** A payment that the gateway has started, and that nobody has settled. */
  async start(): Promise<Sale> {
    const sale = makeSale(this.world, this.#next++, true);
    await startSale(this.world, sale);
    return sale;
  }

  /** The next block, with all that was sent. */
  async mine(atMs = this.world.nowMs + 20_000) {
    const block = await this.world.chain.mine(atMs);
    this.world.blockMs = atMs;
    return block;
  }

  /** A payment as it should be: landed, recorded, delivered. */
  async pay(sale: Sale): Promise<void> {
    await this.world.chain.submit([sale.payment]);
    const { payments } = await mineStep(this.world, this.world.nowMs + 20_000);
    await settleAll(this.world, [sale], payments);
    await deliverAll(this.world, 0);
  }

  /** The facilitator reports this transaction, and the gateway believes it. */
  async believe(sale: Sale, transaction: Hex): Promise<void> {
    await recordSale(this.world, sale, { kind: 'settled', transaction, proof: undefined });
    await deliverAll(this.world, 0);
  }

  /** Sends a plain transfer, in its own block, and returns its transaction. */
  async transfer(token: YearToken, from: Address, to: Address, atoms: bigint): Promise<Hex> {
    const transaction = await this.world.chain.send(token, from, to, atoms);
    await this.mine();
    return transaction;
  }

  /** Lets the newest block become final. */
  async finish(atMs = Math.max(this.world.nowMs, this.world.blockMs)): Promise<void> {
    const { world } = this;
    for (let n = 1; n <= 3; n++) await this.mine(atMs + n * 60_000);
    await setClock(world, atMs + 3_600_000);
  }

  /** Two persons close the month, once all of it is final. */
  async close(): Promise<void> {
    const { world } = this;
    await this.finish(this.period.toMs);
    const verifier = await world.ledger.seal();
    await closeByTwo(world.ledger, this.period, await reconcilePeriod(world, this.period, verifier));
  }

  /** Edits an event so that nothing else contradicts it, and makes all tree heads anew. */
  async editAndSealAnew(): Promise<void> {
    const { ledger } = this.world;
    const seq = await this.seqOf(this.sale(this.delivered).digest, 'settlement_started');
    await this.rewrite(seq, '"body_bytes":', '"body_bytes":9');
    for (const table of ['log_head', 'log_tile']) await ledger.asInsider(`delete from tollbook.${table}`);
    await ledger.asInsider(`update tollbook.log_tree set size = 0, edge = ''`);
  }

  /** Appends what the program itself would not, past its checks. Where its transfer is claimed already, it does without the claim. */
  async append(stream: string, event: LedgerEvent, binding?: string): Promise<void> {
    const { lane, pool } = this.world.ledger;
    const { transaction, log_index: logIndex } = event.data as Partial<Place>;
    const claims: Claim[] = [];
    if (transaction !== undefined && logIndex !== undefined && binding !== undefined) {
      const holders = await readTransferHolders(pool, network, transaction);
      if (holders(logIndex) === undefined)
        claims.push(transferClaim(network, transaction, logIndex, binding));
    }
    const { outcome } = await lane.append({ stream, events: [event], claims });
    if (outcome !== 'ok') throw new Error(`the plant was not recorded: ${outcome}`);
  }

  /** The place of a transfer by its receipt. */
  async placeOf(transaction: Hex): Promise<Place> {
    return { transaction, ...placeData(await this.world.chain.placeOf(transaction)) };
  }

  /** Records a refund of a whole payment. */
  async refund(sale: Sale, place: Place): Promise<void> {
    await this.append(sale.digest, this.#refunded(sale, place), `refund:${sale.payment.nonce}`);
  }

  #refunded(sale: Sale, place: Place): LedgerEvent {
    const { payment } = sale;
    const { payer, amount } = payment;
    const moved = { amount: String(amount), refunded_from: payTo, refunded_to: payer };
    return { type: 'refunded', data: { ...ofPayment(payment), ...moved, ...place, operator: operators[0] } };
  }

  /** The number of the first event of a type in a stream. */
  async seqOf(stream: string, type: LedgerEvent['type']): Promise<number> {
    const [row] = await this.world.ledger.asOwner(
      'select min(seq)::int as seq from tollbook.event where stream = tollbook.stream_key($1) and type = $2',
      [stream, type],
    );
    if (typeof row?.['seq'] !== 'number') throw new Error(`${stream} has no ${type}`);
    return row['seq'];
  }

  /** Rewrites an event as an insider, who owns the database. */
  async rewrite(seq: number, from: string, to: string): Promise<void> {
    const changed = await this.world.ledger.asInsider(
      'update tollbook.event set data = replace(data, $2, $3) where seq = $1 and position($2 in data) > 0 returning seq',
      [seq, from, to],
    );
    if (changed.length !== 1) throw new Error(`event ${seq} does not contain ${from}`);
  }
}
