import { bytesToHex, hexToBytes } from 'viem/utils';
import type { ContractSignatureChecker } from '../../base/peers/rpc/contract-signature.ts';
import { parseSignature, recoverSigner } from '../../base/values/ethereum-signature.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { Address, Caip2, Hex } from '../../base/values/primitives.ts';
import { readSignatureForm } from '../../base/values/wrapped-signature.ts';
import type { Chain } from '../peers/chain/chain.ts';
import type { Facilitators } from '../peers/facilitator/facilitators.ts';
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
  /** They deploy the wallets of payments, not the gateway. */
  readonly facilitators: Facilitators;
  readonly log: OperatorLog;
}

export type SignatureCheck =
  /** By an ordinary account's key. */
  | { readonly kind: 'signed'; readonly by: 'key'; readonly factory?: undefined }
  /** For its contract (ERC-1271), which this factory deploys if it is not deployed yet (ERC-6492). */
  | { readonly kind: 'signed'; readonly by: 'contract'; readonly factory?: Address | undefined }
  | { readonly kind: 'not_signed' }
  /** The payer is a contract that is not deployed yet, and that no facilitator deploys. */
  | { readonly kind: 'not_deployed' }
  /** The payer may be a contract, and no RPC of its chain is configured: only the facilitator can tell. */
  | { readonly kind: 'unchecked'; readonly factory?: Address | undefined }
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
  const digest = bytesToHex(schemes[transferMethod].digest(payment));
  return askContract(context, { network, payer, digest, signature });
}

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
  const lowerCased = signature.toLowerCase() as Hex;
  const { kind } = await askContract(context, { network, payer, digest, signature: lowerCased });
  return { kind: kind === 'signed' || kind === 'unavailable' ? kind : 'not_signed' };
}

/**
 * What the payer's contract says of its signature over a digest (ERC-1271). One that is not deployed yet is asked only if a facilitator
 * deploys it: no other factory is called, not even in a call that changes nothing.
 */
async function askContract(
  { chains, contractSignatures, facilitators, log }: SignaturePorts,
  { network, payer, digest, signature }: PayerSignature & { readonly signature: Hex },
): Promise<SignatureCheck> {
  const form = readSignatureForm(signature);
  if (form.kind === 'malformed') return { kind: 'not_signed' };
  const factory = form.kind === 'wrapped' ? form.factory : undefined;
  const isDeployable = factory === undefined || facilitators.deploysThrough(factory);
  const rpcUrl = chains.get(network)?.rpcUrl;
  if (rpcUrl === undefined) return isDeployable ? { kind: 'unchecked', factory } : { kind: 'not_deployed' };
  const inner = form.kind === 'wrapped' ? form.signature : signature;
  const asked = { rpcUrl, account: payer, digest };
  const own = await contractSignatures.isValidSignature({ ...asked, signature: inner });
  const isUndeployed = factory !== undefined && own.kind === 'answer' && !own.isContract;
  if (isUndeployed && !isDeployable) return { kind: 'not_deployed' };
  const answer = isUndeployed ? await contractSignatures.isValidWrapped({ ...asked, signature }) : own;
  if (answer.kind === 'answer') {
    if (!answer.valid) return { kind: 'not_signed' };
    return { kind: 'signed', by: 'contract', factory: isUndeployed ? factory : undefined };
  }
  log.warn(
    { account: payer, cause: answer.cause },
    'the signature of a contract account could not be checked: its request was refused',
  );
  return { kind: 'unavailable' };
}
