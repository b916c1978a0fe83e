import { createHash, createHmac, randomUUID } from 'node:crypto';
import { areEqualSecrets } from '../../base/values/equal-secrets.ts';
import { clientOf } from '../../base/values/client-address.ts';
import type { SignInMethod } from '../../ledger/rules/identity-events.ts';
import type { RotatingSecret } from '../../base/values/rotating-secret.ts';
import { type Allowance, countAttempt } from '../store/identity.ts';
import type { Identity } from './context.ts';
import type { SessionUser } from './sessions.ts';

/** What a client attempts before it has signed in. */
export type Attempt =
  | {
      readonly kind: 'password';
      readonly email: string;
      /** The id of a device that has signed in to the account before. */
      readonly device: string | undefined;
    }
  /** Attempts that send an email. */
  | { readonly kind: 'mail' | 'sign_up'; readonly email: string }
  /** Attempts that guess a secret: a token from an email, or the password of a session's user. */
  | { readonly kind: 'token'; readonly user: SessionUser | undefined }
  | { readonly kind: 'nonce' | 'other' };

/**
 * Counts an attempt of a client. Returns for how many seconds the client must wait: 0 when the attempt is allowed.
 *
 * Guesses at one account are limited over all clients together, so that many addresses give no more attempts than one. That
 * limit alone would let a stranger lock the owner out, so a device that has signed in to the account before has its own.
 */
export async function takeAttempt(identity: Identity, address: string, attempt: Attempt): Promise<number> {
  const client = clientOf(address, identity.ipv6Prefix);
  const { retryMs, isFirstRefusal } = await countAttempt(identity.pool, allowancesOf(client, attempt));
  if (retryMs === 0) return 0;
  if (isFirstRefusal && attempt.kind === 'password')
    await recordRefusal(identity, 'password', 'rate_limited');
  return Math.ceil(retryMs / 1_000);
}

/** For all clients together: a mailbox is not flooded, however its address is written. */
function mailsTo(email: string): Allowance {
  return { subject: `mail:${accountMark(mailboxOf(email))}`, perMinute: 3, perDay: 20 };
}

/** The address without the parts that mail servers ignore: a tag after `+`, and dots at Gmail. Else each spelling would have its own limit. */
function mailboxOf(email: string): string {
  const address = email.toLowerCase();
  const at = address.lastIndexOf('@');
  const [local = '', domain] = [address.slice(0, Math.max(0, at)).split('+', 1)[0], address.slice(at)];
  return (
    (domain === '@gmail.com' || domain === '@googlemail.com' ? local.replaceAll('.', '') : local) + domain
  );
}

function allowancesOf(client: string, attempt: Attempt): Allowance[] {
  switch (attempt.kind) {
    case 'password': {
      const account = accountMark(attempt.email);
      if (attempt.device !== undefined)
        return [
          { subject: `sign-in:${account}:device:${attempt.device}`, perMinute: 10 },
          // an account is free to make, and so are devices that have signed in to it
          { subject: `sign-in:${account}:devices`, perMinute: 30 },
          { subject: `sign-in:devices:${client}`, perMinute: 60 },
        ];
      return [
        { subject: `sign-in:${client}`, perMinute: 20 },
        { subject: `sign-in:${account}:${client}`, perMinute: 5 },
        { subject: `sign-in:${account}`, perMinute: 10 },
      ];
    }
    case 'mail':
      return [{ subject: `mail:${client}`, perMinute: 10 }, mailsTo(attempt.email)];
    case 'sign_up':
      return [{ subject: `sign-up:${client}`, perMinute: 10 }, mailsTo(attempt.email)];
    case 'token':
      return [
        { subject: `token:${client}`, perMinute: 20 },
        // a stolen session must not allow unlimited guesses at its password
        ...(attempt.user === undefined
          ? []
          : [{ subject: `token:session:${attempt.user.sessionId}`, perMinute: 5 }]),
      ];
    case 'nonce':
      return [{ subject: `nonce:${client}`, perMinute: 100 }];
    case 'other':
      return [{ subject: `auth-write:${client}`, perMinute: 60 }];
  }
}

/** Records a refused sign-in, without the user or the client; beyond the allowance it is only counted. */
export async function recordRefusal(
  { lane, refusalEvents, requestTally }: Pick<Identity, 'lane' | 'refusalEvents' | 'requestTally'>,
  method: SignInMethod,
  reason: string,
  provider?: string,
): Promise<void> {
  if (!refusalEvents.take()) return requestTally.addRefusal('sign_in_refused');
  const data = {
    method,
    reason: /^[a-z0-9_]{1,100}$/.test(reason) ? reason : 'other',
    ...(provider === undefined ? {} : { provider }),
  };
  await lane.append({ stream: `sign-in:${randomUUID()}`, events: [{ type: 'sign_in_refused', data }] });
}

/**
 * The cookie of a device that has just signed in; of a new one unless an id is given.
 * @param account the e-mail address whose password it had, or another proven identity
 */
export function deviceMark(secret: string, account: string, device: string = randomUUID()): string {
  return `${device}.${deviceProof(secret, account, device)}`;
}

/** The id of a device; undefined when its cookie was not issued for this account. */
export function knownDevice(
  secrets: RotatingSecret,
  account: string,
  mark: string | undefined,
): string | undefined {
  const [, id = '', proof = ''] = /^([0-9a-f-]{36})\.([A-Za-z0-9_-]{43})$/.exec(mark ?? '') ?? [];
  const isOurs = secrets.some((secret) => areEqualSecrets(proof, deviceProof(secret, account, id)));
  return isOurs ? id : undefined;
}

function deviceProof(secret: string, account: string, id: string): string {
  return createHmac('sha256', secret).update(`device:${id}:${account.toLowerCase()}`).digest('base64url');
}

/** The beginnings of the limits' keys that name an email address. */
export function subjectsOf(email: string): string[] {
  return [`sign-in:${accountMark(email)}`, mailsTo(email).subject];
}

/** Names an email address in the limits' keys without revealing it. */
function accountMark(email: string): string {
  return createHash('sha256').update(email.toLowerCase()).digest('base64url');
}
