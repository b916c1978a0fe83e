import type { EventType } from './event.ts';

export type PaymentStatus = 'settling' | 'settlement_unknown' | 'settlement_failed' | 'settled';
/** `none`: nothing was enqueued yet, or it was taken back. */
export type CallStatus = 'none' | 'enqueued' | 'delivered' | 'completed' | 'dead_lettered';

/** The streams of model chat, of people and of the operator: each holds the story of one thing, which its name names. */
export type EntityKind = 'chat' | 'account' | 'key' | 'spend' | 'user' | 'session' | 'sweep';
/** Where such a story stands; `none` before its first event. */
export type EntityStep =
  | 'none'
  | 'admitted'
  | 'refused'
  | 'completed'
  | 'failed'
  | 'opened'
  | 'created'
  | 'revoked'
  | 'accepted'
  | 'earned'
  | 'released'
  | 'closed'
  | 'started'
  | 'ended'
  | 'recorded';

/**
 * What an event may follow, and where it leaves what it speaks of.
 * `note`: anywhere. `quote`: the first of its stream. `opens`: a quote's stream in which every payment failed. `payment`
 * and `call`: the payment or call that it names stands at one of `from`. `step`: so does the story whose stream it is in.
 */
export type Transition =
  | { readonly of: 'note' }
  | { readonly of: 'quote' }
  | { readonly of: 'opens'; readonly step: 'verified' | 'passed' | 'started' }
  | { readonly of: 'payment'; readonly from: readonly PaymentStatus[]; readonly to?: PaymentStatus }
  | { readonly of: 'enqueue' }
  | { readonly of: 'call'; readonly from: readonly CallStatus[]; readonly to?: CallStatus }
  | {
      readonly of: 'step';
      readonly story: EntityKind;
      readonly from: readonly EntityStep[];
      readonly to?: EntityStep;
    };

const note = { of: 'note' } as const;
/** A payment said to have failed may land late, so nothing but `settled` and what follows it is past changing. */
const open = ['settling', 'settlement_unknown', 'settlement_failed'] as const;
const undecided = ['settling', 'settlement_unknown'] as const;
const settled = ['settled'] as const;
const waiting = ['enqueued', 'delivered'] as const;
const first = ['none'] as const;
const ofChat = { of: 'step', story: 'chat' } as const;
const ofAccount = { of: 'step', story: 'account', from: ['opened'] } as const;
const ofKey = { of: 'step', story: 'key' } as const;
const ofSpend = { of: 'step', story: 'spend' } as const;
const ofSession = { of: 'step', story: 'session' } as const;

/** The legal transitions, one for each type of event. */
export const transitions: Readonly<Record<EventType, Transition>> = {
  quote_issued: { of: 'quote' },
  payment_verified: { of: 'opens', step: 'verified' },
  auth_passed: { of: 'opens', step: 'passed' },
  settlement_started: { of: 'opens', step: 'started' },
  payer_mismatch: { of: 'payment', from: open },
  settlement_unknown: { of: 'payment', from: open, to: 'settlement_unknown' },
  settlement_failed: { of: 'payment', from: open, to: 'settlement_failed' },
  payment_settled: { of: 'payment', from: open, to: 'settled' },
  settlement_confirmed: { of: 'payment', from: settled },
  settlement_disproved: { of: 'payment', from: settled, to: 'settlement_unknown' },
  settlement_reorged: { of: 'payment', from: settled, to: 'settling' },
  settlement_overdue: { of: 'payment', from: undecided },
  operator_settlement_resolved: { of: 'payment', from: undecided },
  // a settled payment stays so: the money came, and went back
  refunded: { of: 'payment', from: settled },
  enqueued: { of: 'enqueue' },
  delivered: { of: 'call', from: waiting, to: 'delivered' },
  delivery_failed: { of: 'call', from: waiting },
  completed: { of: 'call', from: waiting, to: 'completed' },
  dead_lettered: { of: 'call', from: waiting, to: 'dead_lettered' },
  operator_requeued: { of: 'call', from: ['dead_lettered'], to: 'enqueued' },
  payment_rejected: note,
  request_refused: note,
  auth_denied: note,
  replay_denied: note,
  enqueue_failed: note,
  dry_run_allowed: note,
  dry_run_denied: note,
  dry_run_error: note,
  operator_token_created: note,
  operator_token_revoked: note,
  operator_config_loaded: note,
  operator_config_refused: note,
  operator_runner_paused: note,
  operator_runner_resumed: note,
  operator_models_loaded: note,
  sign_in_refused: note,
  chat_admitted: { ...ofChat, from: first, to: 'admitted' },
  chat_refused: { ...ofChat, from: first, to: 'refused' },
  credit_held: { ...ofChat, from: ['admitted'] },
  // twice where a process was taken for dead, and told the truth afterwards
  chat_completed: { ...ofChat, from: ['admitted', 'completed'], to: 'completed' },
  chat_failed: { ...ofChat, from: ['admitted'], to: 'failed' },
  credit_captured: { ...ofChat, from: ['completed'] },
  credit_released: { ...ofChat, from: ['completed', 'failed'] },
  credit_corrected: { ...ofChat, from: ['completed'] },
  credit_account_opened: { of: 'step', story: 'account', from: first, to: 'opened' },
  credit_granted: ofAccount,
  credit_topped_up: ofAccount,
  credit_reversed: ofAccount,
  credit_expired: ofAccount,
  // a key can be ended between the row that it is and the event that tells of it
  key_created: { ...ofKey, from: ['none', 'revoked'], to: 'created' },
  key_revoked: { ...ofKey, from: ['none', 'created'], to: 'revoked' },
  spend_accepted: { ...ofSpend, from: first, to: 'accepted' },
  // within an exposure an answer begins first
  spend_authorized: { ...ofSpend, from: ['accepted', 'earned'] },
  spend_earned: { ...ofSpend, from: ['accepted'], to: 'earned' },
  spend_released: { ...ofSpend, from: ['accepted'], to: 'released' },
  spend_paid_out: { ...ofSpend, from: ['earned'], to: 'closed' },
  spend_failed: { ...ofSpend, from: ['earned'], to: 'closed' },
  user_created: { of: 'step', story: 'user', from: first, to: 'created' },
  session_started: { ...ofSession, from: first, to: 'started' },
  operator_sweep_recorded: { of: 'step', story: 'sweep', from: first, to: 'recorded' },
  session_ended: { ...ofSession, from: ['started'], to: 'ended' },
};
