import { parseArgs } from 'node:util';
import { type RefundOrder, recordRefund, type RefundRefusal } from '../../../refunds/record-refund.ts';
import { isHex32 } from '../../../domain/values/primitives.ts';
import { chainMessages } from '../../chain-messages.ts';
import { moneyText } from '../../money-text.ts';
import { ArgumentError, readOperator } from '../../arguments.ts';
import {
  type ChainSources,
  readChainSources,
  readTransaction,
  recordTransfer,
  transferOptions,
} from '../../record-transfer.ts';

const messages: Readonly<Record<RefundRefusal, string>> = {
  ...chainMessages,
  quote_unknown: 'there is no quote with that digest',
  payment_unknown: 'that quote has no payment with that nonce',
  payment_ambiguous: 'that quote was paid more than once: name the payment by --payment NONCE',
  not_paid: 'that quote is not paid: there is nothing to refund',
  payment_unproven:
    'only a facilitator reported the payment and the chain does not show it: there may be nothing to refund',
  refunded_before: 'that payment was already refunded by another transaction',
  delivered: 'its call was completed: use --goodwill to record a refund nevertheless',
  call_open: 'its call may still be delivered: use --goodwill to record a refund nevertheless',
  other_address: 'that transaction does not transfer the token to the payer',
  other_amount: 'that transaction transfers another amount to the payer: a refund is the whole payment',
  other_token: 'that transaction transfers another token to the payer',
  no_transfer: 'that transaction has no such transfer',
  moved_nothing: 'that transfer is from the payer to the payer',
  before_payment: 'that transfer is older than the payment',
  transfer_claimed: 'that transfer is already recorded for another purpose',
  superseded: 'another command was recorded meanwhile: try again',
};

export async function run(args: readonly string[]): Promise<number> {
  const { order, sources } = readRequest(args);
  return recordTransfer(sources, messages, async ({ ledger, chains }) => {
    const answer = await recordRefund(ledger, order, chains);
    if (answer.kind === 'refused') return answer;
    const money = `${moneyText(answer.payment)} to ${answer.payment.payer}`;
    return [answer.kind === 'recorded' ? `Refunded: ${money}.` : `Recorded before: ${money}.`];
  });
}

function readRequest(args: readonly string[]): { order: RefundOrder; sources: ChainSources } {
  const { values } = parseArgs({
    args: [...args],
    options: {
      ...transferOptions,
      'quote-digest': { type: 'string', default: '' },
      payment: { type: 'string' },
      goodwill: { type: 'boolean', default: false },
    },
  });
  const quoteDigest = values['quote-digest'].toLowerCase();
  const paymentNonce = values.payment?.toLowerCase();
  const operator = readOperator(values.by);
  if (!isHex32(quoteDigest))
    throw new ArgumentError('--quote-digest is the digest of the quote: 0x and 64 hexadecimal digits');
  const transaction = readTransaction(values.tx, 'refund');
  if (paymentNonce !== undefined && !isHex32(paymentNonce))
    throw new ArgumentError('--payment is the nonce of a payment: 0x and 64 hexadecimal digits');
  return {
    order: { quoteDigest, transaction, paymentNonce, operator, isGoodwill: values.goodwill },
    sources: readChainSources(values.config, values.rpc),
  };
}
