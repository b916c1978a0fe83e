/** The invariants, each with a name that reports and plants go by. */
export type ViolationKind =
  | 'transfer_without_call'
  | 'call_without_transfer'
  | 'two_calls_for_one_transfer'
  | 'wrong_evidence'
  | 'refused_though_paid'
  | 'accepted_without_call'
  | 'accepted_for_another_request'
  | 'never_answered'
  | 'nonce_used_twice'
  | 'payment_id_used_twice'
  | 'started_though_invalid'
  | 'started_after_its_end'
  | 'binding_broken'
  | 'sales_stopped'
  | 'ledger_flooded'
  | 'body_awaited'
  | 'loss_not_noticed'
  | 'charged_after_halt'
  | 'call_not_finished'
  | 'wrong_work'
  | 'ledger_unsound'
  | 'illegal_transition'
  | 'settlement_left_open'
  | 'delivered_and_refunded'
  | 'refunded_twice'
  | 'refunded_though_unpaid'
  | 'refunded_too_early'
  | 'refund_not_recorded'
  | 'credited_twice'
  | 'not_credited'
  | 'credit_wrong'
  | 'charged_twice'
  | 'charged_though_refused'
  | 'answer_not_charged'
  | 'spend_used_twice'
  | 'payout_wrong'
  | 'gateway_died';

export interface Violation {
  readonly kind: ViolationKind;
  readonly words: string;
}
