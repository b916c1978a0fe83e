import { accounts, chainAccount, chatIncome, spendsReceivable } from './account.ts';
import { creditCommodity, type Commodities } from './commodity.ts';
import type { Move } from './entry.ts';
import type { EventOf } from '../events/event.ts';

type CreditEvent = EventOf<
  | 'credit_granted'
  | 'credit_topped_up'
  | 'credit_reversed'
  | 'credit_captured'
  | 'credit_corrected'
  | 'credit_expired'
>;
type SpendEvent = EventOf<'spend_earned' | 'spend_paid_out' | 'spend_failed'>;

/**
 * Credit is a liability until it is used, reversed or expires. Granted credit is an expense; bought credit comes out of
 * `Equity:Conversion`, where the token went in. Holds have no postings: held credit is still owed.
 */
export function creditMoves(event: CreditEvent, model: string | undefined): Move[] {
  const { prepaidCredit, conversion, creditGrants, lostTopUps, breakage } = accounts;
  const { amount_micros: micros } = event.data;
  switch (event.type) {
    case 'credit_granted':
      return moves(creditGrants, prepaidCredit, micros);
    case 'credit_topped_up':
      return moves(conversion, prepaidCredit, micros);
    case 'credit_reversed':
      // the part that was used is lost
      return [
        ...moves(prepaidCredit, conversion, micros),
        ...moves(lostTopUps, conversion, event.data.missing_micros),
      ];
    case 'credit_captured':
      return moves(prepaidCredit, chatIncome(model), micros);
    case 'credit_corrected':
      return moves(chatIncome(model), prepaidCredit, micros);
    case 'credit_expired':
      return moves(prepaidCredit, breakage, micros);
  }
}

function moves(debit: string, credit: string, micros: string): Move[] {
  const atoms = BigInt(micros);
  return atoms === 0n ? [] : [{ debit, credit, commodity: creditCommodity, atoms }];
}

/** A spend is income once it is earned, and a receivable until its operator has the tokens. */
export function spendMoves({ type, data }: SpendEvent, commodities: Commodities): Move[] {
  const { network, contract, operator, amount } = data;
  const commodity = commodities.spend(network, contract);
  const receivable = spendsReceivable(commodity, operator);
  const atoms = BigInt(amount);
  if (atoms === 0n) return [];
  switch (type) {
    case 'spend_earned':
      return [{ debit: receivable, credit: accounts.spends, commodity, atoms }];
    case 'spend_paid_out':
      return [{ debit: chainAccount(commodity, operator), credit: receivable, commodity, atoms }];
    case 'spend_failed':
      return [{ debit: accounts.lostSpends, credit: receivable, commodity, atoms }];
  }
}
