import { amountOf, type OutFact, type PaymentFact, type SpendFact } from './fact.ts';
import type { LedgerFacts } from './ledger-facts.ts';
import { chainFields, outFields, paymentFields, spendFields } from './fields.ts';
import { EvidenceBook, type Matcher, outMismatch, paymentMismatch } from './match.ts';
import { addTo, type BlockRange, type ItemClass, transactionKey, transferKey } from './reconcile.ts';
import { type ChainTransfer, type Evidence } from '../../../payments/rules/chain-transfer.ts';
import type { ItemFields, Tally } from './tally.ts';

export interface Sides {
  readonly facts: LedgerFacts;
  readonly matcher: Matcher;
  /** By `transactionKey`. */
  readonly evidence: ReadonlyMap<string, Evidence>;
  readonly ranges: ReadonlyMap<string, BlockRange>;
  /** `network/address` of every account. */
  readonly payees: ReadonlySet<string>;
  readonly tally: Tally;
}

/** By account: the ledger's amounts in and out within the period, and its balance before. */
export interface LedgerSums {
  readonly opening: Map<string, bigint>;
  readonly in: Map<string, bigint>;
  readonly out: Map<string, bigint>;
}

export interface Classified {
  readonly ledger: LedgerSums;
  /** Transfers within the period that the logs of their block show and those of the period do not: the node contradicts itself. */
  readonly contradictions: readonly ChainTransfer[];
  /** Payments proven in a block of which the node does not know the transaction, or shows no log of the payer in it. */
  readonly unseen: readonly PaymentFact[];
  /** Payments whose transfer is in a block before the period. */
  readonly before: ReadonlySet<PaymentFact>;
  /** Transfers that the ledger has in a block before the period, and the chain has not. */
  readonly missing: ReadonlySet<OutFact>;
}

/** Puts every fact and every transfer into exactly one class, with the amount that it moved. Pure. */
export function classify(sides: Sides): Classified {
  return new Classification(sides).run();
}

/** An inbound or outbound transfer that no fact explains. */
export function strangerOf(
  transfer: ChainTransfer,
  payees: ReadonlySet<string>,
): { readonly name: ItemClass; readonly fields: ItemFields } {
  const { network, from, to } = transfer;
  const leaves = payees.has(`${network}/${from}`);
  const payTo = leaves ? from : to;
  return {
    name: leaves ? 'foreign_use' : 'on_chain_without_event',
    fields: { ...chainFields(transfer), of: 'transfer', pay_to: payTo, from, to },
  };
}

class Classification {
  readonly #facts: LedgerFacts;
  readonly #matcher: Matcher;
  readonly #evidence: EvidenceBook;
  readonly #ranges: ReadonlyMap<string, BlockRange>;
  readonly #payees: ReadonlySet<string>;
  readonly #tally: Tally;
  readonly #found = new Map<PaymentFact | OutFact | SpendFact, ChainTransfer>();
  readonly #free = new Map<string, ChainTransfer>();
  readonly #freeByTransaction = new Map<string, ChainTransfer[]>();
  readonly #claimed = new Map<string, ChainTransfer[]>();
  readonly #ledger: LedgerSums;
  readonly #contradictions: ChainTransfer[] = [];
  readonly #unseen: PaymentFact[] = [];
  readonly #before = new Set<PaymentFact>();
  readonly #missing = new Set<OutFact>();

  constructor({ facts, matcher, evidence, ranges, payees, tally }: Sides) {
    this.#facts = facts;
    this.#matcher = matcher;
    this.#evidence = new EvidenceBook(evidence);
    this.#ranges = ranges;
    this.#payees = payees;
    this.#tally = tally;
    this.#ledger = { opening: new Map(facts.opening), in: new Map(facts.plainIn), out: new Map() };
  }

