import { bytesToHex } from 'viem/utils';
import { parseSignature, recoverSigner } from '../../../../base/values/ethereum-signature.ts';
import type { PaymentScheme } from '../scheme.ts';
import { authorizationDigest } from './authorization-digest.ts';
import { type AuthorizationPayload, checkPayload, parsePayload, readTerms } from './payload.ts';
import { z } from 'zod';

/** How payers sign and what offers add, for the API's description: stricter than what is read from clients. */
const tokenDomain = z.strictObject({
  name: z.string().meta({ description: "The name in the token's own EIP-712 domain." }),
  version: z.string().meta({ description: "The version in the token's own EIP-712 domain." }),
});
const decimalText = z.string().meta({ description: 'A decimal string.' });

const wire = {
  extraV1: tokenDomain,
  extraV2: tokenDomain.extend({ assetTransferMethod: z.literal('eip3009') }),
  payload: z
    .strictObject({
      signature: z
        .string()
        .regex(/^0x(?:[0-9a-fA-F]{2}){65,4096}$/)
        .meta({ description: "The payer's EIP-712 signature, or that of its contract (ERC-1271)." }),
      authorization: z.strictObject({
        from: z.string().meta({ description: 'The payer.' }),
        to: z.string().meta({ description: 'The payee that was offered.' }),
        value: z
          .string()
          .regex(/^(?:0|[1-9]\d{0,77})$/)
          .meta({ description: "In the token's smallest unit, as a decimal string.", examples: ['3264'] }),
        validAfter: decimalText,
        validBefore: decimalText,
        nonce: z
          .string()
          .regex(/^0x[0-9a-f]{64}$/)
          .meta({ description: '32 bytes in lower-case hex.' }),
      }),
    })
    .meta({ description: "EIP-3009's TransferWithAuthorization, signed by the payer." }),
};

/** The reasons that facilitators have been seen to give before they broadcast, and never after. */
const reasonsBeforeBroadcast = new Set([
  'insufficient_funds',
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
  isSignedByPayer(payment) {
    const signature = parseSignature(payment.signature);
    return (
      signature !== undefined && recoverSigner(authorizationDigest(payment), signature) === payment.payer
    );
  },
  digest: (payment) => bytesToHex(authorizationDigest(payment)),
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
  expectedTransfer: ({ asset, payer, payTo, amount, nonce }) => ({
    asset,
    from: payer,
    payTo,
    value: amount,
    nonce,
  }),
} satisfies PaymentScheme;
