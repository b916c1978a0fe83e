import { inBackground } from '../runtime/background.ts';
import { countValidKeys } from '../store/api-keys.ts';
import { accountNameOf, findUser } from '../store/identity.ts';
import type { Identity } from './context.ts';
import { isUnreachable } from './wallet-user.ts';

/** Sends the link that verifies an email address after sign-up. */
export function sendVerificationMail(identity: Identity, to: string, url: string): Promise<void> {
  return send(
    identity,
    to,
    'Confirm your address',
    `Someone, probably you, has signed up with this address at ${identity.publicUrl()}.\n\n` +
      `This link confirms the address; it is valid for an hour:\n\n${url}\n\n` +
      'If it was not you, do not open the link: it would let the person who signed up sign in with their own password.',
  );
}

/** Sends what sets a new password: the token, and a link when the page it leads to is known. */
export function sendResetMail(identity: Identity, to: string, url: string, token: string): Promise<void> {
  const hasPage = new URL(url).searchParams.get('callbackURL') !== '';
  const link = hasPage ? `This link leads to the page where you choose one:\n\n${url}\n\n` : '';
  return send(
    identity,
    to,
    'Choose a new password',
    `Someone, probably you, has requested a new password for this address at ${identity.publicUrl()}.\n\n${link}` +
      `It can be set once, within an hour, with POST ${identity.publicUrl()}/api/auth/reset-password and the token:\n\n` +
      `${token}\n\nIf it was not you, ignore this mail: nothing has changed.`,
  );
}

/** Informs the owner of an address that it has an account already: the page must not reveal that. */
export function sendExistingMail(identity: Identity, to: string): Promise<void> {
  return send(
    identity,
    to,
    'You have an account already',
    `Someone, probably you, has signed up with this address at ${identity.publicUrl()}, where it has an account already.\n\n` +
      'If you have forgotten its password, request a new one there. If it was not you, ignore this mail: nothing has changed.',
  );
}

/** Informs a user in the background that their password is a new one, and how many API keys it has not ended. */
export function reportNewPassword(identity: Identity, userId: string): void {
  inBackground(identity, sendPasswordMail(identity, userId), 'a mail about a new password could not be sent');
}

async function sendPasswordMail(identity: Identity, userId: string): Promise<void> {
  const user = await findUser(identity.pool, userId);
  if (!user) return;
  const keys = await countValidKeys(identity.pool, accountNameOf(userId));
  const offer =
    keys === 0
      ? ''
      : `Your ${keys} API keys are still valid. If a stranger may have them, revoke them all: ` +
        `DELETE ${identity.publicUrl()}/api/keys\n\n`;
  await send(
    identity,
    user.email,
    'Your password was changed',
    `The password of this address at ${identity.publicUrl()} was changed, and all other sessions were ended.\n\n${offer}` +
      'If it was not you, request a new password there now.',
  );
}

/** Informs a user of an API key that they did not make, when their address is known to be theirs. */
export async function sendKeyMail(identity: Identity, userId: string, name: string): Promise<void> {
  const user = await findUser(identity.pool, userId);
  if (!user?.isEmailVerified) return;
  await send(
    identity,
    user.email,
    'A new API key',
    `An operator of ${identity.publicUrl()} has made an API key named "${name}" that spends from your account.

` +
      `If you have not asked for it, sign in and revoke it: GET ${identity.publicUrl()}/api/keys lists your keys, ` +
      `DELETE ${identity.publicUrl()}/api/keys/ID revokes one.`,
  );
}

/** Informs a user about the budget of one of their keys, when their address is known to be theirs. */
export async function sendBudgetMail(
  identity: Identity,
  userId: string,
  { subject, text }: { readonly subject: string; readonly text: string },
): Promise<void> {
  const user = await findUser(identity.pool, userId);
  if (user?.isEmailVerified)
    await send(identity, user.email, subject, `${text}\n\nYour keys: ${identity.publicUrl()}/api/keys`);
}

async function send({ mailer }: Identity, to: string, subject: string, text: string): Promise<void> {
  if (!isUnreachable(to)) await mailer?.send({ to, subject, text });
}
