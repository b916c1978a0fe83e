/** By their tone. */
const texts = {
  good: {
    verified: 'Your address is confirmed. Sign in to begin.',
    password_set: 'Your new password is set, and all other sessions were ended. Sign in with it.',
    password_changed: 'Your password was changed, and all other sessions were ended.',
    signed_out: 'You are signed out.',
    signed_out_everywhere: 'All your sessions were ended, in every browser.',
    session_ended_elsewhere: 'That session was ended.',
    name_changed: 'Your name was changed.',
    provider_linked: 'You can sign in with this provider now.',
    provider_unlinked: 'You can no longer sign in with that provider.',
    wallet_linked: 'You can sign in with this wallet now.',
    wallet_unlinked:
      'That wallet cannot sign in to this account any more. Sessions that it began continue: end them below.',
    factor_added: 'The second factor was added. It opens the console from now on.',
    key_revoked: 'The key was revoked. It is refused from now on.',
    operator_invited: 'The invitation is on its way. Its link is valid for 72 hours, and once.',
    role_changed: 'The role was changed.',
    role_withdrawn: 'The role was withdrawn, and the sessions of that operator were ended.',
    factors_removed: 'The second factors were removed. The next sign-in sets a new one up.',
    call_requeued: 'The call is in the queue again.',
    call_given_up: 'The call was given up. Its refund is due.',
    runner_paused: 'The runner is paused. Its calls wait until it is resumed.',
    runner_resumed: 'The runner gets calls again.',
    break_opened: 'The break is open again. The next reports say so.',
    credit_granted: 'The credit was granted.',
    period_closed: 'The period is closed. Another person reviews it.',
    period_reviewed: 'Ledger and exports match the close. Your review is recorded.',
    period_reopened: 'The period is open again.',
    refund_granted: 'The refund is granted: it is due.',
    refund_declined: 'The request is declined. The payer reads why on the receipt.',
    refund_dropped: 'It is recorded that this refund was not sent. It can be sent again.',
    settlement_resolved: 'The settlement was resolved.',
    transfer_recorded: 'The transfer is recorded. The next reconciliation of its period matches it.',
    reconciled: 'The ledger was compared with the chains, and the report is stored.',
  },
  plain: {
    session_required: 'Sign in to see that page.',
    runner_paused_already: 'The runner was paused already.',
    runner_not_paused: 'The runner was not paused.',
  },
  warn: {
    session_over: 'Your session has ended, so nothing was changed. Sign in: what you typed is kept.',
    form_too_old:
      'This form was opened in another session, or too long ago, so nothing was changed. Check it and send it again.',
    refund_said_not_sent:
      'It is recorded that you say so. Another operator has to say so too: then it can be sent again.',
  },
  bad: {
    provider_refused:
      'The sign-in with that provider did not succeed. Nothing was changed; try again, or use another way.',
    email_not_verified:
      'That provider has not confirmed your e-mail address. Confirm it there, or use another way to sign in.',
    account_not_linked:
      'There is an account with this address already. Sign in to it, then add the provider on the account page.',
    provider_not_linked:
      'That sign-in belongs to another user, or has another e-mail address, so it was not added to your account.',
    user_disabled: 'This account was disabled by the operator.',
    no_receipt: 'That is not the digest of a receipt. It is 0x and 64 digits from 0 to 9 and a to f.',
    wrong_receipt_token: 'That token does not open this receipt. Nothing was changed.',
    link_expired: 'This link is no longer valid: it was used, or it is too old. Ask for another one.',
  },
} as const;

export type Tone = keyof typeof texts;

export type NoticeCode = { [T in Tone]: keyof (typeof texts)[T] }[Tone];

/** The notice at the top of a page, by the code in its address: an address cannot put other words on a page. */
export const notices = Object.fromEntries(
  Object.entries(texts).flatMap(([tone, of]) =>
    Object.entries(of).map(([code, text]) => [code, { tone, text }]),
  ),
) as Readonly<Record<NoticeCode, { readonly tone: Tone; readonly text: string }>>;

export function isNotice(code: string): code is NoticeCode {
  return Object.hasOwn(notices, code);
}
