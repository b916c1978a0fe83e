import { payer } from './payer.ts';
import type { Answer, GatewayClient } from './gateway.ts';

/** What the payer of a quote signs to ask for its refund, as `docs/jobs.md` says it. */
export const refundRequestTypes = {
  RefundRequest: [
    { name: 'quoteDigest', type: 'bytes32' },
    { name: 'reason', type: 'string' },
  ],
} as const;

/** Asks for the refund of a quote; by default its payer does, on its chain, and signs what it sends. */
export async function askForRefund(
  gateway: GatewayClient,
  quoteDigest: string,
  reason: string,
  { account = payer, chainId = 84_532, signed = reason } = {},
): Promise<Answer> {
  const signature = await account.signTypedData({
    domain: { name: 'Tollbook', version: '1', chainId },
    types: refundRequestTypes,
    primaryType: 'RefundRequest',
    message: { quoteDigest: quoteDigest as `0x${string}`, reason: signed },
  });
  return gateway.post(`/x402/receipts/${quoteDigest}/refund-request`, {
    body: JSON.stringify({ reason, signature }),
    headers: { 'content-type': 'application/json' },
  });
}
