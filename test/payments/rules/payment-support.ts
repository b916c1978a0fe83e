import { type DecodedPayment, decodePayment } from '../../../src/payments/rules/decode-payment.ts';
import type { SignedPayment } from '../../../src/payments/rules/payment.ts';
import type { PaymentWindow } from '../../../src/payments/rules/payment-window.ts';
import { asset, bytesOf, nonce, nowSecs, option, payee, payer } from './support.ts';

/** A payload as the official client sends it, with the keys that it adds and we do not read. */
export const payload = {
  x402Version: 2,
  resource: { url: 'http://127.0.0.1:8402/x402/jobs/1/0', description: '', mimeType: '' },
  accepted: {
    scheme: 'exact',
    network: 'eip155:84532',
    amount: '3264000',
    asset,
    payTo: payee,
    maxTimeoutSeconds: 300,
    extra: { name: 'USD Coin', version: '2', quoteDigest: bytesOf('e5', 32) },
  },
  payload: {
    signature: bytesOf('1b', 65),
    authorization: {
      from: payer,
      to: payee,
      value: '3264000',
      validAfter: String(nowSecs - 600),
      validBefore: String(nowSecs + 300),
      nonce,
    },
  },
};

export const window: PaymentWindow = { nowSecs, maxTimeoutSecs: 300, settleMarginSecs: 16 };

export const base64 = (text: string | Uint8Array): string => Buffer.from(text).toString('base64');
export const headerOf = (value: unknown): string => base64(JSON.stringify(value));

export const withAccepted = (change: object) => ({
  ...payload,
  accepted: { ...payload.accepted, ...change },
});
export const withPayload = (change: object) => ({ ...payload, payload: { ...payload.payload, ...change } });
export const withAuthorization = (change: object) =>
  withPayload({ authorization: { ...payload.payload.authorization, ...change } });

export function decoded(value: unknown): DecodedPayment {
  const payment = decodePayment(headerOf(value), 2);
  if (typeof payment === 'string') throw new Error(payment);
  return payment;
}

/** The payment above, accepted. */
export const signedPayment: SignedPayment = {
  x402Version: 2,
  network: option.network,
  transferMethod: 'eip3009',
  asset,
  payer,
  nonce,
  symbol: option.symbol,
  decimals: option.decimals,
  payTo: payee,
  amount: option.amount,
  validAfter: BigInt(nowSecs - 600),
  validBefore: BigInt(nowSecs + 300),
  signature: bytesOf('1b', 65),
  maxTimeoutSecs: 300,
  eip712Name: option.eip712Name,
  eip712Version: option.eip712Version,
};
