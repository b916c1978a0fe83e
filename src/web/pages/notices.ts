/** The notice at the top of a page, by the code in its address: an address cannot put other words on a page. */
export const notices = {
  verified: { tone: 'good', text: 'Your address is confirmed. Sign in to begin.' },
  password_set: {
    tone: 'good',
    text: 'Your new password is set, and all other sessions were ended. Sign in with it.',
  },
  password_changed: { tone: 'good', text: 'Your password was changed, and all other sessions were ended.' },
  signed_out: { tone: 'good', text: 'You are signed out.' },
  signed_out_everywhere: { tone: 'good', text: 'All your sessions were ended, in every browser.' },
  session_ended_elsewhere: { tone: 'good', text: 'That session was ended.' },
  name_changed: { tone: 'good', text: 'Your name was changed.' },
  provider_linked: { tone: 'good', text: 'You can sign in with this provider now.' },
  provider_unlinked: { tone: 'good', text: 'You can no longer sign in with that provider.' },
  wallet_linked: { tone: 'good', text: 'You can sign in with this wallet now.' },
  wallet_unlinked: {
    tone: 'good',
    text: 'That wallet cannot sign in to this account any more. Sessions that it began continue: end them below.',
  },
  factor_added: { tone: 'good', text: 'The second factor was added. It opens the console from now on.' },
  key_revoked: { tone: 'good', text: 'The key was revoked. It is refused from now on.' },
  session_required: { tone: 'plain', text: 'Sign in to see that page.' },
  session_over: {
    tone: 'warn',
    text: 'Your session has ended, so nothing was changed. Sign in: what you typed is kept.',
  },
  form_too_old: {
    tone: 'warn',
    text: 'This form was opened in another session, or too long ago, so nothing was changed. Check it and send it again.',
  },
  provider_refused: {
    tone: 'bad',
    text: 'The sign-in with that provider did not succeed. Nothing was changed; try again, or use another way.',
  },
  email_not_verified: {
    tone: 'bad',
    text: 'That provider has not confirmed your e-mail address. Confirm it there, or use another way to sign in.',
  },
  account_not_linked: {
    tone: 'bad',
    text: 'There is an account with this address already. Sign in to it, then add the provider on the account page.',
  },
  provider_not_linked: {
    tone: 'bad',
    text: 'That sign-in belongs to another user, or has another e-mail address, so it was not added to your account.',
  },
  user_disabled: { tone: 'bad', text: 'This account was disabled by the operator.' },
  operator_invited: {
    tone: 'good',
    text: 'The invitation is on its way. Its link is valid for 72 hours, and once.',
  },
  role_changed: { tone: 'good', text: 'The role was changed.' },
  role_withdrawn: {
    tone: 'good',
    text: 'The role was withdrawn, and the sessions of that operator were ended.',
  },
  factors_removed: {
    tone: 'good',
    text: 'The second factors were removed. The next sign-in sets a new one up.',
  },
  call_requeued: { tone: 'good', text: 'The call is in the queue again.' },
  call_given_up: { tone: 'good', text: 'The call was given up. Its refund is due.' },
  runner_paused: { tone: 'good', text: 'The runner is paused. Its calls wait until it is resumed.' },
  runner_paused_already: { tone: 'plain', text: 'The runner was paused already.' },
  runner_resumed: { tone: 'good', text: 'The runner gets calls again.' },
  runner_not_paused: { tone: 'plain', text: 'The runner was not paused.' },
  break_explained: { tone: 'good', text: 'Your explanation is recorded, and the next reports carry it.' },
  break_opened: { tone: 'good', text: 'The break is open again. The next reports say so.' },
  credit_granted: { tone: 'good', text: 'The credit was granted.' },
  period_closed: { tone: 'good', text: 'The period is closed. Another person reviews it.' },
  period_reviewed: {
    tone: 'good',
    text: 'Ledger and exports match the close. Your review is recorded.',
  },
  period_reopened: { tone: 'good', text: 'The period is open again.' },
  refund_recorded: { tone: 'good', text: 'The refund is recorded.' },
  refund_dropped: {
    tone: 'good',
    text: 'It is recorded that this refund was not sent. It can be sent again.',
  },
  refund_said_not_sent: {
    tone: 'warn',
    text: 'It is recorded that you say so. Another operator has to say so too: then it can be sent again.',
  },
  settlement_resolved: { tone: 'good', text: 'The settlement was resolved.' },
  no_receipt: {
    tone: 'bad',
    text: 'That is not the digest of a receipt. It is 0x and 64 digits from 0 to 9 and a to f.',
  },
  wrong_receipt_token: { tone: 'bad', text: 'That token does not open this receipt. Nothing was changed.' },
  link_expired: {
    tone: 'bad',
    text: 'This link is no longer valid: it was used, or it is too old. Ask for another one.',
  },
} as const satisfies Readonly<Record<string, { readonly tone: Tone; readonly text: string }>>;

export type Tone = 'good' | 'warn' | 'bad' | 'plain';

export type NoticeCode = keyof typeof notices;

export function isNotice(code: string): code is NoticeCode {
  return Object.hasOwn(notices, code);
}
