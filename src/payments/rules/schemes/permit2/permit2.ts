import { hashTypedData, hexToBytes } from 'viem/utils';
import { z } from 'zod';
import { chainIdOf, type Hex, parseAddress } from '../../../../base/values/primitives.ts';
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
import type {
  InvalidPayment,
  OfferTerms,
  ParsedPayload,
  PaymentScheme,
  SchemePayment,
  SignedTerms,
} from '../scheme.ts';
import {
  deadlineOf,
  exactProxyAddress,
  nonceOf,
  permit2Domain,
  permitTypes,
  validBeforeOf,
} from './signature-transfer.ts';

const payloadSchema = z.looseObject({
  signature: text,
  permit2Authorization: z.looseObject({
    permitted: z.looseObject({ token: text, amount: text }),
    from: text,
    spender: text,
    nonce: text,
    deadline: text,
    // a witness that names a facilitator is that of `upto`
    witness: z.looseObject({ to: text, validAfter: text, facilitator: z.undefined().optional() }),
  }),
});

interface Permit2Payload extends ParsedPayload {
  /** The client's own spelling, unknown fields included, for the strict check. */
  readonly received: z.infer<typeof payloadSchema>;
}

function parsePayload(payload: unknown): Permit2Payload | undefined {
  const parsed = payloadSchema.safeParse(payload);
  if (!parsed.success) return undefined;
  const { permit2Authorization, signature } = parsed.data;
  const payer = parseAddress(permit2Authorization.from);
  const nonce = nonceOf(permit2Authorization.nonce);
  const value = permit2Authorization.permitted.amount;
  return payer && nonce ? { payer, nonce, value, signature, received: parsed.data } : undefined;
}

const payloadKeys = new Set(['signature', 'permit2Authorization']);
const authorizationKeys = new Set(['permitted', 'from', 'spender', 'nonce', 'deadline', 'witness']);
const permittedKeys = new Set(['token', 'amount']);
const witnessKeys = new Set(['to', 'validAfter']);

function readTerms({
  received: { permit2Authorization, signature },
}: Permit2Payload): SignedTerms | undefined {
  const { permitted, spender, deadline, witness } = permit2Authorization;
  const payTo = parseAddress(witness.to);
  const isOurs = parseAddress(spender) === exactProxyAddress;
  // the first second after the greatest deadline is no uint256
  const validBefore = isUint256(deadline) ? String(validBeforeOf(BigInt(deadline))) : deadline;
  const numbers = [permitted.amount, witness.validAfter, validBefore];
  if (!payTo || !isOurs || !numbers.every(isUint256) || !signatureHex.test(signature)) return undefined;
  return {
    payTo,
    amount: BigInt(permitted.amount),
    validAfter: BigInt(witness.validAfter),
    validBefore: BigInt(validBefore),
    signature: signature.toLowerCase() as Hex,
  };
}

function checkPayload(
  { received }: Permit2Payload,
  offer: OfferTerms,
  window: PaymentWindow,
): SignedTerms | InvalidPayment {
  const { permit2Authorization, signature } = received;
  const { permitted, spender, nonce, deadline, witness } = permit2Authorization;
  if (
    hasOtherKeys(received, payloadKeys) ||
    hasOtherKeys(permit2Authorization, authorizationKeys) ||
    hasOtherKeys(permitted, permittedKeys) ||
    hasOtherKeys(witness, witnessKeys)
  )
    return invalid('unknown_payload_field');
  if (![permitted.amount, nonce, deadline, witness.validAfter].every((number) => decimal.test(number)))
    return invalid('not_a_decimal');
  if (!signatureHex.test(signature)) return invalid('malformed_signature');
  // Permit2 asks the payer's contract, which must be deployed
  if (readSignatureForm(signature.toLowerCase() as Hex).kind !== 'plain') return invalid('erc6492_signature');
  if (parseAddress(spender) !== exactProxyAddress) return invalid('spender_mismatch');
  if (parseAddress(permitted.token) !== offer.asset) return invalid('token_mismatch');
  if (parseAddress(witness.to) !== offer.payTo) return invalid('recipient_mismatch');
  if (BigInt(permitted.amount) !== offer.amount) return invalid('authorization_value_mismatch');
  const validAfter = BigInt(witness.validAfter);
  const validBefore = validBeforeOf(BigInt(deadline));
  const untimely = windowError(validAfter, validBefore, window);
  if (untimely) return invalid(untimely);
  return {
    payTo: offer.payTo,
    amount: offer.amount,
    validAfter,
    validBefore,
    signature: signature.toLowerCase() as Hex,
  };
}

