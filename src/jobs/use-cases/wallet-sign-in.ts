import { randomBytes } from 'node:crypto';
import { bytesToHex } from 'viem/utils';
import {
  recoverSiweSigner,
  siweDigest,
  siweMaxAgeSecs,
  siweMaxSkewMs,
  siweRefusal,
  type SiweRefusal,
} from '../../accounts/rules/siwe.ts';
import { readSiwx, siwxEntry, type SignedIn } from '../../accounts/rules/siwx.ts';
import { type Address, type Caip2, chainIdOf } from '../../base/values/primitives.ts';
import { consumeNonce, storeNonce } from '../../accounts/store/identity.ts';
import type { JobsContext } from './context.ts';
import { checkPayerSignature } from '../../payments/use-cases/payer-signature.ts';

/** Where a wallet signs in for its paid calls. */
export function walletUrl({ publicUrl }: Pick<JobsContext, 'publicUrl'>): string {
  return `${publicUrl()}/x402/receipts`;
}

export type SignedWallet =
  | {
      readonly kind: 'wallet';
      readonly address: Address;
      /** The only chain on which the wallet has shown to be itself: a contract may have another owner on another chain. */
      readonly onlyOn: Caip2 | undefined;
    }
  | {
      readonly kind: 'refused';
      readonly reason: SiweRefusal | 'malformed' | 'signature_mismatch' | 'unknown_nonce';
    }
  /** The chain could not be asked about a contract's signature. */
  | { readonly kind: 'unavailable' };

/** A challenge for any wallet. Its nonce serves one request, here and not for the sign-in of users. */
export async function challengeWallet(context: JobsContext) {
  const nonce = randomBytes(16).toString('hex');
  await storeNonce(context.pool, storedAs(nonce));
  const uri = walletUrl(context);
  const now = nowMs(context);
  const challenge = {
    domain: new URL(uri).host,
    uri,
    nonce,
    issuedAt: new Date(now).toISOString(),
    expirationTime: new Date(now + siweMaxAgeSecs * 1_000).toISOString(),
    statement: 'List the calls that this wallet has paid for.',
  };
  return siwxEntry(challenge, networksOf(context));
}

/** The wallet that has signed a challenge. A signature that is not valid never uses up a nonce. */
export async function openWallet(context: JobsContext, header: string): Promise<SignedWallet> {
  const signed = readSiwx(header);
  if (!signed) return { kind: 'refused', reason: 'malformed' };
  const { message } = signed;
  const uri = walletUrl(context);
  const { host, origin } = new URL(uri);
  const chainIds = networksOf(context).flatMap((network) => chainIdOf(network) ?? []);
  const limits = { maxAgeMs: siweMaxAgeSecs * 1_000, maxSkewMs: siweMaxSkewMs };
  const expected = { domain: host, origin, chainIds, nowMs: nowMs(context), ...limits };
  const fault = siweRefusal(message, expected) ?? (message.uri === uri ? undefined : 'wrong_uri');
  if (fault) return { kind: 'refused', reason: fault };
  const proven = await proveWallet(context, signed);
  if (proven.kind !== 'wallet') return proven;
  const isFresh = await consumeNonce(context.pool, storedAs(message.nonce), siweMaxAgeSecs);
  return isFresh ? proven : { kind: 'refused', reason: 'unknown_nonce' };
}

async function proveWallet(
  context: JobsContext,
  { message: { address }, text, network, signature }: SignedIn,
): Promise<SignedWallet> {
  if (recoverSiweSigner(text, signature) === address) return { kind: 'wallet', address, onlyOn: undefined };
  const digest = bytesToHex(siweDigest(text));
  const { kind } = await checkPayerSignature(context, { network, payer: address, digest, signature });
  if (kind === 'signed') return { kind: 'wallet', address, onlyOn: network };
  return kind === 'unavailable' ? { kind } : { kind: 'refused', reason: 'signature_mismatch' };
}

function networksOf({ settings }: Pick<JobsContext, 'settings'>): readonly Caip2[] {
  return [...new Set(settings.acceptedTokens.map(({ network }) => network))];
}

/** Apart from the nonces for the sign-in of users: neither place takes the other's. */
function storedAs(nonce: string): string {
  return `receipts:${nonce}`;
}

function nowMs({ lane }: Pick<JobsContext, 'lane'>): number {
  return Date.now() + lane.state.clockOffsetMs;
}
