import type { Address } from '../../src/base/values/primitives.ts';
import type { RecordedEvent } from '../../src/ledger/rules/event.ts';
import { recordedPayments } from '../chaos/checks/payments.ts';
import { readLanded } from '../chaos/checks/transfers.ts';

/** An authorization that was signed correctly, and what the requests that carried it were answered. */
export interface SignedAuthorization {
  readonly amount: bigint;
  /** The requests it was accepted for. */
  readonly accepted: Set<string>;
  readonly statuses: number[];
}

/** Authorizations as `paymentKey` names them. */
export type SignedAuthorizations = ReadonlyMap<string, SignedAuthorization>;

/** The service whose jobs sell credit. */
export const creditService = 9;

/**
 * Compares what clients were answered, the ledger and the chain. Sound: each 202 has its transfer of the offered amount; what no
 * request of was accepted was not charged; ledger and chain name the same transfers; no authorization pays for two requests.
 */
export async function paymentFaults(
  signed: SignedAuthorizations,
  events: readonly RecordedEvent[],
  chain: {
    readonly rpcUrl: string;
    readonly tokens: readonly Address[];
    readonly fromBlock: bigint;
    readonly payTo: string;
  },
): Promise<string[]> {
  const { landed: transfers } = await readLanded(chain.rpcUrl, chain.tokens, chain.fromBlock);
  const landed = new Map(transfers.map((transfer) => [transfer.key, transfer]));
  const settled = [...recordedPayments(events).values()].filter((payment) => payment.settled.length > 0);
  const transactions = new Map(settled.map((one) => [one.key, one.settled.at(-1)?.data.transaction]));
  const faults: string[] = [];
  for (const [key, { amount, accepted, statuses }] of signed) {
    const transfer = landed.get(key);
    const answered = `${key}, answered ${statuses.join(', ')}`;
    if (accepted.size > 1) faults.push(`${answered}, pays for ${accepted.size} requests`);
    if (accepted.size > 0 && !transfer) faults.push(`${answered}, has no transfer`);
    if (accepted.size === 0 && transfer) faults.push(`${answered}, was charged`);
    if (transfer && transfer.amount !== amount)
      faults.push(`${answered}, paid ${transfer.amount}, not ${amount}`);
    if (transfer && transfer.to !== chain.payTo) faults.push(`${answered}, paid ${transfer.to}`);
  }
  for (const [key, { transaction }] of landed)
    if (transactions.get(key) !== transaction) faults.push(`the ledger has no payment of ${key}`);
  for (const { key, calls } of settled) {
    if (!landed.has(key)) faults.push(`the chain has no transfer of ${key}`);
    if (calls.length === 0) faults.push(`no call of ${key} was enqueued`);
  }
  return [...faults, ...topUpFaults(events)];
}

/** Each settled payment of a job that sells credit is credited once. */
function topUpFaults(events: readonly RecordedEvent[]): string[] {
  const selling = new Set<string>();
  let paid = 0;
  let credited = 0;
  for (const { type, data, stream } of events) {
    if (type === 'quote_issued' && data.service_id === creditService) selling.add(stream);
    if (type === 'payment_settled' && selling.has(stream)) paid += 1;
    if (type === 'credit_topped_up') credited += 1;
  }
  return paid === credited ? [] : [`${paid} payments for credit were settled, and ${credited} were credited`];
}
