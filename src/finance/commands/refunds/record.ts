import { type RefundBatch, refundBatch } from '../../rules/refund-batch.ts';
import type { Hex } from '../../../base/values/primitives.ts';
import {
  recordBatch,
  type RefundAnswer,
  type RefundOrder,
  recordRefund,
  type RefundRefusal,
} from '../../use-cases/refunds/record-refund.ts';
import {
  ArgumentError,
  readAddress,
  readGivenJson,
  readHash,
  readOperator,
  readOperatorText,
  readOptions,
} from '../../../base/terminal/arguments.ts';
import type { ExitCode } from '../../../base/terminal/exit-codes.ts';
import { chainMessages, costLine } from '../../terminal/cost-text.ts';
import { moneyText } from '../../terminal/money-text.ts';
import {
  type ChainSources,
  readChainSources,
  readTransaction,
  recordEach,
  recordTransfer,
} from '../../terminal/record-transfer.ts';
import { moneyCommands } from '../../terminal/money-descriptions.ts';

const messages: Readonly<Record<RefundRefusal, string>> = {
  ...chainMessages,
  quote_unknown: 'there is no quote with that digest',
  payment_unknown: 'that quote has no payment with that nonce',
  not_paid: 'that quote is not paid: there is nothing to refund',
  payment_unproven:
    'the chain does not show the payment, which only a facilitator reported or whose block was replaced: there may be nothing to refund',
  refunded_before: 'the whole payment was already refunded by other transactions',
  refund_under_way:
    'another refund of that payment is started, which has to be recorded or given up first: `tollbook refunds abandon`',
  amount_of_other_token: '--amount is in another token than the payment, or has more decimals than it',
  too_much: 'that is more than is left of the payment: no refund beyond what was paid is recorded',
  to_payee: 'that address is a payee of yours: money that goes there is not refunded',
  delivered: 'its call was completed: use --goodwill to record a refund nevertheless',
  call_open: 'its call may still be delivered: use --goodwill to record a refund nevertheless',
  other_address:
    'that transaction does not transfer the token to the payer: name another address with --to and --evidence',
  other_amount:
    'that transaction transfers another amount than what is left of the payment: name a part with --amount "1.50 USDC"',
  other_token: 'that transaction transfers another token to that address',
  no_transfer: 'that transaction has no such transfer',
  moved_nothing: 'that transfer is from an address to itself',
  before_payment: 'that transfer is older than the payment',
  transfer_claimed: 'that transfer is already recorded for another purpose',
  other_sender:
    'its refund was started for another transaction: record that one, or give it up first with `tollbook refunds abandon`',
  superseded: 'another command was recorded meanwhile: try again',
};

export async function run(args: readonly string[]): Promise<ExitCode> {
  const request = await readRequest(args);
  if ('batch' in request)
    return recordEach(request.sources, messages, async function* ({ ledger, chains }) {
      // a transaction of a batch has many refunds
      const costs = new Map<string, string>();
      for await (const { refund, answer } of recordBatch(ledger, request, chains)) {
        if (answer.kind !== 'refused' && !costs.has(answer.cost.transaction))
          costs.set(answer.cost.transaction, costLine(answer.cost));
        yield answer.kind === 'refused'
          ? { ...answer, subject: `quote ${refund.quote_digest}` }
          : { line: lineOf(answer) };
      }
      for (const line of costs.values()) yield { line };
    });
  return recordTransfer(request.sources, messages, async ({ ledger, chains }) => {
    const answer = await recordRefund(ledger, request.order, chains);
    return answer.kind === 'refused' ? answer : [lineOf(answer), costLine(answer.cost)];
  });
}

function lineOf({
  kind,
  payment,
  amount,
  to,
  remaining,
}: Exclude<RefundAnswer, { kind: 'refused' }>): string {
  const money = `${moneyText({ ...payment, amount })} to ${to}`;
  const left =
    remaining > 0n ? ` ${moneyText({ ...payment, amount: remaining })} of the payment are left.` : '';
  return `${kind === 'recorded' ? 'Refunded' : 'Recorded before'}: ${money}.${left}`;
}

export const quoteDigestMeaning = '--quote-digest is the digest of the quote';
export const paymentMeaning = '--payment is the nonce of the payment';

type Request = { readonly sources: ChainSources } & (
  | { readonly order: RefundOrder }
  | { readonly batch: RefundBatch; readonly transactions: readonly Hex[]; readonly operator: string }
);

async function readRequest(args: readonly string[]): Promise<Request> {
  const { values } = readOptions(moneyCommands['refunds record'], args);
  const operator = readOperator(values.by);
  if (values.batch !== undefined) {
    const { payment, amount, to, evidence, goodwill } = values;
    if (
      values['quote-digest'] !== undefined ||
      goodwill ||
      [payment, amount, to, evidence].some((one) => one !== undefined)
    )
      throw new ArgumentError(
        '--batch goes with --tx, --by, --rpc and --config only: its file says what each refund is',
      );
    if (values.tx.length === 0)
      throw new ArgumentError('--tx is missing: each transaction that paid refunds of the batch');
    const transactions = values.tx.map((tx) => readTransaction(tx, 'refund'));
    const batch = await readBatch(values.batch);
    return { batch, transactions, operator, sources: readChainSources(values.config, values.rpc) };
  }
  const quoteDigest = readHash(values['quote-digest'], quoteDigestMeaning);
  if (values.tx.length > 1) throw new ArgumentError('--tx is given once: several go with --batch');
  const transaction = readTransaction(values.tx[0] ?? '', 'refund');
  const paymentNonce = values.payment === undefined ? undefined : readHash(values.payment, paymentMeaning);
  const [amount, elsewhere] = [readPart(values.amount), readElsewhere(values)];
  return {
    order: {
      quoteDigest,
      transaction,
      paymentNonce,
      amount,
      elsewhere,
      operator,
      isGoodwill: values.goodwill,
    },
    sources: readChainSources(values.config, values.rpc),
  };
}

function readPart(text: string | undefined): RefundOrder['amount'] {
  if (text === undefined) return undefined;
  const [, decimal, symbol] = /^((?:0|[1-9]\d{0,39})(?:\.\d{1,36})?) (\S{1,32})$/.exec(text) ?? [];
  if (decimal !== undefined && symbol !== undefined && /[1-9]/.test(decimal)) return { decimal, symbol };
  throw new ArgumentError('--amount is a part of the payment above 0, with its token, such as "1.50 USDC"');
}

function readElsewhere({
  to,
  evidence,
}: {
  readonly to?: string | undefined;
  readonly evidence?: string | undefined;
}): RefundOrder['elsewhere'] {
  if ((to === undefined) !== (evidence === undefined))
    throw new ArgumentError(
      "--to and --evidence go together: an address that is not the payer's, and why the money went there",
    );
  if (to === undefined) return undefined;
  return {
    to: readAddress(to, '--to is an address'),
    evidence: readOperatorText(evidence, '--evidence is why the money went there'),
  };
}

export async function readBatch(file: string): Promise<RefundBatch> {
  const parsed = refundBatch.safeParse(await readGivenJson('batch', file));
  if (parsed.success) return parsed.data;
  throw new ArgumentError(`--batch ${file} is not a batch that \`tollbook refunds batch\` wrote`);
}
