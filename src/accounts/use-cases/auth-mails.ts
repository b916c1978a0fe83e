import { inBackground } from '../../base/runtime/background.ts';
import { countValidKeys } from '../store/api-keys.ts';
import { accountNameOf, findUser } from '../store/identity.ts';
import type { Identity } from './context.ts';
import { isUnreachable } from './wallet-user.ts';
import { html, type Html } from '../../base/values/html.ts';

/** Sends the link that verifies an email address after sign-up. */
export function sendVerificationMail(identity: Identity, to: string, url: string): Promise<void> {
  return send(identity, to, {
    subject: 'Confirm your address',
    paragraphs: [
      `Someone, probably you, has signed up with this address at ${identity.publicUrl()}.`,
      'This link confirms the address; it is valid for an hour:',
    ],
    link: { label: 'Confirm the address', url },
    after: [
      'If it was not you, do not open the link: it would let the person who signed up sign in with their own password.',
    ],
  });
}

/** Sends the means to set a new password: a link if its page is known, and the token if the gateway has no pages. */
export function sendResetMail(identity: Identity, to: string, url: string, token: string): Promise<void> {
  const hasPage = new URL(url).searchParams.get('callbackURL') !== '';
  const byApi =
    'It can be set once, within an hour, with ' +
    `POST ${identity.publicUrl()}/api/auth/reset-password and the token:`;
  const byPage = 'This link leads to the page where you choose one, once and within an hour:';
  const isOfPages = hasPage && identity.hasPages;
  return send(identity, to, {
    subject: 'Choose a new password',
    paragraphs: [
      `Someone, probably you, has requested a new password for this address at ${identity.publicUrl()}.`,
      ...(isOfPages ? [byPage] : hasPage ? [`${byPage}\n\n${url}`, byApi] : [byApi]),
    ],
    ...(isOfPages ? { link: { label: 'Choose a password', url } } : { code: token }),
    after: ['If it was not you, ignore this mail: nothing has changed.'],
  });
}

/** Informs the owner of an address that it has an account already: the page must not reveal that. */
export function sendExistingMail(identity: Identity, to: string): Promise<void> {
  return send(identity, to, {
    subject: 'You have an account already',
    paragraphs: [
      `Someone, probably you, has signed up with this address at ${identity.publicUrl()}, where it has an account already.`,
    ],
    ...(identity.hasPages && { link: { label: 'Sign in', url: `${identity.publicUrl()}/sign-in` } }),
    after: [
      'If you have forgotten its password, request a new one there. If it was not you, ignore this mail: nothing has changed.',
    ],
  });
}

/** Informs a user in the background that their password is a new one, and how many API keys it has not ended. */
export function reportNewPassword(identity: Identity, userId: string): void {
  inBackground(identity, sendPasswordMail(identity, userId), 'a mail about a new password could not be sent');
}

async function sendPasswordMail(identity: Identity, userId: string): Promise<void> {
  const user = await findUser(identity.pool, userId);
  if (!user) return;
  const keys = await countValidKeys(identity.pool, accountNameOf(userId));
  const offer = identity.hasPages
    ? `Your ${keys} API keys are still valid. If a stranger may have them, revoke them:`
    : `Your ${keys} API keys are still valid. If a stranger may have them, revoke them all: ` +
      `DELETE ${identity.publicUrl()}/api/keys`;
  await send(identity, user.email, {
    subject: 'Your password was changed',
    paragraphs: [
      `The password of this address at ${identity.publicUrl()} was changed, and all other sessions were ended.`,
      ...(keys === 0 ? [] : [offer]),
    ],
    ...(keys > 0 &&
      identity.hasPages && { link: { label: 'Your keys', url: `${identity.publicUrl()}/keys` } }),
    after: ['If it was not you, request a new password there now.'],
  });
}

/** Informs an operator that somebody who knows their password guesses at their second factor. */
export async function sendGuessMail(identity: Identity, userId: string): Promise<void> {
  const user = await findUser(identity.pool, userId);
  if (!user) return;
  const url = identity.publicUrl();
  await send(identity, user.email, {
    subject: 'Somebody guesses your second factor',
    paragraphs: [
      `Somebody has signed in at ${url} with your password and typed several wrong codes of your second factor.`,
      'If it was not you, somebody knows your password: set a new one now, which also ends their sessions.',
    ],
    ...(identity.hasPages && { link: { label: 'Choose a new password', url: `${url}/forgot-password` } }),
    after: [
      'Until they stop, codes may be refused on devices that are new to you: a passkey or a recovery code is always taken.',
    ],
  });
}

