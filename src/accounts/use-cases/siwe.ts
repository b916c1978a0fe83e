import { randomBytes } from 'node:crypto';
import { bytesToHex } from 'viem/utils';
import { clientOf } from '../../base/values/client-address.ts';
import type { Address, Hex } from '../../base/values/primitives.ts';
import {
  parseSiweMessage,
  recoverSiweSigner,
  siweDigest,
  siweMaxAgeSecs,
  siweMaxSkewMs,
  siweRefusal,
  type SiweMessage,
} from '../rules/siwe.ts';
import { countAuthFailure } from '../store/credit.ts';
import {
  consumeNonce,
  findUser,
  storeNonce,
  countAttempt,
  type User,
  type Wallet,
} from '../store/identity.ts';
import type { Auth, StartedSession } from './auth.ts';
import type { Identity } from './context.ts';
import { recordRefusal } from './sign-in-limits.ts';
import { openWalletUser } from './wallet-user.ts';

/** Limit of refused sign-ins, and of signatures that only a contract can check. */
const perMinute = 10;
/** Limit of all sign-ins of a client: each creates a session. */
const triesPerMinute = 60;

/** What a SIWE message must contain. */
export interface SiweTerms extends Pick<SiweMessage, 'nonce' | 'domain' | 'uri' | 'chainId'> {
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
      readonly session: StartedSession;
    }
  /** `reason`: a machine-readable code. */
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'limited' }
  /** An operator has disabled the wallet's user. */
  | { readonly kind: 'disabled' }
  /** The chain could not be reached to check a contract's signature: repeating the request may succeed. */
  | { readonly kind: 'unavailable' };

/** A new nonce, and the other values that a message must contain. A nonce of something else than a sign-in is given. */
export async function issueNonce(
  identity: Identity,
  {
    nonce = randomBytes(16).toString('hex'),
    origin,
  }: {
    readonly nonce?: string;
    /** Of the page that asks, as its browser says it. */
    readonly origin?: string | undefined;
  } = {},
): Promise<SiweTerms> {
  await storeNonce(identity.pool, nonce);
  const site = sitesOf(identity).find((one) => one.origin === origin) ?? ownSite(identity);
  const { siweChainId: chainId } = identity.settings;
  return { nonce, domain: site.host, uri: site.origin, chainId, expiresInSecs: siweMaxAgeSecs };
}

/**
 * Signs a user in by a message that their wallet has signed; the first sign-in creates the user. Refusals are limited by
 * client, and signatures that are not by the wallet's key also by wallet. A signature by the wallet's own key is not affected
 * by other clients' attempts.
 */
export async function signInByWallet(
  identity: Identity,
  auth: Auth,
  signIn: WalletSignIn,
  clientAddress: string,
): Promise<WalletAnswer> {
  const check = await proveWallet(identity, signIn, clientAddress, ({ nonce }) =>
    /^[0-9a-f]{32}$/.test(nonce) ? undefined : 'unknown_nonce',
  );
  return check.kind === 'proven' ? startWalletSession(identity, auth, check.wallet) : check;
}

/**
 * Whose wallet has signed a message for this gateway, now and for the first time. Refusals are limited and recorded.
 * @param refuse says why a message is not for the purpose at hand
 */
export async function proveWallet(
  identity: Identity,
  signIn: WalletSignIn,
  clientAddress: string,
  refuse: (message: SiweMessage) => string | undefined,
): Promise<WalletCheck> {
  const client = clientOf(clientAddress, identity.ipv6Prefix);
  const refusals = `siwe:${client}`;
  if (!(await countAuthFailure(identity.pool, refusals, perMinute, false))) return { kind: 'limited' };
  if (!(await takesTurn(identity, `siwe-try:${client}`, triesPerMinute))) return { kind: 'limited' };
  const message = parseSiweMessage(signIn.message);
  const check = message
    ? await checkMessage(identity, signIn, message, refuse(message))
    : { kind: 'refused' as const, reason: 'malformed' };
  if (check.kind === 'refused') {
    // concurrent refusals count like sequential ones
    if (!(await takesTurn(identity, refusals))) return { kind: 'limited' };
    await recordRefusal(identity, 'wallet', check.reason);
  }
  return check;
}

