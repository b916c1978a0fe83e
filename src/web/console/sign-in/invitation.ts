import { html, type Html } from '../../../base/values/html.ts';
import {
  acceptInvitation,
  type Acceptance,
  readInvitation,
} from '../../../accounts/use-cases/invitations.ts';
import type { Invitation } from '../../../accounts/store/operators.ts';
import { findUserIds, markEmailProven } from '../../../accounts/store/identity.ts';
import { noticeOf, type Refusal, sheetView } from '../../pages/document.ts';
import { pathWith } from '../../pages/own-path.ts';
import { buttonForm, field, form } from '../../pages/elements.ts';
import { problemView } from '../../pages/problem.ts';
import type { Requests } from '../../pages/requests.ts';
import { askAuth, type AuthResult } from '../../pages/sign-in/call.ts';
import { providerButtons } from '../../pages/sign-in/ways.ts';
import type { Answer, View } from '../../pages/visit.ts';
import type { ConsoleSite } from '../visit.ts';
import { type AnyVisit, anyone } from './next.ts';

const path = '/console/invitation';

/** Where an invitation leads: its person signs in, or makes an account, and accepts it. */
export function invitationPages(requests: Requests<ConsoleSite>): void {
  requests.get(path, anyone, async (visit) => invitationView(visit, visit.query.get('token') ?? ''));

  requests.post(path, {}, anyone, async (visit, { fields }) => {
    const token = fields.get('token') ?? '';
    if (!visit.visitor) return { kind: 'redirect', to: pathWith(path, { token }), notice: 'session_over' };
    return accepted(visit, await acceptInvitation(visit.site.ledger, visit.visitor.userId, token), token);
  });

  requests.post(`${path}/account`, { shownAt: path, secrets: ['password'] }, anyone, async (visit, sent) => {
    const token = sent.fields.get('token') ?? '';
    const invitation = await readInvitation(visit.site.ledger, token);
    if (!invitation) return over();
    const { email } = invitation;
    const password = sent.fields.get('password') ?? '';
    const signedUp = await askAuth(visit, '/sign-up/email', { email, password, name: invitation.name });
    if (signedUp.kind === 'refused') return invitationView(visit, token, signedUp);
    const signedIn = await signInNew(visit, email, password);
    if (signedIn.kind === 'refused') return invitationView(visit, token, hasAccount(signedIn));
    return { kind: 'redirect', to: pathWith(path, { token }), cookies: signedIn.cookies };
  });
}

/**
 * Signs in with the password that was just typed. That the link of the invitation was opened proves the address, but only to who
 * knows the account's password: somebody else may have made an account with the address before.
 */
async function signInNew(visit: AnyVisit, email: string, password: string): Promise<AuthResult> {
  const first = await askAuth(visit, '/sign-in/email', { email, password });
  if (first.kind === 'done' || first.code !== 'EMAIL_NOT_VERIFIED') return first;
  const { pool } = visit.site.ledger;
  const [userId] = await findUserIds(pool, email);
  if (userId === undefined) return first;
  await markEmailProven(pool, userId);
  return askAuth(visit, '/sign-in/email', { email, password });
}

function hasAccount(refusal: Refusal & { readonly code: string }): Refusal {
  if (refusal.code !== 'INVALID_EMAIL_OR_PASSWORD') return refusal;
  const text =
    'There is an account with this address already, with another password. Sign in with that one, or set a new one first.';
  return { ...refusal, text };
}

function over(): View {
  return problemView(
    410,
    'This invitation was accepted before, has expired, was replaced, or came from somebody who is no longer an admin. Ask the person who invited you for a new one.',
    { title: 'Not valid any more' },
  );
}

function accepted(visit: AnyVisit, acceptance: Acceptance, token: string): Answer | Promise<Answer> {
  switch (acceptance.kind) {
    case 'granted':
      return { kind: 'redirect', to: '/console' };
    case 'over':
      return over();
    case 'other_user':
      return invitationView(visit, token);
    case 'name_taken':
      return problemView(
        409,
        'This name, or this user, is another operator. Ask for an invitation with another name.',
      );
    case 'last_admin':
      return problemView(409, 'You are the last admin, and would not be one any more. Nothing was changed.');
  }
}

async function invitationView(visit: AnyVisit, token: string, refusal?: Refusal): Promise<View> {
  const invitation = await readInvitation(visit.site.ledger, token);
  if (!invitation) return over();
  const { user } = visit.visitor ?? {};
  const isTheirs = user?.email === invitation.email && user.isEmailVerified;
  const content = html`<p>
      ${invitation.invitedBy} invites <strong>${invitation.email}</strong> to the console of
      ${visit.site.settings.name}, with the role <strong>${invitation.role}</strong>. The ledger will name you
      <strong>${invitation.name}</strong>, for ever.
    </p>
    ${isTheirs ? buttonForm(visit, path, 'Accept', { look: 'wide', values: { token } }) : accountParts(visit, invitation, token)}`;
  return sheetView('Invitation', content, { heading: 'You are invited', refusal });
}

function accountParts(visit: AnyVisit, { email }: Invitation, token: string): Html {
  const { identity } = visit.site;
  const here = pathWith(path, { token });
  return html`${
      visit.visitor &&
      noticeOf({
        tone: 'warn',
        text: `You are signed in as ${visit.visitor.user.email}. Sign in as ${email}.`,
      })
    }
    ${providerButtons(visit, here, '/console/sign-in/provider')}
    <p>
      <a class="button plain wide" href="${pathWith('/console/sign-in', { next: here, email })}"
        >Sign in, if you have an account</a
      >
    </p>
    ${
      identity.mailer &&
      html`<h2>Or make an account</h2>
        ${form(
          visit,
          `${path}/account`,
          html`<input type="hidden" name="token" value="${token}" />
            ${field({ label: 'New password', name: 'password', type: 'password', autocomplete: 'new-password', minLength: 10, maxLength: 128, hint: 'At least 10 characters.' })}
            <button class="wide">Make the account</button>`,
        )}`
    }`;
}
