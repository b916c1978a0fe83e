import { isSignedAmount } from '../../../payments/rules/payment.ts';
import { amountOf, type OutFact, type PaymentFact, type SpendFact } from './fact.ts';
import type { LedgerFacts } from './ledger-facts.ts';
import { transactionKey, transferKey } from './reconcile.ts';
import { type ChainTransfer, type Evidence } from '../../../payments/rules/chain-transfer.ts';

type Fact = PaymentFact | OutFact | SpendFact;

/** How many unknown transfers are kept, and the function that receives the rest. */
export interface StrangerLimit {
  readonly most: number;
  readonly stray: (transfer: ChainTransfer) => void;
}

/**
 * Matches transfers from the chain with the ledger's facts. A transfer at the place that a fact names is matched immediately; one
 * that may belong to a fact is kept, and so are unknown ones up to a limit.
 */
export class Matcher {
  /** The transfer at the place that the fact names. */
  readonly placed = new Map<Fact, ChainTransfer>();
  /** Facts whose place belongs to another fact already. */
  readonly displaced = new Set<Fact>();
  /** Transfers that may belong to a fact, and unknown ones, in the order of the chain. */
  readonly candidates: ChainTransfer[] = [];
  readonly payments: readonly PaymentFact[];
  readonly outs: readonly OutFact[];
  readonly #facts = new Map<string, Fact[]>();
  readonly #transactions = new Set<string>();
  readonly #payers = new Set<string>();
  readonly #limit: StrangerLimit | undefined;
  #strangers = 0;

  /** Without a limit all unknown transfers are kept as candidates. */
  constructor(facts: LedgerFacts, limit?: StrangerLimit) {
    this.#limit = limit;
    this.payments = facts.payments();
    for (const payment of this.payments) {
      const { network, transaction, settled, payer } = payment;
      if (settled?.proof) {
        const { logIndex } = settled.proof;
        this.#place(payment, { network, transaction: settled.transaction, logIndex });
      }
      if (transaction !== undefined) this.#transactions.add(transactionKey({ network, transaction }));
      if (!settled?.proof) this.#payers.add(`${network}/${payer}`);
    }
    this.outs = facts.outs;
    for (const out of this.outs) {
      this.#place(out, out);
      this.#transactions.add(transactionKey(out));
    }
    for (const { network, transaction, contract } of facts.spends)
      if (transaction === undefined) this.#payers.add(`${network}/${contract}`);
      else this.#transactions.add(transactionKey({ network, transaction }));
  }

  take(transfer: ChainTransfer): void {
    const [first, ...others] = this.#facts.get(transferKey(transfer)) ?? [];
    if (first) {
      this.placed.set(first, transfer);
      for (const other of others) this.displaced.add(other);
      return;
    }
    // any account can make a token log a transfer of 0 between two addresses
    if (transfer.amount === 0n) return;
    const mayBelong = this.isNamed(transfer) || this.#isOfPayer(transfer);
    if (!mayBelong && this.#limit && this.#strangers >= this.#limit.most) return this.#limit.stray(transfer);
    if (!mayBelong) this.#strangers += 1;
    this.candidates.push(transfer);
  }

  /** Whether a refund, a sweep or a recorded transfer names this place. */
  isOfOut(transfer: ChainTransfer): boolean {
    return this.#facts.get(transferKey(transfer))?.some((fact) => 'to' in fact) ?? false;
  }

  /** Whether it comes from a payer of an unmatched payment, in a transaction that the ledger does not name. */
  isSought(transfer: ChainTransfer): boolean {
    return this.#isOfPayer(transfer) && !this.isNamed(transfer);
  }

  /** Whether a fact names its transaction. */
  isNamed(transfer: ChainTransfer): boolean {
    return this.#transactions.has(transactionKey(transfer));
  }

  #isOfPayer({ network, from }: ChainTransfer): boolean {
    return this.#payers.has(`${network}/${from}`);
  }

  #place(fact: Fact, at: Pick<ChainTransfer, 'network' | 'transaction' | 'logIndex'>): void {
    const key = transferKey(at);
    const facts = this.#facts.get(key);
    if (facts) facts.push(fact);
    else this.#facts.set(key, [fact]);
  }
}

/** Why a transfer does not match a payment; undefined if it does. */
export function paymentMismatch(
  payment: PaymentFact,
  transfer: ChainTransfer,
): 'asset_mismatch' | 'payee_mismatch' | 'amount_mismatch' | 'other_payer' | undefined {
  if (transfer.from !== payment.payer) return 'other_payer';
  if (transfer.asset !== payment.asset) return 'asset_mismatch';
  if (transfer.to !== payment.payTo) return 'payee_mismatch';
  const isAmount = transfer.amount === amountOf(payment) && isSignedAmount(payment, transfer.amount);
  return isAmount ? undefined : 'amount_mismatch';
}

/** The same for a refund or a sweep. */
export function outMismatch(
  out: OutFact,
  transfer: ChainTransfer,
): 'asset_mismatch' | 'payee_mismatch' | 'amount_mismatch' | undefined {
  if (transfer.asset !== out.asset) return 'asset_mismatch';
  if (transfer.to !== out.to || transfer.from !== out.payTo) return 'payee_mismatch';
  return transfer.amount === out.amount ? undefined : 'amount_mismatch';
}

/** What transactions contain beyond the transfers to and from payees. */
export class EvidenceBook {
  readonly #byTransaction: ReadonlyMap<string, Evidence>;
  /** By transfer: the authorization that moved it. */
  readonly #authorized = new Map<string, { readonly payer: string; readonly nonce: string }>();
  /** By authorization: its transfer. */
  readonly #moved = new Map<string, ChainTransfer>();

  constructor(evidence: ReadonlyMap<string, Evidence>) {
    this.#byTransaction = evidence;
    for (const shown of evidence.values()) if (shown.kind === 'mined') this.#read(shown);
  }

  of(fact: { readonly network: string; readonly transaction?: string | undefined }): Evidence | undefined {
    const { network, transaction } = fact;
    return transaction === undefined
      ? undefined
      : this.#byTransaction.get(transactionKey({ network, transaction }));
  }

  /** The authorization that moved a transfer; undefined if none did, or the transaction was not looked at. */
  authorizationOf(transfer: ChainTransfer): { readonly payer: string; readonly nonce: string } | undefined {
    return this.#authorized.get(transferKey(transfer));
  }

  /** Whether the chain shows that another authorization moved a transfer than the payment's own. */
  isOfAnother({ payer, nonce }: Pick<PaymentFact, 'payer' | 'nonce'>, transfer: ChainTransfer): boolean {
    const moved = this.authorizationOf(transfer);
    return moved !== undefined && (moved.payer !== payer || moved.nonce !== nonce);
  }

  transferBy({
    network,
    asset,
    payer,
    nonce,
  }: Pick<PaymentFact, 'network' | 'asset' | 'payer' | 'nonce'>): ChainTransfer | undefined {
    return this.#moved.get(`${network}/${asset}/${payer}/${nonce}`);
  }

  #read({ transfers, authorizations }: Extract<Evidence, { kind: 'mined' }>): void {
    for (const { asset, payer, nonce, logIndex } of authorizations) {
      const transfer = transfers.find((one) => one.logIndex === logIndex);
      if (!transfer) continue;
      this.#authorized.set(transferKey(transfer), { payer, nonce });
      this.#moved.set(`${transfer.network}/${asset}/${payer}/${nonce}`, transfer);
    }
  }
}
