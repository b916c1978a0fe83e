import { z } from 'zod';
import { siwxKey } from '../../../accounts/rules/siwx.ts';
import { asOf, cursorQuery, next } from '../../../accounts/http/schemas/list-cursor.ts';
import { auditedPayment } from '../../../audit/http/schemas/projections.ts';
import { address, hex32, network, time, url } from '../../../base/http/values.ts';

export const walletQuery = z.strictObject(cursorQuery);

const listed = auditedPayment
  .pick({ quote_digest: true, state: true, service_id: true, job_index: true, call_id: true })
  .extend(
    auditedPayment.pick({ network: true, asset: true, symbol: true, decimals: true, amount: true }).shape,
  )
  .extend({
    receipt_token: z.string().describe('Gives access to the result on the receipt.'),
    receipt_url: url,
    transaction: hex32,
    settled_at: time,
    refund_transaction: hex32.nullable(),
    refunded_amount: auditedPayment.shape.refunded_amount,
  });

export const walletReceipts = z
  .strictObject({ payer: address, ...asOf, receipts: z.array(listed), next })
  .describe(
    'The settled payments of a wallet in the order in which they were started. A page may have fewer than `limit`.',
  );
export type WalletReceipts = z.infer<typeof walletReceipts>;

/** `PAYMENT-REQUIRED` of a request for them, decoded. */
export const walletChallenge = z
  .strictObject({
    x402Version: z.literal(2),
    error: z.string(),
    resource: z.strictObject({ url, description: z.string(), mimeType: z.string() }),
    accepts: z.array(z.never()).length(0),
    extensions: z.strictObject({
      [siwxKey]: z.strictObject({
        info: z
          .strictObject({
            domain: z.string(),
            uri: url,
            version: z.literal('1'),
            nonce: z.string().describe('Valid for one request, until `expirationTime`.'),
            issuedAt: z.iso.datetime(),
            expirationTime: z.iso.datetime(),
            statement: z.string(),
            resources: z.array(url),
          })
          .describe('The values of the message (EIP-4361) that the wallet signs.'),
        supportedChains: z.array(z.strictObject({ chainId: network, type: z.literal('eip191') })),
        schema: z.record(z.string(), z.unknown()).describe('JSON Schema of the request header.'),
      }),
    }),
  })
  .describe('What a wallet signs to see its paid calls.');