/** Sends the link with which a person becomes an operator. */
export function sendInvitationMail(
  identity: Identity,
  to: string,
  { url, role, by }: { readonly url: string; readonly role: string; readonly by: string },
): Promise<void> {
  return send(identity, to, {
    subject: 'An invitation to the console',
    paragraphs: [
      `${by} invites you to the console of ${identity.publicUrl()}, with the role ${role}.`,
      'This link leads there; it is valid for 72 hours, and once:',
    ],
    link: { label: 'Accept the invitation', url },
    after: ['If you do not expect it, ignore this mail, and do not give the link to anybody.'],
  });
}

/** Informs a user of an API key that they did not make, when their address is known to be theirs. */
export async function sendKeyMail(identity: Identity, userId: string, name: string): Promise<void> {
  const user = await findUser(identity.pool, userId);
  if (!user?.isEmailVerified) return;
  const url = identity.publicUrl();
  await send(identity, user.email, {
    subject: 'A new API key',
    paragraphs: [`An operator of ${url} has made an API key named "${name}" that spends from your account.`],
    ...(identity.hasPages && { link: { label: 'Your keys', url: `${url}/keys` } }),
    after: [
      identity.hasPages
        ? 'If you have not asked for it, sign in and revoke it.'
        : `If you have not asked for it, sign in and revoke it: GET ${url}/api/keys lists your keys, ` +
          `DELETE ${url}/api/keys/ID revokes one.`,
    ],
  });
}

/** Informs a user about the budget of one of their keys, when their address is known to be theirs. */
export async function sendBudgetMail(
  identity: Identity,
  userId: string,
  { subject, text }: { readonly subject: string; readonly text: string },
): Promise<void> {
  const user = await findUser(identity.pool, userId);
  if (!user?.isEmailVerified) return;
  const url = identity.publicUrl();
  await send(identity, user.email, {
    subject,
    paragraphs: [text],
    ...(identity.hasPages
      ? { link: { label: 'Your keys', url: `${url}/keys` }, after: [] }
      : { after: [`Your keys: ${url}/api/keys`] }),
  });
}

async function send({ mailer }: Identity, to: string, content: MailContent): Promise<void> {
  if (!isUnreachable(to)) await mailer?.send({ to, ...writeMail(content) });
}

/** What a mail says. */
interface MailContent {
  readonly subject: string;
  readonly paragraphs: readonly string[];
  /** What the reader is to open. */
  readonly link?: { readonly label: string; readonly url: string } | undefined;
  /** What the reader is to copy. */
  readonly code?: string | undefined;
  readonly after: readonly string[];
}

function paragraph(words: string): Html {
  return html`<p style="margin:0 0 16px">${words}</p>`;
}

/** The same mail as text and as HTML. Mail programs need the styles inside the elements; nothing is loaded. */
function writeMail({ subject, paragraphs, link, code, after }: MailContent): {
  readonly subject: string;
  readonly text: string;
  readonly html: string;
} {
  const text = [...paragraphs, link?.url, code, ...after].filter((part) => part !== undefined).join('\n\n');
  const markup = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="color-scheme" content="light dark" />
        <title>${subject}</title>
      </head>
      <body style="margin:0;padding:24px;font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif">
        <div style="max-width:560px;margin:0 auto">
          <h1 style="font-size:22px;margin:0 0 16px">${subject}</h1>
          ${paragraphs.map(paragraph)}
          ${
            link &&
            html`<p style="margin:0 0 16px">
                <a
                  href="${link.url}"
                  style="display:inline-block;padding:10px 18px;border-radius:8px;background:#3b4cca;color:#ffffff;text-decoration:none;font-weight:600"
                  >${link.label}</a
                >
              </p>
              <p style="margin:0 0 16px;font-size:13px;word-break:break-all">${link.url}</p>`
          }
          ${code !== undefined && html`<p style="margin:0 0 16px"><code style="font-size:16px">${code}</code></p>`}
          ${after.map(paragraph)}
        </div>
      </body>
    </html> `;
  return { subject, text, html: String(markup) };
}
