import { spendAuthHash, authFromData } from '../../../accounts/rules/spend/spend-auth.ts';
import type { SentPayout } from '../../store/payouts.ts';
import type { StreamReading } from '../../../ledger/store/streams.ts';
import { isThisSpend } from './authorize-spend.ts';
import {
  type Accepted,
  advancePayout,
  isExpired,
  outcomeOfClaimed,
  outcomeOfEnd,
  type PayingOut,
  type PayoutOutcome,
  unavailable,
} from './payout.ts';

/**
 * Checks a payout transaction that was sent: records the payout once its block is final, raises the fee of one that does not
 * land, and has the spend paid out again if it will not land. Throws when the ledger cannot be reached.
 */
export function followPayout(context: PayingOut, sent: SentPayout): Promise<void> {
  return advancePayout(context, sent, (accepted, reading) => check(context, sent, accepted, reading));
}

async function check(
  { prepaid, settings }: PayingOut,
  { transaction }: SentPayout,
  accepted: Accepted,
  reading: StreamReading,
): Promise<PayoutOutcome> {
  const auth = authFromData(accepted.data);
  if (accepted.data.network !== settings.network) return { kind: 'retry', reason: 'other_contract' };
  const landed = await prepaid.findLanded(transaction);
  if (landed.kind === 'unavailable') return unavailable;
  if (landed.value) return outcomeOfEnd(prepaid, { how: 'claimed', ...landed.value });
  const authHash = spendAuthHash(auth);
  const found = await prepaid.getSpendAuth(authHash);
  if (found.kind === 'unavailable') return unavailable;
  // through another transaction, such as one with a higher fee
  if (found.value?.claimed && isThisSpend(auth, found.value))
    return outcomeOfClaimed(prepaid, authHash, accepted);
  // the contract would refuse it now, so that it does not land
  if (isExpired(auth, reading)) return { kind: 'resend', reason: 'spend_expired' };
  const pending = await prepaid.followPayment(authHash, settings.recipient ?? prepaid.operator, transaction);
  if (pending.kind === 'unavailable') return unavailable;
  return pending.value
    ? { kind: 'sent', transaction: pending.value, isPending: true }
    : { kind: 'resend', reason: 'transaction_gone' };
}
