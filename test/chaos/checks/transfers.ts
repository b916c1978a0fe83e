import { createPublicClient, http, isAddressEqual, parseAbi } from 'viem';
import type { Address } from '../../../src/base/values/primitives.ts';
import { signedTransfer } from '../../support/permit2.ts';
import { isUpto } from '../../support/upto.ts';
import { paymentKey, type Records } from '../records.ts';
import { type PermitCall, proxies, readPermitCalls } from './permit-calls.ts';

/** Money that reached the operator, and the authorization that moved it. */
export interface Landed {
  /** As `paymentKey` makes it. */
  readonly key: string;
  readonly asset: string;
  readonly payer: string;
  readonly to: string;
  readonly nonce: string;
  readonly transaction: string;
  readonly logIndex: number;
  /** Atoms. */
  readonly amount: bigint;
}

/** Whether a transfer is all that its payer signed to pay, or a part where the payer has left that open, and not another use of the same nonce. */
export function isPayment({ key, amount }: Landed, { signed }: Pick<Records, 'signed'>): boolean {
  const one = signed.get(key);
  return one === undefined || isUpto(one.payment) || signedTransfer(one.payment).value === amount;
}

const [used, transferred, settled] = parseAbi([
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
  'event Settled()',
]);

/** Every transfer to the operator since a block. */
export async function readTransfers(
  rpcUrl: string,
  tokens: readonly Address[],
  payTo: Address,
  fromBlock: bigint,
): Promise<Landed[]> {
  const { landed, others } = await readLanded(rpcUrl, tokens, fromBlock);
  const other = others.find(({ to }) => to === payTo);
  if (other) throw new Error(`a transfer to the operator without an authorization, in ${other.transaction}`);
  return landed.filter(({ to }) => to === payTo);
}

/** Every transfer by an authorization or a permit since a block, and the others, from the chain's own logs and calldata. */
export async function readLanded(
  rpcUrl: string,
  tokens: readonly Address[],
  fromBlock: bigint,
): Promise<{ landed: Landed[]; others: { to: string; transaction: string }[] }> {
  const client = createPublicClient({ transport: http(rpcUrl) });
  // one question: a reorg between two would make their answers disagree
  const events = [used, transferred, settled] as const;
  const asked = { address: [...tokens, ...proxies], fromBlock, events, strict: true as const };
  const logs = await client.getLogs(asked);
  const uses = logs.filter((log) => log.eventName === 'AuthorizationUsed');
  const transfers = logs.filter((log) => log.eventName === 'Transfer');
  const permits = new Map<string, PermitCall>();
  const settles = Map.groupBy(
    logs.filter((log) => log.eventName === 'Settled'),
    ({ transactionHash }) => transactionHash,
  );
  for (const [transaction, own] of settles) {
    const calls = await readPermitCalls(client, transaction);
    // a reorg removed it meanwhile
    if (!calls) return readLanded(rpcUrl, tokens, fromBlock);
    if (calls.length !== own.length) throw new Error(`${transaction} settles other permits than it logs`);
    for (const [index, { logIndex }] of own.entries()) {
      const call = calls[index];
      // x402's contract logs Settled directly after the token's Transfer
      if (call) permits.set(`${transaction}/${logIndex - 1}`, call);
    }
  }
  const landed: Landed[] = [];
  const others: { to: string; transaction: string }[] = [];
  for (const { address, transactionHash: transaction, logIndex, args } of transfers) {
    // the devnet's token emits AuthorizationUsed directly before Transfer
    const use = uses.find((log) => log.transactionHash === transaction && log.logIndex === logIndex - 1);
    const to = args.to.toLowerCase();
    const permit = permits.get(`${transaction}/${logIndex}`);
    if (permit && !isMoveOf(permit, { asset: address, ...args }))
      throw new Error(`${transaction} moves something else than its permit`);
    const nonce = use?.args.nonce ?? permit?.nonce;
    if (nonce === undefined) others.push({ to, transaction });
    else
      landed.push({
        key: paymentKey(address, args.from, nonce),
        asset: address.toLowerCase(),
        payer: args.from.toLowerCase(),
        to,
        nonce,
        transaction,
        logIndex,
        amount: args.value,
      });
  }
  if (landed.length !== uses.length + permits.size)
    throw new Error('an authorization was used without a transfer');
  return { landed, others };
}

function isMoveOf(permit: PermitCall, { asset, from, to, value }: Omit<PermitCall, 'nonce'>): boolean {
  return (
    isAddressEqual(permit.asset, asset) &&
    isAddressEqual(permit.from, from) &&
    isAddressEqual(permit.to, to) &&
    permit.value === value
  );
}