export type WalletCheck =
  | { readonly kind: 'proven'; readonly wallet: Wallet }
  | Exclude<WalletAnswer, { kind: 'signed_in' | 'disabled' }>;

async function checkMessage(
  identity: Identity,
  { address, signature, message: text }: WalletSignIn,
  message: SiweMessage,
  refusal: string | undefined,
): Promise<WalletCheck> {
  const { host: domain, origin } =
    sitesOf(identity).find(({ host }) => host === message.domain.toLowerCase()) ?? ownSite(identity);
  const nowMs = Date.now() + identity.lane.state.clockOffsetMs;
  const chainIds = [identity.settings.siweChainId];
  const fault = siweRefusal(message, {
    domain,
    origin,
    chainIds,
    nowMs,
    maxAgeMs: siweMaxAgeSecs * 1_000,
    maxSkewMs: siweMaxSkewMs,
  });
  if (fault ?? refusal) return { kind: 'refused', reason: fault ?? refusal ?? '' };
  if (address.toLowerCase() !== message.address) return { kind: 'refused', reason: 'wrong_address' };
  const isOfKey = recoverSiweSigner(text, signature) === message.address;
  if (!isOfKey && !(await takesTurn(identity, `siwe:${message.address}`))) return { kind: 'limited' };
  // a signature that is not by the key never uses up the nonce of the owner's own message
  if (!isOfKey) {
    const asContract = await checkContract(identity, message.address, text, signature);
    if (asContract) return asContract;
  }
  if (!(await consumeNonce(identity.pool, message.nonce, siweMaxAgeSecs)))
    return { kind: 'refused', reason: 'unknown_nonce' };
  const contractOn = isOfKey ? undefined : identity.settings.siweChainId;
  return { kind: 'proven', wallet: { address: message.address, contractOn } };
}

/** Undefined when the account is a contract that accepts the signature (ERC-1271). */
async function checkContract(
  { settings, contractSignatures, log }: Identity,
  account: Address,
  text: string,
  signature: string,
): Promise<WalletCheck | undefined> {
  const mismatch = { kind: 'refused', reason: 'signature_mismatch' } as const;
  const rpcUrl = settings.siweRpcUrl;
  if (rpcUrl === undefined || !isHex(signature)) return mismatch;
  const digest = bytesToHex(siweDigest(text));
  const chainId = settings.siweChainId;
  const answer = await contractSignatures.isValidSignature({ rpcUrl, chainId, account, digest, signature });
  if (answer.kind === 'answer') return answer.valid ? undefined : mismatch;
  log.warn(
    { account, cause: answer.cause },
    'the signature of a contract account could not be checked: its request was refused',
  );
  return { kind: 'unavailable' };
}

/** Whole bytes, at most 2,048. */
function isHex(text: string): text is Hex {
  return /^0x(?:[0-9a-f]{2}){0,2048}$/i.test(text);
}

async function startWalletSession(identity: Identity, auth: Auth, wallet: Wallet): Promise<WalletAnswer> {
  const userId = await openWalletUser(identity.pool, wallet);
  const session = await auth.startSession(userId);
  if (!session) {
    await recordRefusal(identity, 'wallet', 'user_disabled');
    return { kind: 'disabled' };
  }
  const user = await findUser(identity.pool, userId);
  if (!user) throw new Error('a session was started for an unknown user');
  return { kind: 'signed_in', user, session };
}

/** Counts one attempt; false when the last minute's are used up. */
async function takesTurn({ pool }: Identity, subject: string, most = perMinute): Promise<boolean> {
  return (await countAttempt(pool, [{ subject, perMinute: most }])).retryMs === 0;
}

function ownSite({ publicUrl }: Identity): URL {
  return new URL(publicUrl());
}

/** The pages for which wallets sign in: the gateway's own, and those that the operator trusts as much. */
function sitesOf(identity: Identity): URL[] {
  return [ownSite(identity), ...identity.settings.trustedOrigins.map((origin) => new URL(origin))];
}
