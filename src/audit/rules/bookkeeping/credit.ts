import { accounts, chainAccount, chatIncome, spendsReceivable } from './account.ts';
import type { Commodities } from './commodity.ts';
import type { Commodity, Move } from '../../../base/values/entry.ts';
import type { CreditParts, PartedEvent } from '../../../accounts/rules/credit/credit-parts.ts';
import type { EventOf } from '../../../ledger/rules/event.ts';

type SpendEvent = EventOf<'spend_earned' | 'spend_paid_out' | 'spend_failed'>;

/**
 * Credit is a liability until it is used, reversed or expires. Granted credit is an expense, and its use or expiry goes against that
 * expense; bought credit comes out of `Equity:Conversion`, if the token went in, and its use is income. Holds have no postings: held
 * credit is still owed. `parts`: the amounts that the event moves, by origin.
 */
export function creditMoves(
  event: PartedEvent,
  parts: CreditParts,
  model: string | undefined,
  currency: Commodity,
): Move[] {
  const { grantedCredit, boughtCredit, conversion, creditGrants, usedGrants, lostTopUps, breakage } =
    accounts;
  const { granted, bought } = parts;
  const moves = (debit: string, credit: string, atoms: bigint): Move[] =>
    atoms === 0n ? [] : [{ debit, credit, commodity: currency, atoms }];
  switch (event.type) {
    case 'credit_granted':
      return moves(creditGrants, grantedCredit, granted);
    case 'credit_topped_up':
      return moves(conversion, boughtCredit, bought);
    case 'credit_reversed':
      // the part that was used is lost
      return [
        ...moves(boughtCredit, conversion, bought),
        ...moves(grantedCredit, conversion, granted),
        ...moves(lostTopUps, conversion, BigInt(event.data.missing_micros)),
      ];
    case 'credit_captured':
      return [
        ...moves(grantedCredit, usedGrants, granted),
        ...moves(boughtCredit, chatIncome(model), bought),
      ];
    case 'credit_corrected':
      return [
        ...moves(chatIncome(model), boughtCredit, bought),
        ...moves(usedGrants, grantedCredit, granted),
      ];
    case 'credit_expired':
      return [...moves(grantedCredit, creditGrants, granted), ...moves(boughtCredit, breakage, bought)];
  }
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
