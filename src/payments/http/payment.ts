import { z } from 'zod';
import { discoveryKey } from '../../base/values/discovery.ts';
import { offerReceiptKey } from '../rules/offer-receipt.ts';
import { identifierForm, paymentIdentifierKey } from '../../base/values/payment-identifier.ts';
import { offerExtraWire } from '../rules/offer-extra.ts';
import { paymentFlow } from '../rules/x402.ts';
import type { PaymentScheme } from '../rules/schemes/scheme.ts';
import { schemes } from '../rules/schemes/schemes.ts';
import {
  address,
  atoms,
  decimals,
  hex32,
  network,
  quoteDigest,
  symbol,
  url,
} from '../../base/http/values.ts';

/** The wire forms of x402: its headers, decoded, and the body of a 402. */
const offered = Object.values(schemes);
export const x402Scheme = z.enum([...new Set(offered.map((scheme) => scheme.x402Scheme))]);

/** The schema of the one scheme, or a union over all of them. */
function ofAnyScheme(pick: (wire: PaymentScheme['wire']) => z.ZodObject | undefined): z.ZodType {
  const each = offered.flatMap(({ wire }) => pick(wire) ?? []);
  const [only] = each;
  return each.length === 1 && only ? only : z.union(each);
}

const maxTimeoutSeconds = z.int().min(1).describe('The longest validity of an authorization, from now.');

export const requirementV1 = z.strictObject({
  scheme: x402Scheme,
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
  outputSchema: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('What the job takes and gives, in the form of discovery for version 1.'),
  extra: ofAnyScheme(({ extraV1 }) => extraV1),
});

const echoedDigest = quoteDigest.describe(
  'The quote. Its price is valid until it expires, for a payment that repeats it.',
);

const priceV2 = z.strictObject({
  scheme: x402Scheme,
  network,
  amount: atoms,
  asset: address,
  payTo: address,
  maxTimeoutSeconds,
});

const ofAnyOffer = {
  paymentFlow: z
    .literal(paymentFlow)
    .describe(
      'The payment is settled before the job runs. Clients of x402 prefer other flows if they have the choice.',
    ),
};

/** What a payment could accept if it named a quote. */
export const unquotedV2 = priceV2.extend({ extra: ofAnyScheme(({ extraV2 }) => extraV2.extend(ofAnyOffer)) });

export const requirementV2 = priceV2.extend({
  extra: ofAnyScheme(({ extraV2 }) =>
    extraV2.extend({ ...ofAnyOffer, quoteDigest: echoedDigest, ...offerExtraWire }),
  ),
});

const signature = z
  .string()
  .describe(
    'For `eip712` 65 bytes in hex, over typed data of the domain `{name: "x402 offer" or "x402 receipt", version: "1", chainId: 1}`; for `jws` a compact JSON Web Signature, which holds the payload.',
  );

const offerPayload = z.strictObject({
  version: z.literal(1),
  resourceUrl: url,
  scheme: x402Scheme,
  network,
  asset: address,
  payTo: address,
  amount: atoms,
  validUntil: z.int().describe('Unix seconds.'),
});

const receiptPayload = z.strictObject({
  version: z.literal(1),
  network,
  resourceUrl: url,
  payer: address,
  issuedAt: z.int().describe('When the payment was settled, in Unix seconds.'),
  transaction: z.union([z.literal(''), hex32]),
});

const signedOffer = z.union([
  z.strictObject({
    format: z.literal('eip712'),
    acceptIndex: z.int().min(0),
    payload: offerPayload,
    signature,
  }),
  z.strictObject({ format: z.literal('jws'), acceptIndex: z.int().min(0), signature }),
]);

const signedReceipt = z.union([
  z.strictObject({ format: z.literal('eip712'), payload: receiptPayload, signature }),
  z.strictObject({ format: z.literal('jws'), signature }),
]);

const sponsoring = (what: string) =>
  z
    .strictObject({
      info: z.strictObject({ description: z.string(), version: z.string() }),
      schema: z.record(z.string(), z.unknown()).describe("JSON Schema of a payment's `info`."),
    })
    .optional()
    .describe(
      `The facilitator submits the payer's approval of Permit2, which the payment carries as ${what}.`,
    );

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
          required: z.boolean().describe('Whether a payment must carry an id.'),
        }),
        schema: z.record(z.string(), z.unknown()).describe('JSON Schema of `info`.'),
      }),
      [discoveryKey]: z
        .strictObject({
          info: z
            .record(z.string(), z.unknown())
            .describe('How the job is called, with an example of its body and of its result.'),
          schema: z.record(z.string(), z.unknown()).describe('JSON Schema of `info`.'),
        })
        .optional()
        .describe('How facilitators list the job; absent if they may not.'),
      eip2612GasSponsoring: sponsoring('an EIP-2612 permit'),
      erc20ApprovalGasSponsoring: sponsoring('a signed transaction'),
      [offerReceiptKey]: z
        .strictObject({
          info: z.strictObject({ offers: z.array(signedOffer).min(1) }),
          schema: z.record(z.string(), z.unknown()).describe('JSON Schema of `info`.'),
        })
        .optional()
        .describe('The same offers, signed for others than the payer; if the operator has switched it on.'),
    }),
  })
  .describe('The offer of x402 version 2.');

export const signedPayload = ofAnyScheme(({ payload }) => payload);

/** `PAYMENT-SIGNATURE`, decoded. It may have other fields of the protocol. */
export const paymentV2 = z
  .looseObject({
    x402Version: z.literal(2),
    accepted: requirementV2.describe('One of the offered `accepts`, unchanged.'),
    payload: signedPayload,
    extensions: z
      .looseObject({
        [paymentIdentifierKey]: z.looseObject({
          info: z.looseObject({
            id: z
              .string()
              .regex(identifierForm)
              .optional()
              .describe("The payer's own name for this payment: no other payment of the payer may carry it."),
          }),
        }),
      })
      .partial()
      .optional(),
  })
  .describe('A payment of x402 version 2.');

/** `X-PAYMENT`, decoded. */
export const paymentV1 = z
  .looseObject({
    x402Version: z.literal(1),
    scheme: x402Scheme,
    network: requirementV1.shape.network,
    payload: signedPayload,
  })
  .describe('A payment of x402 version 1.');

/** `PAYMENT-RESPONSE` and `X-PAYMENT-RESPONSE`, decoded. */
export const settlement = z
  .strictObject({
    success: z.literal(true),
    transaction: hex32,
    network: z.string().describe('CAIP-2 in version 2, the name of the network in version 1.'),
    payer: address,
    amount: atoms
      .optional()
      .describe('What was moved, which is less than was signed only by `upto`. In version 2.'),
    extensions: z
      .strictObject({
        [offerReceiptKey]: z.strictObject({
          info: z.strictObject({ receipt: signedReceipt }),
          schema: z.record(z.string(), z.unknown()).describe('JSON Schema of `info`.'),
        }),
      })
      .optional()
      .describe('A signed receipt; if the operator has switched it on.'),
  })
  .describe('How the payment was settled.');

export const paymentSummary = z
  .strictObject({
    network,
    asset: address,
    symbol,
    decimals,
    amount: atoms,
    payer: address,
    transaction: hex32.describe('The transaction that transferred the payment.'),
  })
  .describe('The settled payment.');
