import { type Address, chainIdOf, type Hex, isHex32 } from '../../../../base/values/primitives.ts';
import type { SchemePayment } from '../scheme.ts';

// What every scheme over Permit2 has in common: x402's `exact` with `assetTransferMethod: "permit2"`, and `upto`.

/** Permit2's address on every chain. */
export const permit2Address: Address = '0x000000000022d473030f116ddee9f6b43ac78ba3';

/** x402's contract on every chain that payers of `exact` name as the spender: it pays the witness's payee, and the whole amount. */
export const exactProxyAddress: Address = '0x402085c248eea27d92e8b30b2c58ed07f9e20001';

/** The same for `upto`: it pays the witness's payee as much as the witness's facilitator says, and takes the call from that one alone. */
export const uptoProxyAddress: Address = '0x4020a4f3b7b90cca423b9fabcc0ce57c6c240002';

const maxUint256 = 2n ** 256n - 1n;

/** Permit2's nonces are decimal numbers in payloads and 32 bytes everywhere else; undefined if a text is neither. Lenient about spelling. */
export function nonceOf(text: string): Hex | undefined {
  const lower = text.toLowerCase();
  if (isHex32(lower)) return lower;
  if (!/^\d{1,100}$/.test(text)) return undefined;
  const number = BigInt(text);
  return number > maxUint256 ? undefined : `0x${number.toString(16).padStart(64, '0')}`;
}

/** Where Permit2 notes that a nonce is used: a bit of a word. */
export function nonceBit(nonce: Hex): { readonly word: bigint; readonly mask: bigint } {
  const number = BigInt(nonce);
  return { word: number >> 8n, mask: 1n << (number & 0xffn) };
}

/** Permit2 takes a signature at its deadline, and every scheme's `validBefore` is the first second at which the money cannot move. */
export function validBeforeOf(deadline: bigint): bigint {
  return deadline + 1n;
}

export function deadlineOf({ validBefore }: { readonly validBefore: bigint }): bigint {
  return validBefore - 1n;
}

/** What a payer signs, without its signature. */
export type PermitTerms = Omit<SchemePayment, 'signature' | 'payer' | 'eip712Name' | 'eip712Version'>;

/** The typed data of a permit (EIP-712), for the witness that a scheme adds. */
export function permitTypedData<
  const T extends readonly { readonly name: string; readonly type: string }[],
  const W,
>(proxyAddress: Address, { network, asset, amount, nonce, validBefore }: PermitTerms, types: T, witness: W) {
  return {
    domain: { name: 'Permit2', chainId: chainIdOf(network) ?? 0, verifyingContract: permit2Address },
    types: {
      PermitWitnessTransferFrom: [
        { name: 'permitted', type: 'TokenPermissions' },
        { name: 'spender', type: 'address' },
        { name: 'nonce', type: 'uint256' },
        { name: 'deadline', type: 'uint256' },
        { name: 'witness', type: 'Witness' },
      ],
      TokenPermissions: [
        { name: 'token', type: 'address' },
        { name: 'amount', type: 'uint256' },
      ],
      Witness: types,
    },
    primaryType: 'PermitWitnessTransferFrom',
    message: {
      permitted: { token: asset, amount },
      spender: proxyAddress,
      nonce: BigInt(nonce),
      deadline: deadlineOf({ validBefore }),
      witness,
    },
  } as const;
}
