import type { LedgerFacts } from './ledger-facts.ts';
import { Matcher, type StrangerLimit } from './match.ts';
import type { PlainPayments } from './plain-payments.ts';
import { transactionKey } from './reconcile.ts';
import { type ChainTransfer } from '../../../payments/rules/chain-transfer.ts';

/**
 * Takes the transfers of a period in the order of the chain and keeps those that need a further look: all but the transactions that did
 * exactly as the plain payments of the ledger say.
 */
export class TransferFilter {
  readonly #plain: PlainPayments;
  readonly #matcher: Matcher;
  readonly #payees: ReadonlySet<string>;
  /** Of transactions that plain payments name, and that did something else. */
  readonly #others: ChainTransfer[] = [];
  #transaction: ChainTransfer[] = [];

  /**
   * @param facts the ledger's facts other than the plain payments
   * @param payees `network/address` of every account
   */
  constructor(facts: LedgerFacts, plain: PlainPayments, payees: ReadonlySet<string>, limit: StrangerLimit) {
    this.#plain = plain;
    this.#payees = payees;
    this.#matcher = new Matcher(facts, limit);
  }

  take(transfer: ChainTransfer): void {
    const [first] = this.#transaction;
    if (first && transactionKey(first) !== transactionKey(transfer)) this.#flush();
    this.#transaction.push(transfer);
  }

  /** Takes the last transaction, so that the plain payments know all transfers. Returns the kept transfers, in the order of the chain. */
  finish(): ChainTransfer[] {
    this.#flush();
    const all = [...this.#others, ...this.#matcher.placed.values(), ...this.#matcher.candidates];
    return all.toSorted(
      (a, b) =>
        (a.network < b.network ? -1 : Number(a.network > b.network)) ||
        Number(a.blockNumber - b.blockNumber) ||
        a.logIndex - b.logIndex,
    );
  }

  #flush(): void {
    const transfers = this.#transaction;
    this.#transaction = [];
    const [first] = transfers;
    if (!first || this.#isPlain(first, transfers)) return;
    if (this.#plain.names(first)) this.#others.push(...transfers);
    else for (const transfer of transfers) this.#matcher.take(transfer);
  }

  #isPlain(first: ChainTransfer, transfers: readonly ChainTransfer[]): boolean {
    // a fact that is kept as a whole may claim a transfer of the same transaction
    if (this.#matcher.isNamed(first)) return false;
    // any account can make a token log a transfer of 0 between two addresses
    const moved = transfers.filter(({ amount }) => amount > 0n);
    // a transfer between two payees is on two accounts
    const areOfOthers = moved.every(({ network, from }) => !this.#payees.has(`${network}/${from}`));
    return areOfOthers && this.#plain.see(moved);
  }
}
