import { z } from 'zod';
import { type Address, type Hex, parseAddress } from '../../../../base/values/primitives.ts';
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
import { deadlineOf, nonceOf, validBeforeOf } from './signature-transfer.ts';

const payloadSchema = z.looseObject({
  signature: text,
  permit2Authorization: z.looseObject({
    permitted: z.looseObject({ token: text, amount: text }),
    from: text,
    spender: text,
    nonce: text,
    deadline: text,
    witness: z.looseObject({ to: text, validAfter: text, facilitator: text.optional() }),
  }),
});

/** What distinguishes the schemes of x402 over Permit2. */
export interface Permit2Variant {
  readonly x402Scheme: string;
  /** x402's contract, which the payer names as the spender. */
  readonly proxyAddress: Address;
  /** Whether the witness names the only account that may submit the transfer. */
  readonly namesSubmitter: boolean;
  /** What the payer signs (EIP-712). */
  readonly digest: (payment: SchemePayment) => Uint8Array;
  /** The reasons that facilitators give before they broadcast, and never after, besides those of all variants. */
  readonly ownReasonsBeforeBroadcast: readonly string[];
}

export interface Permit2Payload extends ParsedPayload {
  /** The client's own spelling, unknown fields included, for the strict check. */
  readonly received: z.infer<typeof payloadSchema>;
}

function parsePayload({ namesSubmitter }: Permit2Variant, payload: unknown): Permit2Payload | undefined {
  const parsed = payloadSchema.safeParse(payload);
  if (!parsed.success) return undefined;
  if ((parsed.data.permit2Authorization.witness.facilitator !== undefined) !== namesSubmitter)
    return undefined;
  const { permit2Authorization, signature } = parsed.data;
  const payer = parseAddress(permit2Authorization.from);
  const nonce = nonceOf(permit2Authorization.nonce);
  const value = permit2Authorization.permitted.amount;
  return payer && nonce ? { payer, nonce, value, signature, received: parsed.data } : undefined;
}

const payloadKeys = new Set(['signature', 'permit2Authorization']);
const authorizationKeys = new Set(['permitted', 'from', 'spender', 'nonce', 'deadline', 'witness']);
const permittedKeys = new Set(['token', 'amount']);
const witnessKeys = new Set(['to', 'validAfter', 'facilitator']);

function readTerms(
  { proxyAddress }: Permit2Variant,
  { received: { permit2Authorization, signature } }: Permit2Payload,
): SignedTerms | undefined {
  const { permitted, spender, deadline, witness } = permit2Authorization;
  const payTo = parseAddress(witness.to);
  const submitter = submitterOf(witness);
  const isOurs = parseAddress(spender) === proxyAddress && submitter !== 'malformed';
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
    ...submitter,
  };
}

function submitterOf({
  facilitator,
}: Permit2Payload['received']['permit2Authorization']['witness']):
  | Pick<SignedTerms, 'submitter'>
  | 'malformed' {
  if (facilitator === undefined) return {};
  const submitter = parseAddress(facilitator);
  return submitter ? { submitter } : 'malformed';
}

function checkPayload(
  { proxyAddress }: Permit2Variant,
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
  if (parseAddress(spender) !== proxyAddress) return invalid('spender_mismatch');
  if (parseAddress(permitted.token) !== offer.asset) return invalid('token_mismatch');
  if (parseAddress(witness.to) !== offer.payTo) return invalid('recipient_mismatch');
  const submitter = submitterOf(witness);
  if (submitter === 'malformed' || submitter.submitter !== offer.submitter)
    return invalid('facilitator_mismatch');
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
    ...submitter,
  };
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

function wireOf({ proxyAddress, namesSubmitter }: Permit2Variant): PaymentScheme['wire'] {
  const facilitator = namesSubmitter
    ? { facilitator: z.string().describe('The `facilitatorAddress` that was offered.') }
    : {};
  const facilitatorAddress = namesSubmitter
    ? { facilitatorAddress: z.string().describe('The only account that may submit the transfer.') }
    : {};
  return {
    extraV2: tokenDomain.extend({ assetTransferMethod: z.literal('permit2'), ...facilitatorAddress }),
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
          spender: z.string().describe(`x402's contract for this scheme: ${proxyAddress}`),
          nonce: z.string().regex(decimal).describe('256 bits as a decimal string.'),
          deadline: decimalText,
          witness: z.strictObject({
            to: z.string().describe('The payee that was offered.'),
            ...facilitator,
            validAfter: decimalText,
          }),
        }),
      })
      .describe("Permit2's PermitWitnessTransferFrom, signed by the payer."),
  };
}

/** The reasons that facilitators give before they broadcast, and never after. */
const reasonsBeforeBroadcast = [
  'eip2612_asset_mismatch',
  'eip2612_deadline_expired',
  'eip2612_from_mismatch',
  'eip2612_spender_not_permit2',
  'insufficient_funds',
  'invalid_eip2612_extension_format',
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
];

/** A scheme of x402 over Permit2, for any ERC-20: the payer has approved Permit2 once, and signs each transfer. */
export function createPermit2Scheme(variant: Permit2Variant) {
  const { proxyAddress, x402Scheme } = variant;
  const before = new Set([...reasonsBeforeBroadcast, ...variant.ownReasonsBeforeBroadcast]);
  return {
    x402Scheme,
    wire: wireOf(variant),
    parse: (payload) => parsePayload(variant, payload),
    readTerms: (payload: Permit2Payload) => readTerms(variant, payload),
    check: (payload: Permit2Payload, offer, window) => checkPayload(variant, payload, offer, window),
    digest: variant.digest,
    offerExtraV1: () => undefined,
    offerExtraV2: ({ eip712Name, eip712Version, submitter }) => ({
      name: eip712Name,
      version: eip712Version,
      assetTransferMethod: 'permit2',
      ...(submitter === undefined ? {} : { facilitatorAddress: submitter }),
    }),
    facilitatorPayload: (payment) => ({
      signature: payment.signature,
      permit2Authorization: {
        permitted: { token: payment.asset, amount: String(payment.amount) },
        from: payment.payer,
        spender: proxyAddress,
        nonce: String(BigInt(payment.nonce)),
        deadline: String(deadlineOf(payment)),
        witness: {
          to: payment.payTo,
          ...(payment.submitter === undefined ? {} : { facilitator: payment.submitter }),
          validAfter: String(payment.validAfter),
        },
      },
    }),
    failsBeforeBroadcast: (reason) => before.has(reason),
    // a payer's nonces are unique in Permit2 itself
    nonceScope: () => '',
  } satisfies PaymentScheme;
}
