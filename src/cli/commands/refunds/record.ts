import { parseArgs } from 'node:util';
import { type RefundOrder, recordRefund, type RefundRefusal } from '../../../refunds/record-refund.ts';
import { isHex32 } from '../../../domain/values/primitives.ts';
import { closeChains, openChains, readConfig } from '../../chains.ts';
import { chainWords } from '../../chain-words.ts';
import { withLedger } from '../../ledger.ts';
import { moneyText } from '../../money-text.ts';
import { ArgumentError, readRpcUrls, requireChains } from '../../network-pairs.ts';
import { operatorNamed, operatorNameRule } from '../../operator-name.ts';
import { fail, say } from '../../terminal.ts';

const words: Readonly<Record<RefundRefusal, string>> = {
  ...chainWords,
  quote_unknown: 'nothing was ever quoted under that digest',
  payment_unknown: 'that quote has no payment of that nonce',
  payment_ambiguous: 'that quote was paid more than once: name the payment by --payment NONCE',
  not_paid: 'that quote is not paid: there is nothing to give back',
  payment_unproven:
    'only a facilitator says that it was paid, and the chain does not: there may be nothing to give back',
  refunded_before: 'that payment was refunded before, by another transaction',
  delivered: 'its call was completed: record it with --goodwill if the money goes back all the same',
  call_open: 'its call may be delivered yet: record it with --goodwill if the money goes back all the same',
  other_address: 'that transaction moves the token to somebody else than the payer',
  other_amount: 'that transaction gives the payer another amount: a refund is the whole payment',
  other_token: 'that transaction gives the payer another token',
  no_transfer: 'that transaction moves nothing of the kind',
  moved_nothing: 'that transfer is from the payer to the payer',
  before_payment: 'that transfer is older than the payment',
  transfer_claimed: 'that transfer is recorded as something else already',
  superseded: 'something else was recorded meanwhile: try again',
};

/** Exit code 0 where it is recorded, now or before; 1 where it is refused, 64 for wrong arguments. */
export async function run(args: readonly string[]): Promise<number> {
  const asked = readAsked(args);
  const config = asked.config === undefined ? undefined : await readConfig(asked.config);
  const chains = openChains(config, asked.rpcUrls);
  try {
    const answer = await withLedger((ledger) => recordRefund(ledger, asked.order, chains));
    if (answer.kind === 'refused') {
      fail(words[answer.code] + (answer.detail === undefined ? '' : ` (${answer.detail})`));
      return 1;
    }
    const money = `${moneyText(answer.payment)} to ${answer.payment.payer}`;
    say(answer.kind === 'recorded' ? `Refunded: ${money}.` : `Recorded before: ${money}.`);
    return 0;
  } finally {
    await closeChains(chains);
  }
}

interface Asked {
  readonly order: RefundOrder;
  readonly config: string | undefined;
  readonly rpcUrls: ReadonlyMap<string, string>;
}

function readAsked(args: readonly string[]): Asked {
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
  const operator = operatorNamed(values.by);
  if (!isHex32(quoteDigest))
    throw new ArgumentError('which payment? --quote-digest is 0x and 64 hexadecimal digits');
  if (!isHex32(transaction))
    throw new ArgumentError('which transaction gave it back? --tx is 0x and 64 hexadecimal digits');
  if (paymentNonce !== undefined && !isHex32(paymentNonce))
    throw new ArgumentError('--payment is the nonce of a payment: 0x and 64 hexadecimal digits');
  if (operator === undefined) throw new ArgumentError(operatorNameRule);
  const rpcUrls = readRpcUrls(values.rpc);
  requireChains(values.config, rpcUrls);
  const order = { quoteDigest, transaction, paymentNonce, operator, isGoodwill: values.goodwill };
  return { order, config: values.config, rpcUrls };
}
