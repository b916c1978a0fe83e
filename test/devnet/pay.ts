import type { PaymentPayload, PaymentRequirements } from '@x402/core/types';
import type { ClientEvmSigner } from '@x402/evm';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { ExactEvmSchemeV1 } from '@x402/evm/exact/v1/client';
import { privateKeyToAccount } from 'viem/accounts';
import { z } from 'zod';
import { devnetAddress, devnetKeys } from '../../src/devnet/accounts.ts';
import { devnetTokens } from '../../src/devnet/token.ts';
import type { Address } from '../../src/base/values/primitives.ts';

const verifyAnswer = z.object({ isValid: z.boolean(), invalidReason: z.string().optional() });
const settleAnswer = z.object({
  success: z.boolean(),
  transaction: z.string(),
  errorReason: z.string().optional(),
});
export type VerifyAnswer = z.infer<typeof verifyAnswer>;
export type SettleAnswer = z.infer<typeof settleAnswer>;

/** What POST /verify and /settle take. */
export interface PaymentCall {
  readonly paymentPayload: PaymentPayload;
  readonly paymentRequirements: PaymentRequirements;
}

const payer = privateKeyToAccount(devnetKeys.payer);

/** A payment to the devnet's payee, signed by the SDK's own client; by the devnet's payer if no signer is named. */
export async function signedPayment(
  asset: Address,
  amountAtoms: bigint,
  signer: ClientEvmSigner = payer,
): Promise<PaymentCall> {
  const paymentRequirements = {
    ...terms(asset),
    network: 'eip155:84532',
    amount: String(amountAtoms),
  } as const;
  const { payload } = await new ExactEvmScheme(signer).createPaymentPayload(2, paymentRequirements);
  return { paymentPayload: { x402Version: 2, accepted: paymentRequirements, payload }, paymentRequirements };
}

/** Signs a payment of version 1 and has it settled. */
export async function settleVersion1(
  facilitatorUrl: string,
  asset: Address,
  amountAtoms: bigint,
): Promise<SettleAnswer> {
  const v1Terms = { ...terms(asset), network: 'base-sepolia', maxAmountRequired: String(amountAtoms) };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the SDK has one type for both versions
  const paymentRequirements = v1Terms as unknown as PaymentRequirements;
  const paymentPayload = await new ExactEvmSchemeV1(payer).createPaymentPayload(1, paymentRequirements);
  return post(settleAnswer, `${facilitatorUrl}/settle`, { paymentPayload, paymentRequirements });
}

export function verify(facilitatorUrl: string, call: PaymentCall): Promise<VerifyAnswer> {
  return post(verifyAnswer, `${facilitatorUrl}/verify`, call);
}

export function settle(facilitatorUrl: string, call: PaymentCall): Promise<SettleAnswer> {
  return post(settleAnswer, `${facilitatorUrl}/settle`, call);
}

function terms(asset: Address) {
  const { name, version } = devnetTokens[0];
  const payTo = devnetAddress('payTo');
  return { scheme: 'exact', asset, payTo, maxTimeoutSeconds: 300, extra: { name, version } };
}

async function post<T>(shape: z.ZodType<T>, url: string, call: object): Promise<T> {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(call) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return shape.parse(await response.json());
}
