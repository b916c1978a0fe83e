import { z } from 'zod';

/** How payers sign and what offers add, for the API's description: stricter than what is read from clients. */
const tokenDomain = z.strictObject({
  name: z.string().meta({ description: "The name in the token's own EIP-712 domain." }),
  version: z.string().meta({ description: "The version in the token's own EIP-712 domain." }),
});
const decimalText = z.string().meta({ description: 'A decimal string.' });

export const wire = {
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
