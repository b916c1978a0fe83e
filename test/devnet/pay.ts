import type { PaymentPayload, PaymentRequirements } from '@x402/core/types';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { privateKeyToAccount } from 'viem/accounts';
import { z } from 'zod';
import { devnetAddress, devnetKeys } from '../../src/devnet/accounts.ts';
import { devnetTokens } from '../../src/devnet/token.ts';
import type { Address } from '../../src/base/values/primitives.ts';

const settleAnswer = z.object({
  success: z.boolean(),
  transaction: z.string(),
  errorReason: z.string().optional(),
});
type SettleAnswer = z.infer<typeof settleAnswer>;

/** What POST /settle takes. */
interface PaymentCall {
  readonly paymentPayload: PaymentPayload;
  readonly paymentRequirements: PaymentRequirements;
}

const payer = privateKeyToAccount(devnetKeys.payer);

/** A payment to the devnet's payee, signed by the SDK's own client. */
export async function signedPayment(asset: Address, amountAtoms: bigint): Promise<PaymentCall> {
  const paymentRequirements = {
    scheme: 'exact',
    asset,
    payTo: devnetAddress('payTo'),
    maxTimeoutSeconds: 300,
    extra: { name: devnetTokens[0].name, version: devnetTokens[0].version },
    network: 'eip155:84532',
    amount: String(amountAtoms),
  } as const;
  const { payload } = await new ExactEvmScheme(payer).createPaymentPayload(2, paymentRequirements);
  return { paymentPayload: { x402Version: 2, accepted: paymentRequirements, payload }, paymentRequirements };
}

export async function settle(facilitatorUrl: string, call: PaymentCall): Promise<SettleAnswer> {
  const response = await fetch(`${facilitatorUrl}/settle`, { method: 'POST', body: JSON.stringify(call) });
  if (!response.ok) throw new Error(`/settle answered ${response.status}: ${await response.text()}`);
  return settleAnswer.parse(await response.json());
}
