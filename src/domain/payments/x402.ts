import type { Hex } from '../values/primitives.ts';
import type { SettlementOption } from './quote.ts';
import type { SignedPayment } from './payment.ts';

/** The wire forms of x402 version 2: what clients read, what the facilitator is asked. */
export type RequirementV2 = {
  readonly scheme: 'exact';
  readonly network: string;
  readonly amount: string;
  readonly asset: string;
  readonly payTo: string;
  readonly maxTimeoutSeconds: number;
  readonly extra: Readonly<Record<string, string>>;
};

/** What an option asks of a payer. The digest in `extra` is echoed by clients: so a payment names its quote. */
export function requirementV2(
  option: Omit<SettlementOption, 'symbol' | 'decimals'>,
  digest: Hex,
  maxTimeoutSecs: number,
): RequirementV2 {
  return {
    scheme: 'exact',
    network: option.network,
    amount: String(option.amount),
    asset: option.asset,
    payTo: option.payTo,
    maxTimeoutSeconds: maxTimeoutSecs,
    extra: {
      name: option.eip712Name,
      version: option.eip712Version,
      assetTransferMethod: 'eip3009',
      quoteDigest: digest,
    },
  };
}

/** The question to `/verify` and `/settle`, rebuilt from checked fields: nothing of the client's text goes through. */
export function facilitatorRequest(payment: SignedPayment, digest: Hex) {
  const requirement = requirementV2(payment, digest, payment.maxTimeoutSecs);
  return {
    x402Version: 2 as const,
    paymentPayload: {
      x402Version: 2,
      accepted: requirement,
      payload: {
        signature: payment.signature,
        authorization: {
          from: payment.payer,
          to: payment.payTo,
          value: String(payment.amount),
          validAfter: String(payment.validAfter),
          validBefore: String(payment.validBefore),
          nonce: payment.nonce,
        },
      },
    },
    paymentRequirements: requirement,
  };
}

export function encodeHeader(value: unknown): string {
  return Buffer.from(JSON.stringify(value), 'utf8').toString('base64');
}
