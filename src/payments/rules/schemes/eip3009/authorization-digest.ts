import { stringToBytes } from 'viem/utils';
import { domainSeparator } from '../../../../base/values/eip712-domain.ts';
import { keccak256 } from '../../../../base/values/keccak.ts';
import type { SchemePayment } from '../scheme.ts';
import { chainIdOf } from '../../../../base/values/primitives.ts';

const hashOf = (text: string): Uint8Array => keccak256(stringToBytes(text));

const transferType = hashOf(
  'TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)',
);

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

const wordBytes = 32;
/** Written anew for each digest: nothing waits between. */
const structBytes = Buffer.alloc(7 * wordBytes);
structBytes.set(transferType);
const signedBytes = Buffer.alloc(2 + 2 * wordBytes);
signedBytes.set([0x19, 0x01]);

/**
 * The digest that a payer signs (EIP-3009, EIP-712). Encoded by hand for speed, since every payment may wait for it; a test
 * compares it with viem's encoder.
 * @throws RangeError if a number needs more than 256 bits
 */
export function authorizationDigest(payment: SchemePayment): Uint8Array {
  const { payer, payTo, amount, validAfter, validBefore, nonce } = payment;
  writeWord(1, payer.slice(2));
  writeWord(2, payTo.slice(2));
  writeWord(3, amount.toString(16));
  writeWord(4, validAfter.toString(16));
  writeWord(5, validBefore.toString(16));
  writeWord(6, nonce.slice(2));
  signedBytes.set(separatorOf(payment), 2);
  signedBytes.set(keccak256(structBytes), 2 + wordBytes);
  return keccak256(signedBytes);
}

function writeWord(index: number, hex: string): void {
  const word = hex.padStart(2 * wordBytes, '0');
  // anything else would leave bytes of the payment before
  if (word.length !== 2 * wordBytes || structBytes.write(word, index * wordBytes, 'hex') !== wordBytes)
    throw new RangeError('a field of an authorization does not fit into its word');
}
