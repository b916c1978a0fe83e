import { numberToHex, stringToBytes } from 'viem/utils';
import { keccak256 } from '../../../../base/values/keccak.ts';
import { type Address, chainIdOf } from '../../../../base/values/primitives.ts';
import { zeroAddress } from '../../quote.ts';
import type { SchemePayment } from '../scheme.ts';
import { deadlineOf, permit2Address } from './signature-transfer.ts';

const hashOf = (text: string): string => hex(keccak256(stringToBytes(text)));

const permissions = 'TokenPermissions(address token,uint256 amount)';
const permissionsType = hashOf(permissions);
const domainType = hashOf('EIP712Domain(string name,uint256 chainId,address verifyingContract)');
const domainName = hashOf('Permit2');

/**
 * The digest of what a payer signs (Permit2, EIP-712), for x402's contract of a scheme and the witness that the scheme adds. Encoded by hand
 * for speed, since every payment may wait for it; a test compares it with viem's encoder.
 * @param witness its members in order, each with its type
 */
export function permitDigestFor(
  proxyAddress: Address,
  witness: readonly { readonly type: string; readonly wordOf: (payment: SchemePayment) => string }[],
): (payment: SchemePayment) => Uint8Array {
  const witnessText = `Witness(${witness.map(({ type }) => type).join(',')})`;
  const witnessType = hashOf(witnessText);
  const permitType = hashOf(
    `PermitWitnessTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,Witness witness)${permissions}${witnessText}`,
  );
  return (payment) => {
    const { network, asset, amount, nonce } = payment;
    const chainId = word(BigInt(chainIdOf(network) ?? 0));
    const domain = hashWords(domainType, domainName, chainId, address(permit2Address));
    const permitted = hashWords(permissionsType, address(asset), word(amount));
    const signed = hashWords(witnessType, ...witness.map(({ wordOf }) => wordOf(payment)));
    const deadline = word(deadlineOf(payment));
    const permit = hashWords(permitType, permitted, address(proxyAddress), nonce.slice(2), deadline, signed);
    return keccak256(Buffer.from(`1901${domain}${permit}`, 'hex'));
  };
}

/** Who gets the money. */
export const toMember = {
  type: 'address to',
  wordOf: ({ payTo }: SchemePayment): string => address(payTo),
} as const;
/** Who alone may submit the transfer. */
export const facilitatorMember = {
  type: 'address facilitator',
  wordOf: ({ submitter = zeroAddress }: SchemePayment): string => address(submitter),
} as const;
export const validAfterMember = {
  type: 'uint256 validAfter',
  wordOf: ({ validAfter }: SchemePayment): string => word(validAfter),
} as const;

function hashWords(...words: readonly string[]): string {
  return hex(keccak256(Buffer.from(words.join(''), 'hex')));
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

function word(value: bigint): string {
  return numberToHex(value, { size: 32 }).slice(2);
}

function address(text: string): string {
  return text.slice(2).padStart(64, '0');
}
