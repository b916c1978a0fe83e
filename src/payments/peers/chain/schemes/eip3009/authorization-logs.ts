import { toEventSelector } from 'viem/utils';
import type { ExpectedTransfer } from '../../../../rules/payment.ts';
import { addressWord } from '../../../../../base/peers/rpc/eth-call.ts';
import type { Log } from '../../logs.ts';
import { addressIn, isTransfer, type LogPlace, placeOf } from '../../transfers.ts';
import type { UsedAuthorization } from '../scheme.ts';

export const authorizationUsed = toEventSelector('AuthorizationUsed(address,bytes32)');

/** Whether a use of an authorization moved what is expected. */
export type Use =
  | ({ readonly kind: 'paid' } & LogPlace)
  | { readonly kind: 'no_authorization_used' }
  | { readonly kind: 'no_transfer' };

/** @param logs the payer's uses and transfers of the token in one transaction, in their order */
export function readUse(logs: readonly Log[], expected: ExpectedTransfer): Use {
  const events = logs.filter((log) => isUse(log) || isTransfer(log));
  const use = events.findIndex((log) => isUse(log) && log.topics[2] === expected.nonce);
  if (use === -1) return { kind: 'no_authorization_used' };
  const transfer = transfersOf(events, use).find((log) => isExpected(log, expected));
  return transfer ? { kind: 'paid', ...placeOf(transfer) } : { kind: 'no_transfer' };
}

/** Every authorization that the logs of a transaction show as used, with the payer's nearest Transfer of that token. */
export function usedAuthorizations(logs: readonly Log[]): UsedAuthorization[] {
  const events = logs.filter((log) => isUse(log) || isTransfer(log));
  const byPayer = Map.groupBy(events, ({ address, topics: [, payer] }) => `${address}/${payer}`);
  return [...byPayer.values()].flatMap((own) =>
    own.flatMap((use, at) => {
      const [, payer, nonce] = use.topics;
      if (!isUse(use) || payer === undefined || nonce === undefined) return [];
      const [transfer] = transfersOf(own, at);
      const by = addressIn(payer);
      const { address: asset } = use;
      return by && transfer ? [{ asset, payer: by, nonce, logIndex: transfer.logIndex }] : [];
    }),
  );
}

// Which Transfer belongs to an authorization. Only its payer's logs of its token are looked at: a Transfer of another account is of
// no authorization of this one.

/**
 * The transfers that belong to the use at `use`, nearest first: those up to the next use, or, if the token
 * emits Transfer first, those back to the previous use. The order is judged once over all uses of the payer in the
 * transaction, so that no transfer can belong to two of them. If both readings hold, use-first
 * is taken, as USDC and EURC do it: an honest transfer read wrongly costs a wait, not a second call.
 */
function transfersOf(events: readonly Log[], use: number): readonly Log[] {
  if (isTransferFirst(events)) {
    const previous = events.findLastIndex((log, at) => at < use && isUse(log));
    return events.slice(previous + 1, use).toReversed();
  }
  const next = events.findIndex((log, at) => at > use && isUse(log));
  return events.slice(use + 1, next === -1 ? events.length : next);
}

/** True when every use has a Transfer right before it, and not every use has one right after it. */
function isTransferFirst(events: readonly Log[]): boolean {
  const uses = [...events.keys()].filter((at) => isUse(events[at]));
  const each = (step: -1 | 1) => uses.every((at) => isTransfer(events[at + step]));
  return each(-1) && !each(1);
}

function isUse(log: Log | undefined): boolean {
  return log?.topics[0] === authorizationUsed && log.topics.length === 3;
}

function isExpected(log: Log, { payTo, value }: ExpectedTransfer): boolean {
  const isToPayee = log.topics[2] === addressWord(payTo);
  return isTransfer(log) && isToPayee && log.data === `0x${value.toString(16).padStart(64, '0')}`;
}
