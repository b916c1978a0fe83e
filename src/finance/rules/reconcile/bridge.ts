import { paymentKey } from './booked-facts.ts';
import type { BookedBalance } from './books-at-close.ts';
import { amountOf, type OutFact, type PaymentFact } from './fact.ts';
import { outFields, paymentFields } from './fields.ts';
import { accountKey, type Account, addTo, type ItemClass, itemClasses, transferKey } from './reconcile.ts';
import { type ChainTransfer } from '../../../payments/rules/chain-transfer.ts';
import type { LedgerFacts } from './ledger-facts.ts';
import type { ItemFields } from './tally.ts';

/** Why the books and the chain differ by an item: its class, or on which side of the end of the period it is. */
type BridgeReason = ItemClass | 'recorded_after' | 'mined_after' | 'taken_back';

/** What people read for those reasons whose name does not say it. */
export const bridgeReasonTexts: Readonly<Record<string, string>> = {
  recorded_after: 'recorded after the end',
  mined_after: 'mined after the end',
  taken_back: 'taken back after the end',
  not_final: 'not final',
  unknown: 'unsettled',
};

/** An item by which they differ. */
interface BridgeItem {
  /** How much more of it the chain has. */
  readonly atoms: bigint;
  readonly fields: ItemFields;
}

/** The items of one reason. Beyond the listed ones they are only counted. */
export interface BridgeLine {
  readonly reason: BridgeReason;
  count: number;
  atoms: bigint;
  readonly items: BridgeItem[];
}

/** From the books' closing to the chain's balance. All in atoms. */
export interface Bridge {
  readonly books: BookedBalance;
  readonly lines: readonly BridgeLine[];
}

interface Noted {
  readonly name: ItemClass;
  readonly fields: ItemFields;
  readonly transfer: ChainTransfer | undefined;
}

/**
 * Explains, for each account, by which items the books' closing and the chain's balance differ. It gets every item of a
 * reconciliation with the transfer that it has within the period, then every fact.
 */
export class BridgeBuilder {
  readonly #noted = new Map<string, Noted>();
  readonly #lines = new Map<string, Map<BridgeReason, BridgeLine>>();
  readonly #payees: ReadonlySet<string>;
  readonly #listed: number;

  /** `payees` are `network/address` of every account. */
  constructor(payees: ReadonlySet<string>, listed: number) {
    this.#payees = payees;
    this.#listed = listed;
  }

