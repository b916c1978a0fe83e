import type { Identity } from './context.ts';
import { isUnreachable } from './wallet-user.ts';

/** The link that proves an address, for whoever signed up with it. */
export function sendVerificationMail(identity: Identity, to: string, url: string): Promise<void> {
  return send(
    identity,
    to,
    'Confirm your address',
    `Somebody, you perhaps, has signed up with this address at ${identity.publicUrl()}.\n\n` +
      `This link confirms that it was you; it holds for an hour:\n\n${url}\n\n` +
      'If it was not you, leave it be: whoever signed up could get in with their own password.',
  );
}

/** What sets a new password: a link where the page it leads to is known, and the token in any case. */
export function sendResetMail(identity: Identity, to: string, url: string, token: string): Promise<void> {
  const isLeading = new URL(url).searchParams.get('callbackURL') !== '';
  const link = isLeading ? `This link leads to where you choose one:\n\n${url}\n\n` : '';
  return send(
    identity,
    to,
    'Choose a new password',
    `Somebody, you perhaps, wants a new password for this address at ${identity.publicUrl()}.\n\n${link}` +
      `It can be set for an hour, once, with POST ${identity.publicUrl()}/api/auth/reset-password and the token:\n\n` +
      `${token}\n\nIf it was not you, leave it be: nothing has changed.`,
  );
}

/** Tells who signs up again that there is an account already: on the page nobody may learn that. */
export function sendExistingMail(identity: Identity, to: string): Promise<void> {
  return send(
    identity,
    to,
    'You have an account already',
    `Somebody, you perhaps, has signed up with this address at ${identity.publicUrl()}, where it has an account already.\n\n` +
      'If you do not know its password, ask for a new one there. If it was not you, leave it be: nothing has changed.',
  );
}

async function send({ mailer }: Identity, to: string, subject: string, text: string): Promise<void> {
  if (!isUnreachable(to)) await mailer?.send({ to, subject, text });
}
