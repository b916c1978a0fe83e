import { createPublicClient, http, parseAbi } from 'viem';
import type { Address } from '../../../src/base/values/primitives.ts';
import { paymentKey, type Records } from '../records.ts';

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

/** Whether a transfer is all that its payer signed to pay, and not another use of the same nonce. */
export function isPayment({ key, amount }: Landed, { signed }: Pick<Records, 'signed'>): boolean {
  const value = signed.get(key)?.payment.payload.authorization.value;
  return value === undefined || BigInt(value) === amount;
}

const [used, transferred] = parseAbi([
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
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

/** Every transfer by an authorization since a block, and the others, from the chain's own logs. */
export async function readLanded(
  rpcUrl: string,
  tokens: readonly Address[],
  fromBlock: bigint,
): Promise<{ landed: Landed[]; others: { to: string; transaction: string }[] }> {
  const client = createPublicClient({ transport: http(rpcUrl) });
  // one question: a reorg between two would make their answers disagree
  const asked = { address: [...tokens], fromBlock, events: [used, transferred], strict: true as const };
  const logs = await client.getLogs(asked);
  const uses = logs.filter((log) => log.eventName === 'AuthorizationUsed');
  const transfers = logs.filter((log) => log.eventName === 'Transfer');
  const landed: Landed[] = [];
  const others: { to: string; transaction: string }[] = [];
  for (const { address, transactionHash: transaction, logIndex, args } of transfers) {
    // the devnet's token emits AuthorizationUsed directly before Transfer
    const use = uses.find((log) => log.transactionHash === transaction && log.logIndex === logIndex - 1);
    const to = args.to.toLowerCase();
    if (!use) others.push({ to, transaction });
    else
      landed.push({
        key: paymentKey(address, args.from, use.args.nonce),
        asset: address.toLowerCase(),
        payer: args.from.toLowerCase(),
        to,
        nonce: use.args.nonce,
        transaction,
        logIndex,
        amount: args.value,
      });
  }
  if (landed.length !== uses.length) throw new Error('an authorization was used without a transfer');
  return { landed, others };
}
