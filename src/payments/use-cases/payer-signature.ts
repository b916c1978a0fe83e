import { hexToBytes } from 'viem/utils';
import type { ContractSignatureChecker } from '../../base/peers/rpc/contract-signature.ts';
import { parseSignature, recoverSigner } from '../../base/values/ethereum-signature.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { Address, Caip2, Hex } from '../../base/values/primitives.ts';
import type { Chain } from '../peers/chain/chain.ts';
import type { DecodedPayment } from '../rules/decode-payment.ts';
import {
  isSignedByPayer,
  type PaymentToken,
  readSignedPayment,
  type SignedPayment,
  tokensOfPayment,
} from '../rules/payment.ts';
import { schemes } from '../rules/schemes/schemes.ts';

export interface SignaturePorts {
  readonly chains: ReadonlyMap<Caip2, Chain>;
  /** Asks contracts whether a signature is theirs. */
  readonly contractSignatures: ContractSignatureChecker;
  readonly log: OperatorLog;
}

export type SignatureCheck =
  /** By an ordinary account's key, or for its contract (ERC-1271). */
  | { readonly kind: 'signed'; readonly by: 'key' | 'contract' }
  | { readonly kind: 'not_signed' }
  /** The payer may be a contract, and no RPC of its chain is configured: only the facilitator can tell. */
  | { readonly kind: 'unchecked' }
  /** The payer may be a contract, and its chain does not answer. */
  | { readonly kind: 'unavailable' };

/**
 * Whether the payer signed this payment, before the facilitator is asked: a payment that no payer signed costs a stranger
 * nothing, and a facilitator may fail at it. The length of the signature was checked before.
 */
export async function checkSignature(
  context: SignaturePorts,
  payment: SignedPayment,
): Promise<SignatureCheck> {
  if (isSignedByPayer(payment)) return { kind: 'signed', by: 'key' };
  const { network, payer, signature, transferMethod } = payment;
  const digest = schemes[transferMethod].digest(payment);
  return byContract[await askContract(context, network, payer, digest, signature)];
}

const byContract = {
  valid: { kind: 'signed', by: 'contract' },
  invalid: { kind: 'not_signed' },
  no_rpc: { kind: 'unchecked' },
  unavailable: { kind: 'unavailable' },
} as const;

/**
 * The token that a payment is in; undefined if it is none of these. A version 1 payment names only its network: if that has several
 * tokens, the payer's signature tells, and for a contract account its contract does, so that the chain is asked. The first one that
 * it may be if none can be found: the checks of the payment refuse it.
 */
export async function findSignedToken<T extends PaymentToken>(
  context: SignaturePorts,
  decoded: DecodedPayment,
  tokens: readonly T[],
): Promise<T | undefined> {
  const candidates = tokensOfPayment(decoded, tokens);
  if (candidates.length < 2) return candidates[0];
  const read = candidates.flatMap((token) => {
    const payment = readSignedPayment(decoded, token);
    return payment?.payTo === token.payTo ? [{ token, payment }] : [];
  });
  const byKey = read.find(({ payment }, _, { length }) => length === 1 || isSignedByPayer(payment));
  if (byKey) return byKey.token;
  for (const { token, payment } of read)
    if ((await checkSignature(context, payment)).kind !== 'not_signed') return token;
  return candidates[0];
}

/** The longest signature of a contract wallet that is passed to its contract. */
const maxSignatureChars = 8_194;
const signatureForm = /^0x(?:[0-9a-f]{2})+$/i;

/** A signature that a payer is to have made over a digest (EIP-712) on the chain of its payment. */
export interface PayerSignature {
  readonly network: Caip2;
  readonly payer: Address;
  readonly digest: Hex;
  /** As the client sent it. */
  readonly signature: string;
}

/** Whether a signature is the payer's: by its key, or by its contract (ERC-1271), whose chain may be unavailable. */
export async function checkPayerSignature(
  context: SignaturePorts,
  { network, payer, digest, signature }: PayerSignature,
): Promise<{ readonly kind: 'signed' | 'malformed' | 'not_signed' | 'unavailable' }> {
  if (signature.length > maxSignatureChars || !signatureForm.test(signature)) return { kind: 'malformed' };
  const parsed = parseSignature(signature);
  if (parsed && recoverSigner(hexToBytes(digest), parsed) === payer) return { kind: 'signed' };
  const answer = await askContract(context, network, payer, digest, signature.toLowerCase() as Hex);
  if (answer === 'unavailable') return { kind: answer };
  return { kind: answer === 'valid' ? 'signed' : 'not_signed' };
}

/** What the payer's contract says of its signature over a digest (ERC-1271). */
async function askContract(
  { chains, contractSignatures, log }: SignaturePorts,
  network: Caip2,
  payer: Address,
  digest: Hex,
  signature: Hex,
): Promise<'valid' | 'invalid' | 'no_rpc' | 'unavailable'> {
  const rpcUrl = chains.get(network)?.rpcUrl;
  if (rpcUrl === undefined) return 'no_rpc';
  const answer = await contractSignatures.isValidSignature({ rpcUrl, account: payer, digest, signature });
  if (answer.kind === 'answer') return answer.valid ? 'valid' : 'invalid';
  log.warn(
    { account: payer, cause: answer.cause },
    'the signature of a contract account could not be checked: its request was refused',
  );
  return 'unavailable';
}