  run(): Classified {
    for (const transfer of this.#matcher.candidates) this.#release(transfer);
    for (const transfer of this.#matcher.placed.values()) this.#release(transfer);
    // an authorization's nonce moves money once: the chain's answer about it decides before places, transactions and amounts
    this.#search(this.#matcher.payments, (payment) => this.#byAuthorization(payment));
    this.#takePlaced();
    const settled = this.#matcher.payments.filter(({ status }) => status === 'settled');
    this.#search(settled, (payment) => this.#perfect(payment));
    this.#search(settled, (payment) => this.#nearest(payment));
    for (const payment of settled) this.#settled(payment);
    for (const payment of this.#matcher.payments) if (payment.status !== 'settled') this.#unsettled(payment);
    for (const out of this.#matcher.outs) this.#out(out);
    for (const out of this.#facts.late) this.#lateOut(out);
    for (const fact of this.#facts.carried)
      if (!this.#missing.has(fact))
        this.#tally.add('suspense', { ...outFields(fact, fact.to), carried: true });
    const spends = this.#facts.spends.toSorted((a, b) => Number(!a.transaction) - Number(!b.transaction));
    for (const spend of spends) this.#spend(spend);
    for (const transfer of this.#free.values()) this.#stranger(transfer);
    const [contradictions, unseen] = [this.#contradictions, this.#unseen];
    return { ledger: this.#ledger, contradictions, unseen, before: this.#before, missing: this.#missing };
  }

  // Matching transfers to facts.

  #release(transfer: ChainTransfer): void {
    this.#free.set(transferKey(transfer), transfer);
    const key = transactionKey(transfer);
    const known = this.#freeByTransaction.get(key);
    if (known) known.push(transfer);
    else this.#freeByTransaction.set(key, [transfer]);
  }

  #takePlaced(): void {
    for (const [fact, transfer] of this.#matcher.placed) {
      if (this.#found.has(fact) || !this.#free.has(transferKey(transfer))) continue;
      const isOther =
        'payer' in fact &&
        (paymentMismatch(fact, transfer) === 'other_payer' || this.#evidence.isOfAnother(fact, transfer));
      if (!isOther) this.#claim(fact, transfer);
    }
  }

  #claim(fact: PaymentFact | OutFact | SpendFact, transfer: ChainTransfer): void {
    this.#found.set(fact, transfer);
    this.#free.delete(transferKey(transfer));
    const key = transactionKey(transfer);
    const known = this.#claimed.get(key);
    if (known) known.push(transfer);
    else this.#claimed.set(key, [transfer]);
  }

  #search(payments: readonly PaymentFact[], look: (payment: PaymentFact) => ChainTransfer | undefined): void {
    for (const payment of payments) {
      if (this.#found.has(payment)) continue;
      const transfer = look(payment);
      if (transfer) this.#claim(payment, transfer);
    }
  }

  #freeIn({ network, transaction }: { network: string; transaction: string | undefined }): ChainTransfer[] {
    if (transaction === undefined) return [];
    const all = this.#freeByTransaction.get(transactionKey({ network, transaction })) ?? [];
    return all.filter((transfer) => this.#free.has(transferKey(transfer)));
  }

  #perfect(payment: PaymentFact): ChainTransfer | undefined {
    return this.#freeIn(payment).find((transfer) => this.#isFit(payment, transfer));
  }

  #isFit(payment: PaymentFact, transfer: ChainTransfer): boolean {
    return paymentMismatch(payment, transfer) === undefined && !this.#evidence.isOfAnother(payment, transfer);
  }

  #byAuthorization(payment: PaymentFact): ChainTransfer | undefined {
    const transfer = this.#evidence.transferBy(payment);
    if (!transfer) return undefined;
    // the money of a failed payment that landed nevertheless may have been recorded as an unexplained transfer
    const isRecorded = payment.status === 'settlement_failed' && this.#matcher.isOfOut(transfer);
    return isRecorded ? undefined : this.#free.get(transferKey(transfer));
  }

  /** A transfer of its payer in its transaction that differs in one term. */
  #nearest(payment: PaymentFact): ChainTransfer | undefined {
    const near = this.#freeIn(payment).filter((transfer) => this.#isOfPayer(payment, transfer));
    for (const kind of ['amount_mismatch', 'asset_mismatch', 'payee_mismatch'] as const) {
      const transfer = near.find((one) => paymentMismatch(payment, one) === kind);
      if (transfer) return transfer;
    }
    return undefined;
  }

  #isOfPayer(payment: PaymentFact, transfer: ChainTransfer): boolean {
    return transfer.from === payment.payer && !this.#evidence.isOfAnother(payment, transfer);
  }

  // Classifying facts and transfers.

  #settled(payment: PaymentFact): void {
    const transfer = this.#found.get(payment);
    if (transfer) return this.#settledThere(payment, transfer);
    const position = this.#facts.positionOf(payment);
    const isUnshown =
      this.#facts.isLate(payment) && !this.#shown(payment).some((one) => this.#isFit(payment, one));
    if (position === 'before' && !isUnshown) return this.#settledBefore(payment);
    if (position === 'after') return this.#settledAfter(payment);
    return this.#settledNowhere(payment);
  }

  #settledThere(payment: PaymentFact, transfer: ChainTransfer): void {
    addTo(this.#ledger.in, payment, amountOf(payment));
    const mismatch = paymentMismatch(payment, transfer);
    if (mismatch !== undefined && mismatch !== 'other_payer')
      return this.#add(mismatch, payment, transfer, undefined, transfer);
    if (payment.differs !== undefined)
      return this.#add('quote_terms_differ', payment, transfer, payment.differs, transfer);
    const recorded = this.#facts.recorded(payment.settled?.at ?? '');
    const why = recorded === 'in' ? placeDifference(payment, transfer) : `recorded_${recorded}`;
    if (isRefundDue(payment)) return this.#add('refund_due', payment, transfer, why, transfer);
    return this.#add(recorded === 'in' ? 'matched' : 'timing', payment, transfer, why, transfer);
  }

  #open(payment: PaymentFact): void {
    this.#before.add(payment);
    addTo(this.#ledger.opening, payment, amountOf(payment));
  }

  #settledBefore(payment: PaymentFact): void {
    this.#open(payment);
    if (isRefundDue(payment)) this.#tally.add('refund_due', { ...paymentFields(payment), carried: true });
    else if (this.#facts.recorded(payment.settled?.at ?? '') === 'in')
      this.#add('timing', payment, undefined, 'occurred_before');
  }

  #settledAfter(payment: PaymentFact): void {
    if (this.#facts.recorded(payment.settled?.at ?? '') !== 'in') return;
    if (this.#ranges.get(payment.network)?.isCovered)
      this.#add('timing', payment, undefined, 'occurred_after');
    else this.#add('not_final', payment, undefined, 'block_not_final');
  }

  /** Settled within the period by the ledger, and no log shows it. */
  #settledNowhere(payment: PaymentFact): void {
    const { network, transaction } = payment;
    const taken =
      transaction === undefined ? [] : this.#claimed.get(transactionKey({ network, transaction }));
    const isTaken = taken?.some((transfer) => paymentMismatch(payment, transfer) === undefined);
    const place = this.#matcher.placed.get(payment);
    const isDisplaced =
      this.#matcher.displaced.has(payment) || (place && !this.#free.has(transferKey(place)));
    if (isTaken || isDisplaced) return this.#wanting('duplicate_claim', payment);
    const evidence = this.#evidence.of(payment);
    if (evidence?.kind === 'pending') return this.#add('not_final', payment, undefined, 'pending');
    if (evidence?.kind === 'reverted') return this.#wanting('missing_on_chain', payment, 'reverted');
    if (evidence?.kind !== 'mined') {
      if (payment.settled?.proof) this.#unseen.push(payment);
      return this.#wanting('missing_on_chain', payment, 'no_receipt');
    }
    const fit = evidence.transfers.find((transfer) => this.#isFit(payment, transfer));
    if (fit) return this.#elsewhere(payment, fit);
    const own = evidence.transfers.filter((transfer) => this.#isOfPayer(payment, transfer));
    const near = nearIn(payment, own);
    if (near) return this.#wanting(near.kind, payment, undefined, near.transfer);
    // it names a log of that very block, which shows none of its payer in it
    if (evidence.transfers.length === 0 && payment.settled?.proof) this.#unseen.push(payment);
    const isOther = evidence.transfers.some((transfer) => this.#evidence.isOfAnother(payment, transfer));
    return this.#wanting('missing_on_chain', payment, isOther ? 'other_authorization' : 'no_transfer');
  }

  /** It landed, but not in a block of the period. */
  #elsewhere(payment: PaymentFact, transfer: ChainTransfer): void {
    const range = this.#ranges.get(payment.network);
    if (!range) return;
    if (transfer.blockNumber < range.from) {
      this.#open(payment);
      this.#add('timing', payment, transfer, 'occurred_before');
    } else if (transfer.blockNumber <= range.to) this.#contradictions.push(transfer);
    else if (range.isCovered) this.#add('timing', payment, transfer, 'occurred_after');
    else this.#add('not_final', payment, transfer, 'block_not_final');
  }

  #wanting(name: ItemClass, payment: PaymentFact, why?: string, found?: ChainTransfer): void {
    addTo(this.#ledger.in, payment, amountOf(payment));
    this.#add(name, payment, found, why);
  }

  #unsettled(payment: PaymentFact): void {
    const transfer = this.#found.get(payment);
    if (payment.status === 'settlement_failed') {
      const fields = { foreign: false, why: 'recorded_as_failed' };
      const failed = { ...paymentFields(payment), ...fields };
      if (transfer)
        this.#tally.add('on_chain_without_event', { ...failed, ...chainFields(transfer) }, transfer);
      return;
    }
    const started = this.#facts.recorded(payment.startedAt);
    if (started === 'after' && !transfer) return;
    const carried = started === 'before' ? { carried: true } : {};
    const why = transfer ? 'landed' : payment.status;
    const fields = { ...paymentFields(payment), ...(transfer && chainFields(transfer)), ...carried, why };
    this.#tally.add('unknown', fields, transfer);
  }

  /** The transfers of a fact's transaction, if that was looked at. */
  #shown(fact: PaymentFact | OutFact | SpendFact): readonly ChainTransfer[] {
    const evidence = this.#evidence.of(fact);
    return evidence?.kind === 'mined' ? evidence.transfers : [];
  }

  #isPayee(network: string, address: string): boolean {
    return this.#payees.has(`${network}/${address}`);
  }

  /** The payees among the two ends of a transfer. */
  #payeesOf({ network, payTo, to }: OutFact): {
    readonly from: string | undefined;
    readonly to: string | undefined;
  } {
    const payee = (address: string): string | undefined =>
      this.#isPayee(network, address) ? address : undefined;
    return { from: payee(payTo), to: payee(to) };
  }

  /** Under the payee that it is from; if that is not one, under the one that it is to. */
  #outFields(out: OutFact): ItemFields {
    const { from, to } = this.#payeesOf(out);
    return outFields(out, from ?? to ?? out.payTo);
  }

