import { bytesToHex, type Hex } from 'viem';
import { sign } from 'viem/accounts';
import { devnetAddress } from '../../src/devnet/accounts.ts';
import { commitmentOf } from '../../src/devnet/prepaid-contract.ts';
import {
  type SpendAuth,
  spendAuthDigest,
  type SpendDomain,
} from '../../src/accounts/rules/spend/spend-auth.ts';

export const operator = devnetAddress('operator');

/** A spend authorization as a payer's client makes it: for service 1, an hour long, of the key's own account. */
export async function signSpend(
  domain: SpendDomain,
  spendingKey: Hex,
  change: Partial<Omit<SpendAuth, 'signature'>> = {},
): Promise<SpendAuth> {
  const unsigned: SpendAuth = {
    commitment: commitmentOf(spendingKey),
    serviceId: 1n,
    jobIndex: 0,
    amount: 1_000_000n,
    operator,
    nonce: 0n,
    expiry: BigInt(Math.floor(Date.now() / 1_000) + 3_600),
    signature: '0x',
    ...change,
  };
  const hash = bytesToHex(spendAuthDigest(domain, unsigned));
  return { ...unsigned, signature: await sign({ hash, privateKey: spendingKey, to: 'hex' }) };
}

/** As the header carries it. */
export function spendHeader({ jobIndex, ...auth }: SpendAuth): string {
  const texts = Object.entries(auth).map(([key, value]) => [key, String(value)] as const);
  return JSON.stringify({ ...Object.fromEntries(texts), jobIndex });
}
