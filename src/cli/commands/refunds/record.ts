import { parseArgs } from 'node:util';
import { type RefundOrder, recordRefund, type RefundRefusal } from '../../../refunds/record-refund.ts';
import { isHex32 } from '../../../domain/values/primitives.ts';
import { closeChains, openChains, readConfig } from '../../chains.ts';
import { chainMessages } from '../../chain-messages.ts';
import { withLedger } from '../../ledger.ts';
import { moneyText } from '../../money-text.ts';
import { ArgumentError, readOperator, readRpcUrls, requireChains } from '../../arguments.ts';
import { fail, say } from '../../terminal.ts';

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

/** Exit code 0 also where the refund was recorded before. */
export async function run(args: readonly string[]): Promise<number> {
  const request = readRequest(args);
  const config = request.config === undefined ? undefined : await readConfig(request.config);
  const chains = openChains(config, request.rpcUrls);
  try {
    const answer = await withLedger((ledger) => recordRefund(ledger, request.order, chains));
    if (answer.kind === 'refused') {
      fail(messages[answer.code] + (answer.detail === undefined ? '' : ` (${answer.detail})`));
      return 1;
    }
    const money = `${moneyText(answer.payment)} to ${answer.payment.payer}`;
    say(answer.kind === 'recorded' ? `Refunded: ${money}.` : `Recorded before: ${money}.`);
    return 0;
  } finally {
    await closeChains(chains);
  }
}

interface RefundRequest {
  readonly order: RefundOrder;
  readonly config: string | undefined;
  readonly rpcUrls: ReadonlyMap<string, string>;
}

function readRequest(args: readonly string[]): RefundRequest {
  const { values } = parseArgs({
    args: [...args],
    options: {
      'quote-digest': { type: 'string', default: '' },
      tx: { type: 'string', default: '' },
      payment: { type: 'string' },
      goodwill: { type: 'boolean', default: false },
      by: { type: 'string' },
      config: { type: 'string' },
      rpc: { type: 'string', multiple: true, default: [] },
    },
  });
  const quoteDigest = values['quote-digest'].toLowerCase();
  const transaction = values.tx.toLowerCase();
  const paymentNonce = values.payment?.toLowerCase();
  const operator = readOperator(values.by);
  if (!isHex32(quoteDigest))
    throw new ArgumentError('--quote-digest is the digest of the quote: 0x and 64 hexadecimal digits');
  if (!isHex32(transaction))
    throw new ArgumentError('--tx names the transaction of the refund: 0x and 64 hexadecimal digits');
  if (paymentNonce !== undefined && !isHex32(paymentNonce))
    throw new ArgumentError('--payment is the nonce of a payment: 0x and 64 hexadecimal digits');
  const rpcUrls = readRpcUrls(values.rpc);
  requireChains(values.config, rpcUrls);
  const order = { quoteDigest, transaction, paymentNonce, operator, isGoodwill: values.goodwill };
  return { order, config: values.config, rpcUrls };
}
