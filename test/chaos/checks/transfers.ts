import { createPublicClient, http, parseAbi } from 'viem';
import type { Address } from '../../../src/base/values/primitives.ts';
import { paymentKey, type Records } from '../records.ts';

/** Money that reached the operator, and the authorization that moved it. */
export interface Landed {
  /** As `paymentKey` makes it. */
  readonly key: string;
  readonly asset: string;
  readonly payer: string;
  readonly nonce: string;
  readonly transaction: string;
  readonly logIndex: number;
  /** Atoms. */
  readonly amount: bigint;
}

/** Whether a transfer is all that its payer signed to pay, and not another use of the same nonce. */
export function isPayment({ key, amount }: Landed, { signed }: Pick<Records, 'signed'>): boolean {
  const value = signed.get(key)?.payment.payload.authorization.value;
  return value === undefined || BigInt(value) === amount;
}

const [used, transferred] = parseAbi([
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
]);

/** Every transfer to the operator since a block, from the chain's own logs. */
export async function readTransfers(
  rpcUrl: string,
  tokens: readonly Address[],
  payTo: Address,
  fromBlock: bigint,
): Promise<Landed[]> {
  const client = createPublicClient({ transport: http(rpcUrl) });
  // both questions about the same blocks
  const toBlock = await client.getBlockNumber({ cacheTime: 0 });
  const range = { address: [...tokens], fromBlock, toBlock, strict: true as const };
  const uses = await client.getLogs({ ...range, event: used });
  const transfers = await client.getLogs({ ...range, event: transferred, args: { to: payTo } });
  return transfers.map(({ address, transactionHash, logIndex, args }) => {
    // the devnet's token emits AuthorizationUsed directly before Transfer
    const use = uses.find((log) => log.transactionHash === transactionHash && log.logIndex === logIndex - 1);
    if (!use) throw new Error(`a transfer to the operator without an authorization, in ${transactionHash}`);
    const { nonce } = use.args;
    return {
      key: paymentKey(address, args.from, nonce),
      asset: address.toLowerCase(),
      payer: args.from.toLowerCase(),
      nonce,
      transaction: transactionHash,
      logIndex,
      amount: args.value,
    };
  });
}
