import { toEventSelector } from 'viem/utils';
import type { ExpectedTransfer } from '../../../../domain/payments/payment.ts';
import { addressWord } from '../../../rpc/eth-call.ts';
import type { RpcUnavailable } from '../../../rpc/json-rpc.ts';
import { blockOf, type Log, type Receipt } from '../../receipt.ts';
import { addressIn, isTransfer, placeOf } from '../../transfers.ts';
import type { SettlementAnswer, UsedAuthorization } from '../scheme.ts';

export const authorizationUsed = toEventSelector('AuthorizationUsed(address,bytes32)');

export function readSettlement(
  receipt: Receipt | null,
  expected: ExpectedTransfer,
): Exclude<SettlementAnswer, RpcUnavailable> {
  const place = blockOf(receipt);
  if (!receipt || !place) return { kind: 'absent' };
  if (receipt.status === '0x0') return { kind: 'contradicted', why: 'reverted', ...place };
  const events = receipt.logs.filter(
    (log) => log.address === expected.asset && (isUse(log) || isTransfer(log)),
  );
  const use = events.findIndex((log) => isUse(log) && isUseOf(log, expected));
  if (use === -1) return { kind: 'contradicted', why: 'no_authorization_used', ...place };
  const transfer = transfersOf(events, use).find((log) => isExpected(log, expected));
  if (transfer === undefined) return { kind: 'contradicted', why: 'no_transfer', ...place };
  return { kind: 'paid', ...place, ...placeOf(transfer) };
}

/** Whether a transaction moved any of the token from payer to payee. */
export function hasTransferBetween({ logs }: Receipt, { asset, from, payTo }: ExpectedTransfer): boolean {
  return logs.some(
    (log) =>
      log.address === asset &&
      isTransfer(log) &&
      log.topics[1] === addressWord(from) &&
      log.topics[2] === addressWord(payTo),
  );
}

/** Every authorization that a receipt shows as used, with the payer's nearest Transfer of that token. */
export function usedAuthorizations({ logs }: Receipt): UsedAuthorization[] {
  const assets = new Set(logs.filter(isUse).map(({ address: asset }) => asset));
  return [...assets].flatMap((asset) => {
    const events = logs.filter((log) => log.address === asset && (isUse(log) || isTransfer(log)));
    return events.flatMap((use, at) => {
      const [, payer, nonce] = use.topics;
      if (!isUse(use) || payer === undefined || nonce === undefined) return [];
      const transfer = transfersOf(events, at).find((log) => isTransferBy(log, use));
      const by = addressIn(payer);
      return by && transfer ? [{ asset, payer: by, nonce, logIndex: Number(transfer.logIndex) }] : [];
    });
  });
}

// Which Transfer belongs to an authorization.

/**
 * The transfers that belong to the use at `use`, nearest first: those up to the next use, or, where the token
 * emits Transfer first, those back to the previous use. The order is judged once over all uses of the
 * transaction, so that no transfer can belong to two of them. Where both readings hold, use-first
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

/** True when every use has its payer's Transfer right before it, and not every use has one right after it. */
function isTransferFirst(events: readonly Log[]): boolean {
  const uses = [...events.keys()].filter((at) => isUse(events[at]));
  const each = (step: -1 | 1) => uses.every((at) => isTransferBy(events[at + step], events[at]));
  return each(-1) && !each(1);
}

function isTransferBy(log: Log | undefined, use: Log | undefined): boolean {
  return isTransfer(log) && log?.topics[1] === use?.topics[1];
}

function isUse(log: Log | undefined): boolean {
  return log?.topics[0] === authorizationUsed && log.topics.length === 3;
}

function isUseOf(log: Log, { from, nonce }: ExpectedTransfer): boolean {
  return log.topics[1] === addressWord(from) && log.topics[2] === nonce;
}

function isExpected(log: Log, { from, payTo, value }: ExpectedTransfer): boolean {
  const parties = log.topics[1] === addressWord(from) && log.topics[2] === addressWord(payTo);
  return isTransfer(log) && parties && log.data === `0x${value.toString(16).padStart(64, '0')}`;
}
