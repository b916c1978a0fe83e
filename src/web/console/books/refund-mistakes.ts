import type { EndRefusal } from '../../../finance/use-cases/refunds/end-refund.ts';
import type { RefundRefusal } from '../../../finance/use-cases/refunds/record-refund.ts';
import type { SendRefusal } from '../../../finance/use-cases/refunds/send-refund.ts';

/** Why a wallet is not asked. */
export const sendMistakes: Readonly<Record<SendRefusal, string>> = {
  not_due: 'No refund of this payment is due any more.',
  payment_unproven:
    'Only the facilitator says that this was paid, or an operator, and you gave no reason: no block proves it.',
  payment_not_final:
    'The block of this payment is not final yet, so a reorg may still take the payment back. Try again in a while.',
  not_shown:
    'The chain does not show this payment, so there may be nothing to refund. Pay nothing before the command tollbook verify finds the ledger sound and a reconciliation has explained it.',
  changed:
    'The events are not all those that the log has sealed: somebody has changed, moved or removed some. Pay nothing before the command tollbook verify finds the ledger sound.',
  under_way:
    'This refund is being sent already, by you in another page or by somebody else. Load this page again.',
  not_started: 'No operator is sending this refund now. Load this page again.',
  superseded: 'Something else was recorded of this payment at the same moment. Load this page again.',
  chain_unavailable: 'The chain could not be asked. Nothing was changed; try again.',
};

/** Why a refund is not given up. */
export const endMistakes: Readonly<Record<EndRefusal, string>> = {
  not_started: 'No operator is sending this refund now. Load this page again.',
  landed: 'Its transaction is in a block, so it has moved money: record it. Nothing was changed.',
  pending:
    'Its transaction waits for a block, or its nonce is not spent in a final one, so it may still move money. Nothing was changed.',
  look_alike:
    'A transfer of as much to the payer is on the chain that nothing has claimed: if it is this refund, record it. Nothing was changed.',
  unproven: 'The chain does not prove that it cannot land. Nothing was changed.',
  said_before: 'You have said so before: another operator has to say so too. Nothing was changed.',
  superseded: 'Something else was recorded of this payment at the same moment. Load this page again.',
  chain_unavailable: 'The chain could not be asked. Nothing was changed; try again.',
};

/** Why a refund is not recorded by a transaction. */
export const recordMistakes: Readonly<Record<RefundRefusal, string>> = {
  network_unknown: 'The gateway has no RPC for the network of this payment.',
  wrong_chain: 'The RPC of this network serves another chain.',
  chain_unavailable: 'The chain could not be reached; try again.',
  transaction_unknown: 'The chain does not know this transaction.',
  transaction_failed: 'This transaction failed: it moved nothing.',
  not_final: 'This transaction is not final yet: try again in a while.',
  quote_unknown: 'There is no such quote.',
  payment_unknown: 'This quote has no such payment.',
  not_paid: 'This quote is not paid: there is nothing to refund.',
  payment_unproven:
    'The chain does not show the payment: only a facilitator reported it, or its block was replaced.',
  refunded_before: 'The whole payment was already refunded by other transactions.',
  refund_under_way: 'Another refund of this payment is started, of another amount. It has to end first.',
  too_much: 'This is more than is left of the payment.',
  to_payee: 'This address is a payee of yours: money that goes there is not refunded.',
  delivered:
    'Its call was completed. A refund of goodwill is recorded by the command tollbook refunds record.',
  call_open: 'Its call may still be delivered: give it up first.',
  other_address: 'This transaction does not transfer the token to the payer.',
  other_amount: 'This transaction transfers another amount than what is left of the payment.',
  other_token: 'This transaction transfers another token to the payer.',
  no_transfer: 'This transaction has no such transfer.',
  moved_nothing: 'This transfer is from an address to itself.',
  before_payment: 'This transfer is older than the payment.',
  transfer_claimed: 'This transfer is already recorded for another purpose.',
  superseded: 'Another command was recorded meanwhile; try again.',
};