  /** An item of the reconciliation. One without a fact of the ledger becomes a line immediately. */
  note(name: ItemClass, fields: ItemFields, transfer: ChainTransfer | undefined): void {
    const key = keyOfItem(fields);
    if (key !== undefined) this.#noted.set(key, { name, fields, transfer });
    else if (transfer) for (const [at, atoms] of this.#sides(transfer)) this.#add(at, name, atoms, fields);
  }

  /** A payment; `isBefore`: its transfer is in a block before the period; `booked`: its amounts in the books at the end. */
  #payment(payment: PaymentFact, isBefore: boolean, booked: bigint): void {
    const noted = this.#noted.get(paymentKey(payment));
    const own = accountKey(payment);
    const chain = new Map<string, bigint>();
    if (noted?.transfer) for (const [at, atoms] of this.#sides(noted.transfer)) addTo(chain, at, atoms);
    else if (isBefore) addTo(chain, own, amountOf(payment));
    addTo(chain, own, -booked);
    this.#addAll(chain, booked > 0n, noted, paymentFields(payment));
  }

  /** A refund, a sweep or a recorded transfer. `isBefore` as above; `booked`: as the books had it at the end of the period. */
  #out(fact: OutFact, isBefore: boolean, booked: OutFact | undefined): void {
    const noted = this.#noted.get(`out ${transferKey(fact)}`);
    const chain = new Map<string, bigint>();
    if (noted?.transfer) for (const [at, atoms] of this.#sides(noted.transfer)) addTo(chain, at, atoms);
    else if (isBefore) for (const [at, atoms] of this.#factSides(fact)) addTo(chain, at, atoms);
    if (booked) for (const [at, atoms] of this.#factSides(booked)) addTo(chain, at, -atoms);
    this.#addAll(chain, booked !== undefined, noted, outFields(fact));
  }

  /** A transfer that the books had, and whose record was reversed since. */
  #takenBack(fact: OutFact): void {
    for (const [at, atoms] of this.#factSides(fact)) this.#add(at, 'taken_back', -atoms, outFields(fact));
  }

  /**
   * Takes every fact that is kept, once all items were noted. `before`: payments whose transfer is in a block before the period;
   * `missing`: transfers that the ledger has in such a block, and the chain has not.
   */
  takeFacts(facts: LedgerFacts, before: ReadonlySet<PaymentFact>, missing: ReadonlySet<OutFact>): void {
    const { booked: atEnd } = facts;
    for (const payment of facts.payments())
      this.#payment(payment, before.has(payment), atEnd.ofPayment(payment));
    const outs = [...facts.outs, ...facts.straddling];
    for (const fact of outs) {
      const isRecorded = fact.of !== 'refund' && fact.of !== 'sweep';
      const isBooked = !isRecorded && facts.recorded(fact.recordedAt) !== 'after';
      const booked = isRecorded ? atEnd.transferAt(fact) : isBooked ? fact : undefined;
      this.#out(fact, facts.positionOfOut(fact) === 'before' && !missing.has(fact), booked);
    }
    const standing = new Set(outs.map(transferKey));
    for (const fact of atEnd.transfers) if (!standing.has(transferKey(fact))) this.#takenBack(fact);
  }

  linesOf(account: Account): readonly BridgeLine[] {
    const lines = [...(this.#lines.get(accountKey(account))?.values() ?? [])];
    return lines.toSorted((a, b) => (a.reason < b.reason ? -1 : 1));
  }

  #addAll(
    differences: ReadonlyMap<string, bigint>,
    isBooked: boolean,
    noted: Noted | undefined,
    fields: ItemFields,
  ): void {
    for (const [at, atoms] of differences)
      if (atoms !== 0n) this.#add(at, reasonOf(noted?.name, isBooked), atoms, noted?.fields ?? fields);
  }

  #add(at: string, reason: BridgeReason, atoms: bigint, fields: ItemFields): void {
    let lines = this.#lines.get(at);
    if (!lines) this.#lines.set(at, (lines = new Map()));
    let line = lines.get(reason);
    if (!line) lines.set(reason, (line = { reason, count: 0, atoms: 0n, items: [] }));
    line.count += 1;
    line.atoms += atoms;
    if (line.items.length < this.#listed) line.items.push({ atoms, fields });
  }

  /** What a transfer moves on the accounts of payees. */
  #sides({ network, asset, from, to, amount }: ChainTransfer): (readonly [string, bigint])[] {
    return (
      [
        [to, amount],
        [from, -amount],
      ] as const
    ).flatMap(([payTo, atoms]) =>
      this.#payees.has(`${network}/${payTo}`)
        ? [[accountKey({ network, asset, payTo }), atoms] as const]
        : [],
    );
  }

  /** The same for the ledger's fact: the books have no source for money in suspense or kept. */
  #factSides({ of, network, asset, payTo: from, to, amount }: OutFact): (readonly [string, bigint])[] {
    const place = { network, asset, amount, transaction: '', blockNumber: 0n, blockHash: '', logIndex: 0 };
    const isOneSided = of === 'suspense' || of === 'income';
    return this.#sides({ ...place, to: of === 'refund' ? '' : to, from: isOneSided ? '' : from });
  }
}

function reasonOf(name: ItemClass | undefined, isBooked: boolean): BridgeReason {
  // items that match or wait: only the time differs
  if (name === undefined || itemClasses[name] === 'ok' || name === 'refund_due' || name === 'suspense')
    return isBooked ? 'mined_after' : 'recorded_after';
  return name;
}

/** The fact that an item is about; undefined if it is about none. */
function keyOfItem({ of, ...fields }: ItemFields): string | undefined {
  const { network, asset, quote_digest: quoteDigest, payer, payment_nonce: nonce } = fields;
  if (of === 'payment')
    return quoteDigest === undefined || asset === undefined || payer === undefined || nonce === undefined
      ? undefined
      : paymentKey({ quoteDigest, payment: { network, asset, payer, nonce } });
  if (of === 'transfer' || of === 'token' || of === 'spend') return undefined;
  const { transaction, log_index: logIndex } = fields;
  return transaction === undefined || logIndex === undefined
    ? undefined
    : `out ${transferKey({ network, transaction, logIndex })}`;
}
