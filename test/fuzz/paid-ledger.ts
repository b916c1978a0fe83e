import type { RecordedEvent } from '../../src/ledger/rules/event.ts';

/** An authorization that was signed correctly, and what the requests that carried it were answered. */
export interface SignedAuthorization {
  readonly amount: bigint;
  /** The requests it was accepted for. */
  readonly accepted: Set<string>;
  readonly statuses: number[];
}

/** Authorizations by asset, payer and nonce. */
export type SignedAuthorizations = ReadonlyMap<string, SignedAuthorization>;

export const authorizationKey = (asset: string, payer: string, nonce: string): string =>
  `${asset} ${payer} ${nonce}`.toLowerCase();

interface Log {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
  readonly transactionHash: string;
}

interface Landed {
  readonly amount: bigint;
  readonly to: string;
  readonly transaction: string;
}

/** The service whose jobs sell credit. */
export const creditService = 9;
const transferTopic = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
const usedTopic = '0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5';

async function rpc(rpcUrl: string, method: string, params: readonly unknown[]): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const headers = { 'content-type': 'application/json' };
  const answer = (await (await fetch(rpcUrl, { method: 'POST', headers, body })).json()) as {
    readonly result?: unknown;
  };
  if (answer.result === undefined) throw new Error(`${method} failed`);
  return answer.result;
}

export async function blockNumber(rpcUrl: string): Promise<bigint> {
  return BigInt((await rpc(rpcUrl, 'eth_blockNumber', [])) as string);
}

/** The authorizations that the chain used since a block, with the transfer of each. */
async function landedSince(rpcUrl: string, fromBlock: bigint): Promise<Map<string, Landed>> {
  const range = { fromBlock: `0x${fromBlock.toString(16)}`, toBlock: 'latest' };
  const logs = (await rpc(rpcUrl, 'eth_getLogs', [
    { ...range, topics: [[transferTopic, usedTopic]] },
  ])) as readonly Log[];
  const transfers = new Map(
    logs.filter(({ topics }) => topics[0] === transferTopic).map((log) => [log.transactionHash, log]),
  );
  const landed = new Map<string, Landed>();
  for (const { address, topics, transactionHash } of logs.filter(
    ({ topics: [first] }) => first === usedTopic,
  )) {
    const transfer = transfers.get(transactionHash);
    if (transfer?.address !== address)
      throw new Error(`${transactionHash} used an authorization without a transfer`);
    landed.set(authorizationKey(address, `0x${topics[1]?.slice(26)}`, topics[2] ?? ''), {
      amount: BigInt(transfer.data),
      to: `0x${transfer.topics[2]?.slice(26)}`,
      transaction: transactionHash,
    });
  }
  return landed;
}

/** The settled payments of the ledger, by authorization: their transaction, and whether their call was enqueued. */
function settledIn(
  events: readonly RecordedEvent[],
): Map<string, { transaction: string; isEnqueued: boolean }> {
  const enqueued = new Set(events.filter(({ type }) => type === 'enqueued').map(({ stream }) => stream));
  const settled = new Map<string, { transaction: string; isEnqueued: boolean }>();
  for (const { type, data, stream } of events)
    if (type === 'payment_settled')
      settled.set(authorizationKey(data.asset, data.payer, data.payment_nonce), {
        transaction: data.transaction,
        isEnqueued: enqueued.has(stream),
      });
  return settled;
}

/**
 * Compares what clients were answered, the ledger and the chain. Sound: each 202 has its transfer of the offered amount; what no
 * request of was accepted was not charged; ledger and chain name the same transfers; no authorization pays for two requests.
 */
export async function paymentFaults(
  signed: SignedAuthorizations,
  events: readonly RecordedEvent[],
  chain: { readonly rpcUrl: string; readonly fromBlock: bigint; readonly payTo: string },
): Promise<string[]> {
  const landed = await landedSince(chain.rpcUrl, chain.fromBlock);
  const settled = settledIn(events);
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
    if (settled.get(key)?.transaction !== transaction) faults.push(`the ledger has no payment of ${key}`);
  for (const [key, { isEnqueued }] of settled) {
    if (!landed.has(key)) faults.push(`the chain has no transfer of ${key}`);
    if (!isEnqueued) faults.push(`no call of ${key} was enqueued`);
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
