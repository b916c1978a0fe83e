import { concatBytes, numberToBytes, stringToBytes, toBytes } from 'viem/utils';
import { domainSeparator } from '../../../values/eip712-domain.ts';
import { keccak256 } from '../../../values/keccak.ts';
import type { SchemePayment } from '../scheme.ts';
import { chainIdOf } from '../../../values/primitives.ts';

const hashOf = (text: string): Uint8Array => keccak256(stringToBytes(text));
const word = (value: bigint | number): Uint8Array => numberToBytes(value, { size: 32 });

const transferType = hashOf(
  'TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)',
);
const prefix = new Uint8Array([0x19, 0x01]);

const separators = new Map<string, Uint8Array>();
/** Tokens are few; bounded since a payment may name any. */
const maxSeparators = 256;

function separatorOf({ eip712Name, eip712Version, network, asset }: SchemePayment): Uint8Array {
  const key = JSON.stringify([network, asset, eip712Name, eip712Version]);
  let separator = separators.get(key);
  if (!separator) {
    const chainId = chainIdOf(network) ?? 0;
    separator = domainSeparator({ name: eip712Name, version: eip712Version, chainId, contract: asset });
    if (separators.size >= maxSeparators) separators.clear();
    separators.set(key, separator);
  }
  return separator;
}

/**
 * The digest that a payer signs (EIP-3009, EIP-712). Encoded by hand for speed, since every payment may wait for it; a test
 * compares it with viem's encoder.
 */
export function authorizationDigest(payment: SchemePayment): Uint8Array {
  const { payer, payTo, amount, validAfter, validBefore, nonce } = payment;
  const addresses = [payer, payTo].map((address) => word(BigInt(address)));
  const numbers = [amount, validAfter, validBefore].map(word);
  const struct = keccak256(concatBytes([transferType, ...addresses, ...numbers, toBytes(nonce)]));
  return keccak256(concatBytes([prefix, separatorOf(payment), struct]));
}
