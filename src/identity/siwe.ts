import { randomBytes } from 'node:crypto';
import { bytesToHex } from 'viem/utils';
import { clientOf } from '../domain/values/client-address.ts';
import type { Address, Hex } from '../domain/values/primitives.ts';
import {
  parseSiweMessage,
  recoverSiweSigner,
  siweDigest,
  siweRefusal,
  type SiweMessage,
} from '../domain/identity/siwe.ts';
import { countAuthFailure } from '../store/credit.ts';
import { consumeNonce, findUser, storeNonce, countAttempt, type User } from '../store/identity.ts';
import type { Auth } from './auth.ts';
import type { Identity } from './context.ts';
import { recordRefusal } from './sign-in-limits.ts';
import { openWalletUser } from './wallet-user.ts';

/** Of what is refused, and of what only the chain can tell. */
const perMinute = 10;
/** Of all that a client tries: each sign-in leaves a session behind. */
const triesPerMinute = 60;
const maxAgeSecs = 300;
const maxSkewMs = 60_000;

/** What a client is to sign for. */
export interface SiweTerms {
  readonly nonce: string;
  readonly domain: string;
  readonly uri: string;
  readonly chainId: number;
  readonly expiresInSecs: number;
}

export interface WalletSignIn {
  readonly address: string;
  readonly signature: string;
  readonly message: string;
}

export type WalletAnswer =
  | {
      readonly kind: 'signed_in';
      readonly user: User;
      readonly session: Awaited<ReturnType<Auth['startSession']>>;
    }
  /** `reason` is for the operator's ledger; the client is only told that it does not match. */
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'limited' }
  /** The chain could not be asked about a contract's signature: the same again may succeed. */
  | { readonly kind: 'unavailable' };

/** A fresh nonce, and all else that a message must say. */
export async function issueNonce(identity: Identity): Promise<SiweTerms> {
  const nonce = randomBytes(16).toString('hex');
  await storeNonce(identity.pool, nonce);
  const { domain, origin } = termsOf(identity);
  const uri = identity.settings.siweUri ?? origin;
  return { nonce, domain, uri, chainId: identity.settings.siweChainId, expiresInSecs: maxAgeSecs };
}

/**
 * Signs somebody in who has signed our terms with their wallet; the first time that makes them a user. Refusals are limited
 * by client, and so is, by wallet, what its key has not signed. Whoever shows the key of an ordinary account gets in whatever
 * strangers did in its name.
 */
export async function signInByWallet(
  identity: Identity,
  auth: Auth,
  asked: WalletSignIn,
  clientAddress: string,
): Promise<WalletAnswer> {
  const client = clientOf(clientAddress, identity.ipv6Prefix);
  const refusals = `siwe:${client}`;
  if (!(await countAuthFailure(identity.pool, refusals, perMinute, false))) return { kind: 'limited' };
  if (!(await takesTurn(identity, `siwe-try:${client}`, triesPerMinute))) return { kind: 'limited' };
  const message = parseSiweMessage(asked.message);
  const verdict = message
    ? await judge(identity, asked, message)
    : { kind: 'refused' as const, reason: 'malformed' };
  if (verdict.kind === 'refused') {
    // of many at once no more are told than one after the other
    if (!(await takesTurn(identity, refusals))) return { kind: 'limited' };
    await recordRefusal(identity, 'wallet', verdict.reason);
  }
  if (verdict.kind !== 'proven') return verdict;
  return letIn(identity, auth, verdict.address);
}

type Verdict =
  | { readonly kind: 'proven'; readonly address: Address }
  | Exclude<WalletAnswer, { kind: 'signed_in' }>;

async function judge(
  identity: Identity,
  { address, signature, message: text }: WalletSignIn,
  message: SiweMessage,
): Promise<Verdict> {
  const { domain, origin } = termsOf(identity);
  const nowMs = Date.now() + identity.lane.state.clockOffsetMs;
  const chainIds = [identity.settings.siweChainId];
  const fault = siweRefusal(message, {
    domain,
    origin,
    chainIds,
    nowMs,
    maxAgeMs: maxAgeSecs * 1_000,
    maxSkewMs,
  });
  if (fault) return { kind: 'refused', reason: fault };
  if (address.toLowerCase() !== message.address) return { kind: 'refused', reason: 'wrong_address' };
  const isOfKey = recoverSiweSigner(text, signature) === message.address;
  if (!isOfKey && !(await takesTurn(identity, `siwe:${message.address}`))) return { kind: 'limited' };
  // whoever has the key may have tried it before: a signature without it never uses a nonce up
  if (!isOfKey) {
    const asContract = await judgeContract(identity, message.address, text, signature);
    if (asContract) return asContract;
  }
  if (!(await consumeNonce(identity.pool, message.nonce, maxAgeSecs)))
    return { kind: 'refused', reason: 'unknown_nonce' };
  return { kind: 'proven', address: message.address };
}

/** Undefined where the account is a contract that holds the signature for its own (ERC-1271). */
async function judgeContract(
  { settings, contractSignatures, log }: Identity,
  account: Address,
  text: string,
  signature: string,
): Promise<Verdict | undefined> {
  const mismatch = { kind: 'refused', reason: 'signature_mismatch' } as const;
  const rpcUrl = settings.siweRpcUrl;
  if (rpcUrl === undefined || !isHex(signature)) return mismatch;
  const digest = bytesToHex(siweDigest(text));
  const answer = await contractSignatures.isValidSignature({ rpcUrl, account, digest, signature });
  if (answer.kind === 'answer') return answer.valid ? undefined : mismatch;
  log.warn({ cause: answer.cause }, "a contract's signature could not be checked: nobody was signed in");
  return { kind: 'unavailable' };
}

/** Whole bytes, as many as a contract may reasonably want. */
function isHex(text: string): text is Hex {
  return /^0x(?:[0-9a-f]{2}){0,2048}$/i.test(text);
}

async function letIn(identity: Identity, auth: Auth, address: Address): Promise<WalletAnswer> {
  const userId = await openWalletUser(identity, address);
  const session = await auth.startSession(userId);
  const user = await findUser(identity.pool, userId);
  if (!user) throw new Error('a session began without its user');
  return { kind: 'signed_in', user, session };
}

/** Counts one more; false where the last minute had all of them. */
async function takesTurn({ pool }: Identity, subject: string, most = perMinute): Promise<boolean> {
  return (await countAttempt(pool, [{ subject, perMinute: most }])).retryMs === 0;
}

function termsOf({ settings, publicUrl }: Identity): { readonly domain: string; readonly origin: string } {
  const origin = new URL(settings.siweUri ?? publicUrl()).origin;
  return { domain: settings.siweDomain ?? new URL(publicUrl()).host, origin };
}