const types = permitTypes([
  { name: 'to', type: 'address' },
  { name: 'validAfter', type: 'uint256' },
]);

/** What a payer signs (EIP-712): the transfer of exactly this amount to this payee, by x402's contract alone. */
export function permit2TypedData(
  payment: Omit<SchemePayment, 'signature' | 'payer' | 'eip712Name' | 'eip712Version'>,
) {
  const { network, asset, payTo, amount, validAfter, nonce } = payment;
  const message = {
    permitted: { token: asset, amount },
    spender: exactProxyAddress,
    nonce: BigInt(nonce),
    deadline: deadlineOf(payment),
    witness: { to: payTo, validAfter },
  };
  const domain = permit2Domain(chainIdOf(network) ?? 0);
  return { domain, types, primaryType: 'PermitWitnessTransferFrom', message } as const;
}

/** How payers sign and what offers add, for the API's description: stricter than what is read from clients. */
const tokenDomain = z.strictObject({
  name: z
    .string()
    .describe(
      "The name in the token's own EIP-712 domain, for an approval by signature (EIP-2612). Empty if it has none.",
    ),
  version: z.string().describe("The version in the token's own EIP-712 domain. Empty if it has none."),
});

const wire = {
  extraV2: tokenDomain.extend({ assetTransferMethod: z.literal('permit2') }),
  payload: z
    .strictObject({
      signature: z
        .string()
        .regex(signatureHex)
        .describe("The payer's EIP-712 signature, or that of its contract (ERC-1271)."),
      permit2Authorization: z.strictObject({
        permitted: z.strictObject({
          token: z.string().describe('The token that was offered.'),
          amount: z.string().regex(decimal).describe("In the token's smallest unit, as a decimal string."),
        }),
        from: z.string().describe('The payer.'),
        spender: z.string().describe(`x402's contract for exact amounts: ${exactProxyAddress}`),
        nonce: z.string().regex(decimal).describe('256 bits as a decimal string.'),
        deadline: decimalText,
        witness: z.strictObject({
          to: z.string().describe('The payee that was offered.'),
          validAfter: decimalText,
        }),
      }),
    })
    .describe("Permit2's PermitWitnessTransferFrom, signed by the payer."),
};

/** The reasons that facilitators give before they broadcast, and never after. */
const reasonsBeforeBroadcast = new Set([
  'insufficient_funds',
  'invalid_permit2_recipient_mismatch',
  'invalid_permit2_signature',
  'invalid_permit2_spender',
  'permit2_allowance_required',
  'permit2_amount_mismatch',
  'permit2_deadline_expired',
  'permit2_insufficient_balance',
  'permit2_not_yet_valid',
  'permit2_proxy_not_deployed',
  'permit2_token_mismatch',
]);

/**
 * `exact` with Permit2, for any ERC-20: the payer has approved Permit2 once, and signs each transfer. Anyone may submit it, through x402's
 * contract alone.
 */
export const permit2 = {
  x402Scheme: 'exact',
  wire,
  parse: parsePayload,
  readTerms: (payload: Permit2Payload) => readTerms(payload),
  check: (payload: Permit2Payload, offer, window) => checkPayload(payload, offer, window),
  digest: (payment) => hexToBytes(hashTypedData(permit2TypedData(payment))),
  offerExtraV1: () => undefined,
  offerExtraV2: ({ eip712Name, eip712Version }) => ({
    name: eip712Name,
    version: eip712Version,
    assetTransferMethod: 'permit2',
  }),
  facilitatorPayload: (payment) => ({
    signature: payment.signature,
    permit2Authorization: {
      permitted: { token: payment.asset, amount: String(payment.amount) },
      from: payment.payer,
      spender: exactProxyAddress,
      nonce: String(BigInt(payment.nonce)),
      deadline: String(deadlineOf(payment)),
      witness: { to: payment.payTo, validAfter: String(payment.validAfter) },
    },
  }),
  failsBeforeBroadcast: (reason) => reasonsBeforeBroadcast.has(reason),
  // a payer's nonces are unique in Permit2 itself
  nonceScope: () => '',
} satisfies PaymentScheme;
