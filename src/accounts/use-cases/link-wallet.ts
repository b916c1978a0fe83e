import { createHmac, randomBytes } from 'node:crypto';
import { areEqualSecrets } from '../../base/values/equal-secrets.ts';
import type { Address } from '../../base/values/primitives.ts';
import type { Wallet } from '../store/identity.ts';
import { isFreshSession, linkWallet, unlinkWallet } from '../store/sign-in-ways.ts';
import type { Identity } from './context.ts';
import { freshSecs, type SessionUser } from './sessions.ts';
import { issueNonce, proveWallet, type SiweTerms, type WalletCheck, type WalletSignIn } from './siwe.ts';

/** What a message must contain that adds a wallet to an account. */
export interface LinkTerms extends SiweTerms {
  /** The wallet shows it: the account that the wallet can sign in to from now on. */
  readonly statement: string;
}

export type LinkTermsAnswer =
  | { readonly kind: 'terms'; readonly terms: LinkTerms }
  /** The session is too old to add or remove a way to sign in. */
  | { readonly kind: 'stale' };

export type LinkAnswer =
  | { readonly kind: 'linked'; readonly wallet: Wallet }
  /** The wallet signs in to another account. Accounts are never merged. */
  | { readonly kind: 'taken' }
  | { readonly kind: 'stale' }
  | Exclude<WalletCheck, { kind: 'proven' }>;

/**
 * A nonce that only this session can use, for adding a wallet and nothing else, and the other values of the message.
 * @param origin of the page that asks, as its browser says it
 */
export async function issueLinkTerms(
  identity: Identity,
  user: SessionUser,
  origin: string | undefined,
): Promise<LinkTermsAnswer> {
  if (!(await isFreshSession(identity.pool, user.sessionId, freshSecs))) return { kind: 'stale' };
  const random = randomBytes(16).toString('hex');
  const nonce = random + proofOf(identity.settings.secrets[0], user, random);
  const terms = await issueNonce(identity, { nonce, origin });
  return { kind: 'terms', terms: { ...terms, statement: statementFor(user) } };
}

/** Adds the wallet that has signed the terms of this session to the session's user. May be repeated with other terms. */
export async function linkUserWallet(
  identity: Identity,
  user: SessionUser,
  signed: WalletSignIn,
  clientAddress: string,
): Promise<LinkAnswer> {
  if (!(await isFreshSession(identity.pool, user.sessionId, freshSecs))) return { kind: 'stale' };
  const check = await proveWallet(identity, signed, clientAddress, ({ nonce, statement }) => {
    if (!isNonceOf(identity, user, nonce)) return 'unknown_nonce';
    return statement === statementFor(user) ? undefined : 'wrong_statement';
  });
  if (check.kind !== 'proven') return check;
  const owner = await linkWallet(identity.pool, check.wallet, user.userId);
  return owner === user.userId ? { kind: 'linked', wallet: check.wallet } : { kind: 'taken' };
}

export type UnlinkAnswer =
  | { readonly kind: 'removed' }
  /** Nothing else would be left to sign in with. */
  | { readonly kind: 'last' }
  /** It is not a wallet of the user. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'stale' };

/** Removes a wallet of the session's user, with all its contracts of that address. Its sessions remain until they end. */
export async function unlinkUserWallet(
  { pool, settings, mailer }: Identity,
  user: SessionUser,
  address: Address,
): Promise<UnlinkAnswer> {
  if (!(await isFreshSession(pool, user.sessionId, freshSecs))) return { kind: 'stale' };
  const usable = settings.providers.map(({ name }) => name);
  return {
    kind: await unlinkWallet(pool, address, user.userId, [...(mailer ? ['credential'] : []), ...usable]),
  };
}

function statementFor({ userId }: SessionUser): string {
  return `Add this wallet to the account ${userId}. It can sign in to that account from then on. This costs nothing and moves no tokens.`;
}

function isNonceOf({ settings }: Identity, user: SessionUser, nonce: string): boolean {
  const [, random = '', proof = ''] = /^([0-9a-f]{32})([0-9a-f]{64})$/.exec(nonce) ?? [];
  return settings.secrets.some((secret) => areEqualSecrets(proof, proofOf(secret, user, random)));
}

function proofOf(secret: string, { sessionId, userId }: SessionUser, random: string): string {
  return createHmac('sha256', secret).update(`link-wallet:${sessionId}:${userId}:${random}`).digest('hex');
}
