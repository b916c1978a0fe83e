import type { PaymentScheme, InvalidPayment, OfferTerms, ParsedPayload, SignedTerms } from '../scheme.ts';
import { authorizationDigest } from './authorization-digest.ts';
import { z } from 'zod';
import { type Hex, isHex32, parseAddress } from '../../../../base/values/primitives.ts';
import { readSignatureForm } from '../../../../base/values/wrapped-signature.ts';
import { type PaymentWindow, windowError } from '../../payment-window.ts';
import {
  decimal,
  decimalText,
  hasOtherKeys,
  invalid,
  isUint256,
  payloadText as text,
  signatureHex,
} from '../payload-text.ts';

const payloadSchema = z.looseObject({
  signature: text,
  authorization: z.looseObject({
    from: text,
    to: text,
    value: text,
    validAfter: text,
    validBefore: text,
    nonce: text,
  }),
});

interface AuthorizationPayload extends ParsedPayload {
  /** The client's own spelling, unknown fields included, for the strict check. */
  readonly received: z.infer<typeof payloadSchema>;
}

function parsePayload(payload: unknown): AuthorizationPayload | undefined {
  const parsed = payloadSchema.safeParse(payload);
  if (!parsed.success) return undefined;
  const { authorization, signature } = parsed.data;
  const payer = parseAddress(authorization.from);
  const nonce = authorization.nonce.toLowerCase();
  return payer && isHex32(nonce)
    ? { payer, nonce, value: authorization.value, signature, received: parsed.data }
    : undefined;
}

const payloadKeys = new Set(['signature', 'authorization']);
const authorizationKeys = new Set(['from', 'to', 'value', 'validAfter', 'validBefore', 'nonce']);

function readTerms({ received }: AuthorizationPayload): SignedTerms | undefined {
  const { authorization, signature } = received;
  const payTo = parseAddress(authorization.to);
  const numbers = [authorization.value, authorization.validAfter, authorization.validBefore];
  if (!payTo || !numbers.every(isUint256) || !signatureHex.test(signature)) return undefined;
  return {
    payTo,
    amount: BigInt(authorization.value),
    validAfter: BigInt(authorization.validAfter),
    validBefore: BigInt(authorization.validBefore),
    signature: signature.toLowerCase() as Hex,
  };
}

function checkPayload(
  { received, nonce }: AuthorizationPayload,
  offer: OfferTerms,
  window: PaymentWindow,
): SignedTerms | InvalidPayment {
  const { authorization } = received;
  if (hasOtherKeys(received, payloadKeys) || hasOtherKeys(authorization, authorizationKeys))
    return invalid('unknown_payload_field');
  if (authorization.nonce !== nonce) return invalid('nonce_not_lower_case');
  for (const name of ['value', 'validAfter', 'validBefore'] as const) {
    if (!decimal.test(authorization[name])) return invalid('not_a_decimal');
  }
  if (!signatureHex.test(received.signature)) return invalid('malformed_signature');
  const signature = received.signature.toLowerCase() as Hex;
  if (readSignatureForm(signature).kind === 'malformed') return invalid('malformed_wrapped_signature');
  if (parseAddress(authorization.to) !== offer.payTo) return invalid('recipient_mismatch');
  if (BigInt(authorization.value) !== offer.amount) return invalid('authorization_value_mismatch');
  const validAfter = BigInt(authorization.validAfter);
  const validBefore = BigInt(authorization.validBefore);
  const untimely = windowError(validAfter, validBefore, window);
  if (untimely) return invalid(untimely);
  return {
    payTo: offer.payTo,
    amount: offer.amount,
    validAfter,
    validBefore,
    signature,
  };
}

/** How payers sign and what offers add, for the API's description: stricter than what is read from clients. */
const tokenDomain = z.strictObject({
  name: z.string().describe("The name in the token's own EIP-712 domain."),
  version: z.string().describe("The version in the token's own EIP-712 domain."),
});

const wire = {
  extraV1: tokenDomain,
  extraV2: tokenDomain.extend({ assetTransferMethod: z.literal('eip3009') }),
  payload: z
    .strictObject({
      signature: z
        .string()
        .regex(signatureHex)
        .describe(
          "The payer's EIP-712 signature, or that of its contract (ERC-1271), wrapped if it is not deployed yet (ERC-6492).",
        ),
      authorization: z.strictObject({
        from: z.string().describe('The payer.'),
        to: z.string().describe('The payee that was offered.'),
        value: z
          .string()
          .regex(decimal)
          .meta({ description: "In the token's smallest unit, as a decimal string.", examples: ['3264'] }),
        validAfter: decimalText,
        validBefore: decimalText,
        nonce: z
          .string()
          .regex(/^0x[0-9a-f]{64}$/)
          .describe('32 bytes in lower-case hex.'),
      }),
    })
    .describe("EIP-3009's TransferWithAuthorization, signed by the payer."),
};

/** The reasons that facilitators have been seen to give before they broadcast, and never after. */
const reasonsBeforeBroadcast = new Set([
  'insufficient_funds',
  'eip6492_factory_not_allowed',
  'invalid_exact_evm_signature',
  'invalid_exact_evm_payload_signature',
  'invalid_exact_evm_insufficient_balance',
  'invalid_exact_evm_authorization_value',
  'invalid_exact_evm_payload_authorization_value',
  'invalid_exact_evm_payload_authorization_value_mismatch',
  'invalid_exact_evm_payload_authorization_valid_after',
  'invalid_exact_evm_payload_authorization_valid_before',
  'invalid_exact_evm_recipient_mismatch',
  'invalid_exact_evm_payload_recipient_mismatch',
]);

/** `exact` with EIP-3009: the payer signs the token's own TransferWithAuthorization, and anyone may submit it. */
export const eip3009 = {
  x402Scheme: 'exact',
  wire,
  parse: parsePayload,
  readTerms: (payload: AuthorizationPayload) => readTerms(payload),
  check: (payload: AuthorizationPayload, offer, window) => checkPayload(payload, offer, window),
  digest: authorizationDigest,
  offerExtraV1: ({ eip712Name, eip712Version }) => ({ name: eip712Name, version: eip712Version }),
  offerExtraV2: ({ eip712Name, eip712Version }) => ({
    name: eip712Name,
    version: eip712Version,
    assetTransferMethod: 'eip3009',
  }),
  facilitatorPayload: ({ signature, payer, payTo, amount, validAfter, validBefore, nonce }) => ({
    signature,
    authorization: {
      from: payer,
      to: payTo,
      value: String(amount),
      validAfter: String(validAfter),
      validBefore: String(validBefore),
      nonce,
    },
  }),
  failsBeforeBroadcast: (reason) => reasonsBeforeBroadcast.has(reason),
  nonceScope: (asset) => asset,
} satisfies PaymentScheme;
