import { type EndRefusal, endRefund } from '../../use-cases/refunds/end-refund.ts';
import type { RefundOf } from '../../use-cases/refunds/send-refund.ts';
import {
  ArgumentError,
  readHash,
  readOperator,
  readOperatorText,
  readOptions,
} from '../../../base/terminal/arguments.ts';
import type { ExitCode } from '../../../base/terminal/exit-codes.ts';
import { type ChainSources, readChainSources, recordEach } from '../../terminal/record-transfer.ts';
import { paymentMeaning, quoteDigestMeaning, readBatch } from './record.ts';
import { moneyCommands } from '../../terminal/money-descriptions.ts';

const messages: Readonly<Record<EndRefusal, string>> = {
  not_started: 'no refund of that payment is under way',
  landed: 'its transaction is in a block, so it has moved money: record it with `tollbook refunds record`',
  pending: 'it may still land: its transaction waits for a block, or its nonce is not spent in a final one',
  look_alike:
    'transfers of as much to the payer are on the chain that nothing has claimed: if one is this refund, record it with `tollbook refunds record`',
  unproven:
    "the chain does not prove that it cannot land: if you know that it was not sent, say how, with --why 'TEXT'",
  said_before: 'that operator has said before that it was not sent: another operator has to say so too',
  superseded: 'another command was recorded meanwhile: try again',
  chain_unavailable: 'the chain could not be asked',
};

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { refunds, why, operator, sources } = await readRequest(args);
  return recordEach(sources, messages, async function* ({ ledger, chains }) {
    for (const of of refunds) {
      const subject = `quote ${of.quoteDigest}`;
      const ended = await endRefund(ledger, { ...of, operator, why }, chains);
      if (ended.kind === 'refused') yield { ...ended, subject };
      else
        yield {
          line:
            ended.kind === 'abandoned'
              ? `${subject}: its refund is given up, and stays due.`
              : `${subject}: it is on record that ${operator} says that it was not sent. Another operator has to say so too.`,
        };
    }
  });
}

interface Request {
  readonly refunds: readonly RefundOf[];
  readonly why: string | undefined;
  readonly operator: string;
  readonly sources: ChainSources;
}

async function readRequest(args: readonly string[]): Promise<Request> {
  const { values } = readOptions(moneyCommands['refunds abandon'], args);
  const { 'quote-digest': digest, payment: nonce } = values;
  if ((values.batch === undefined) === (digest === undefined && nonce === undefined))
    throw new ArgumentError('name the refunds by --batch FILE, or one by --quote-digest and --payment');
  const refunds: RefundOf[] = [];
  if (values.batch !== undefined)
    for (const one of (await readBatch(values.batch)).refunds)
      refunds.push({ quoteDigest: one.quote_digest, paymentNonce: one.payment_nonce });
  else
    refunds.push({
      quoteDigest: readHash(digest, quoteDigestMeaning),
      paymentNonce: readHash(nonce, paymentMeaning),
    });
  const why =
    values.why === undefined
      ? undefined
      : readOperatorText(values.why, '--why is how you know that it was not sent');
  const sources = readChainSources(values.config, values.rpc);
  return { refunds, why, operator: readOperator(values.by), sources };
}
