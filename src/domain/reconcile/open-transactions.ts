import type { LedgerFacts } from './ledger-facts.ts';
import type { Matcher } from './match.ts';
import { transactionKey } from './reconcile.ts';

/** The transactions whose receipts are needed: of facts that no log shows, and of unknown transfers. */
export function openTransactions(
  facts: LedgerFacts,
  matcher: Matcher,
  payees: ReadonlySet<string>,
  most: number,
): { readonly network: string; readonly transaction: string }[] {
  const wanted = new Map<string, { readonly network: string; readonly transaction: string }>();
  const want = ({
    network,
    transaction,
  }: {
    readonly network: string;
    readonly transaction: string;
  }): void => {
    wanted.set(transactionKey({ network, transaction }), { network, transaction });
  };
  for (const payment of matcher.payments) {
    const { network, transaction } = payment;
    const isOpen = payment.status === 'settled' && !matcher.placed.has(payment);
    const isMeant = facts.positionOf(payment) === 'in' || facts.isLate(payment);
    if (isOpen && transaction !== undefined && isMeant) want({ network, transaction });
  }
  for (const out of facts.late) want(out);
  for (const out of matcher.outs) {
    // what an operator called no payment may be one: its receipt says so
    const isRecorded = out.of !== 'refund' && out.of !== 'sweep';
    if (isRecorded || !matcher.placed.has(out)) want(out);
  }
  const shown = new Set(matcher.candidates.map(transactionKey));
  for (const { network, operator, transaction } of facts.spends)
    if (transaction !== undefined && payees.has(`${network}/${operator}`))
      if (!shown.has(transactionKey({ network, transaction }))) want({ network, transaction });
  const enough = wanted.size + most;
  const sought = matcher.candidates.filter((transfer) => matcher.isSought(transfer));
  for (const transfer of [...sought, ...matcher.candidates]) if (wanted.size < enough) want(transfer);
  return [...wanted.values()];
}