  /** Its block is before the period: the opening has it, unless the chain has not. */
  #lateOut(out: OutFact): void {
    const { amount, logIndex } = out;
    const there = this.#shown(out).find(
      (one) => one.logIndex === logIndex && outMismatch(out, one) === undefined,
    );
    const own = this.#outFields(out);
    if (there) {
      // money in suspense is listed as such
      if (out.of === 'suspense') return;
      return this.#tally.add('timing', { ...own, ...chainFields(there), why: 'occurred_before' });
    }
    this.#missing.add(out);
    const { from, to } = this.#payeesOf(out);
    if (from !== undefined) {
      addTo(this.#ledger.opening, out, amount);
      addTo(this.#ledger.out, out, amount);
    }
    if (to !== undefined && out.of !== 'refund') {
      addTo(this.#ledger.opening, { ...out, payTo: to }, -amount);
      addTo(this.#ledger.in, { ...out, payTo: to }, amount);
    }
    this.#tally.add('missing_on_chain', { ...own, why: `no_${out.of}` });
  }

  #out(out: OutFact): void {
    const { from, to } = this.#payeesOf(out);
    if (from !== undefined) addTo(this.#ledger.out, out, out.amount);
    if (to !== undefined) addTo(this.#ledger.in, { ...out, payTo: to }, out.amount);
    const own = this.#outFields(out);
    const placed = this.#found.get(out) ?? this.#nearOut(out);
    if (placed) {
      if (!this.#found.has(out)) this.#claim(out, placed);
      const recorded = this.#facts.recorded(out.recordedAt);
      const late = recorded === 'in' ? {} : { why: `recorded_${recorded}` };
      const fields = { ...own, ...chainFields(placed), ...late };
      return this.#tally.add(outMismatch(out, placed) ?? out.of, fields, placed);
    }
    // its place is another fact's, or a payment's own nonce has moved it
    if (this.#matcher.displaced.has(out) || this.#matcher.placed.has(out))
      return this.#tally.add('duplicate_claim', own);
    const fit = this.#shown(out).find((transfer) => outMismatch(out, transfer) === undefined);
    if (fit && (from !== undefined || to !== undefined)) this.#contradictions.push(fit);
    else if (fit) this.#tally.add(out.of, { ...own, ...chainFields(fit), why: 'other_account' });
    else this.#tally.add('missing_on_chain', { ...own, why: `no_${out.of}` });
  }

  #nearOut(out: OutFact): ChainTransfer | undefined {
    const leaving = this.#freeIn(out).filter(({ from }) => from === out.payTo);
    const perfect = leaving.find((transfer) => outMismatch(out, transfer) === undefined);
    return perfect ?? leaving.find(({ asset, to }) => asset === out.asset && to === out.to);
  }

  /** A payout to a payee is matched with its transfer; one to another account only has to exist. */
  #spend(spend: SpendFact): void {
    const transfer = this.#payoutOf(spend);
    const fields = spendFields(spend);
    if (transfer) {
      this.#claim(spend, transfer);
      this.#tally.add('spend', { ...fields, ...chainFields(transfer), pay_to: transfer.to }, transfer);
    } else if (spend.transaction !== undefined && this.#payees.has(`${spend.network}/${spend.operator}`)) {
      if (!this.#shown(spend).some((one) => isPayout(spend, one)))
        this.#tally.add('missing_on_chain', fields);
    }
  }

  #payoutOf(spend: SpendFact): ChainTransfer | undefined {
    const { network, transaction } = spend;
    const near =
      transaction === undefined ? [...this.#free.values()] : this.#freeIn({ network, transaction });
    return near.find((one) => isPayout(spend, one) && this.#payees.has(`${network}/${one.to}`));
  }

  #stranger(transfer: ChainTransfer): void {
    const { name, fields } = strangerOf(transfer, this.#payees);
    if (name === 'foreign_use') return this.#tally.add(name, fields, transfer);
    const authorization = this.#evidence.authorizationOf(transfer);
    const by = authorization
      ? { foreign: true, payer: authorization.payer, payment_nonce: authorization.nonce }
      : { foreign: false };
    const unasked = this.#evidence.of(transfer) === undefined ? { why: 'receipt_not_asked' } : {};
    return this.#tally.add(name, { ...fields, ...by, ...unasked }, transfer);
  }

  #add(
    name: ItemClass,
    payment: PaymentFact,
    shown: ChainTransfer | undefined,
    why?: string,
    moved?: ChainTransfer,
  ): void {
    const chain = shown && chainFields(shown);
    const to = shown && shown.to !== payment.payTo ? { to: shown.to } : {};
    const { asset } = payment;
    const other = shown && shown.asset !== asset ? { chain_asset: shown.asset } : {};
    const fields = { ...paymentFields(payment), ...chain, ...to, ...(why !== undefined && { why }) };
    this.#tally.add(name, { ...fields, asset, ...other }, moved);
  }
}

function isPayout({ network, contract, amount }: SpendFact, transfer: ChainTransfer): boolean {
  return transfer.network === network && transfer.from === contract && transfer.amount === amount;
}

/** Paid, not delivered and not to be delivered, or granted to its payer, and not refunded as a whole. */
function isRefundDue({ call, isRefunded, refundGrantedAt }: PaymentFact): boolean {
  const isOwed =
    call?.status === 'completed' ? refundGrantedAt !== undefined : call?.status === 'dead_lettered';
  return !isRefunded && (!call || isOwed);
}

/** How its place on the chain differs from the ledger's; undefined if it does not. */
function placeDifference(
  { transaction, settled }: PaymentFact,
  { transaction: there, blockHash, logIndex }: ChainTransfer,
): string | undefined {
  if (transaction !== there) return 'other_transaction';
  const proof = settled?.proof;
  return proof && (proof.blockHash !== blockHash || proof.logIndex !== logIndex) ? 'other_block' : undefined;
}

/** Of the payer's own transfers in the same transaction: one to another account, or of another token. */
function nearIn(
  payment: PaymentFact,
  own: readonly ChainTransfer[],
): { readonly kind: 'asset_mismatch' | 'payee_mismatch'; readonly transfer: ChainTransfer } | undefined {
  const elsewhere = own.find(({ asset, amount }) => asset === payment.asset && amount === amountOf(payment));
  if (elsewhere) return { kind: 'payee_mismatch', transfer: elsewhere };
  const other = own.find(({ to, asset }) => to === payment.payTo && asset !== payment.asset);
  return other && { kind: 'asset_mismatch', transfer: other };
}
