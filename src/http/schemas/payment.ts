import { z } from 'zod';
import { identifierForm, paymentIdentifierKey } from '../../domain/payments/payment-identifier.ts';
import { address, atoms, hex32, network, quoteDigest, symbol, url } from './values.ts';

/** The wire forms of x402: what stands in its headers, decoded, and in the body of a 402. */
const exact = z.literal('exact');
const tokenDomain = {
  name: z.string().meta({ description: "The name in the token's own EIP-712 domain." }),
  version: z.string().meta({ description: "The version in the token's own EIP-712 domain." }),
};
const maxTimeoutSeconds = z
  .int()
  .min(1)
  .meta({ description: 'The longest an authorization may hold, from now.' });

export const requirementV1 = z.strictObject({
  scheme: exact,
  network: z
    .string()
    .meta({ description: "The network's name in x402 version 1.", examples: ['base-sepolia'] }),
  maxAmountRequired: atoms,
  asset: address,
  payTo: address,
  resource: url,
  description: z.string(),
  mimeType: z.string(),
  maxTimeoutSeconds,
  extra: z.strictObject(tokenDomain),
});

export const requirementV2 = z.strictObject({
  scheme: exact,
  network,
  amount: atoms,
  asset: address,
  payTo: address,
  maxTimeoutSeconds,
  extra: z.strictObject({
    ...tokenDomain,
    assetTransferMethod: z.literal('eip3009'),
    quoteDigest: quoteDigest.meta({
      description: 'The quote. A payment that repeats it keeps its price until it expires.',
    }),
  }),
});

/** `PAYMENT-REQUIRED`, decoded. */
export const paymentRequiredV2 = z
  .strictObject({
    x402Version: z.literal(2),
    error: z.string(),
    resource: z.strictObject({ url, description: z.string(), mimeType: z.string() }),
    accepts: z.array(requirementV2).min(1),
    extensions: z.strictObject({
      [paymentIdentifierKey]: z.strictObject({
        info: z.strictObject({
          required: z.boolean().meta({ description: 'Whether a payment must carry an id.' }),
        }),
        schema: z.record(z.string(), z.unknown()).meta({ description: 'JSON Schema of `info`.' }),
      }),
    }),
  })
  .meta({ description: 'The offer of x402 version 2.' });

const decimalText = z.string().meta({ description: 'A decimal string.' });
export const exactPayload = z
  .strictObject({
    signature: z
      .string()
      .regex(/^0x(?:[0-9a-fA-F]{2}){65,4096}$/)
      .meta({ description: "The payer's EIP-712 signature, or that of its contract (ERC-1271)." }),
    authorization: z.strictObject({
      from: z.string().meta({ description: 'The payer.' }),
      to: z.string().meta({ description: 'The payee that was offered.' }),
      value: atoms,
      validAfter: decimalText,
      validBefore: decimalText,
      nonce: hex32,
    }),
  })
  .meta({ description: "EIP-3009's TransferWithAuthorization, signed by the payer." });

/** `PAYMENT-SIGNATURE`, decoded. Other fields of the protocol may stand beside these. */
export const paymentV2 = z
  .looseObject({
    x402Version: z.literal(2),
    accepted: requirementV2.meta({ description: 'One of the offered `accepts`, repeated as it is.' }),
    payload: exactPayload,
    extensions: z
      .looseObject({
        [paymentIdentifierKey]: z.looseObject({
          info: z.looseObject({
            id: z.string().regex(identifierForm).optional().meta({
              description:
                "The payer's own name for this payment: no other payment of the payer may carry it.",
            }),
          }),
        }),
      })
      .partial()
      .optional(),
  })
  .meta({ description: 'A payment of x402 version 2.' });

/** `X-PAYMENT`, decoded. */
export const paymentV1 = z
  .looseObject({
    x402Version: z.literal(1),
    scheme: exact,
    network: requirementV1.shape.network,
    payload: exactPayload,
  })
  .meta({ description: 'A payment of x402 version 1.' });

/** `PAYMENT-RESPONSE` and `X-PAYMENT-RESPONSE`, decoded. */
export const settlement = z
  .strictObject({
    success: z.literal(true),
    transaction: hex32,
    network: z.string().meta({ description: 'CAIP-2 in version 2, the name of the network in version 1.' }),
    payer: address,
  })
  .meta({ description: 'How the payment was settled.' });

export const paymentSummary = z
  .strictObject({
    network,
    asset: address,
    symbol,
    amount: atoms,
    payer: address,
    transaction: hex32.meta({ description: 'The transaction that moved the money.' }),
  })
  .meta({ description: 'The settled payment.' });
