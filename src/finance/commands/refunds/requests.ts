import { readHash, readOperator, readOperatorText, readOptions } from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { projectToHead } from '../../../audit/use-cases/projections/project.ts';
import { quoteText } from '../../../payments/terminal/quote-text.ts';
import { moneyCommands } from '../../terminal/money-descriptions.ts';
import { moneyText } from '../../terminal/money-text.ts';
import { askedLine } from '../../terminal/asked-line.ts';
import {
  decideRequest,
  decisionRefusalTexts,
  type RequestDecision,
} from '../../use-cases/refunds/decide-request.ts';
import { listRequests } from '../../use-cases/refunds/list-requests.ts';
import { quoteDigestMeaning } from './record.ts';

const maxRows = 1_000;

export async function list(args: readonly string[]): Promise<ExitCode> {
  readOptions(moneyCommands['refunds requests'], args);
  const requests = await withLedger(async (ledger) => {
    await projectToHead(ledger);
    return listRequests(ledger, maxRows);
  });
  if (requests.length === 0) say('No payer asks for a refund.');
  for (const request of requests) {
    const { quote_digest: digest, quote_source: source, network, payer, asked } = request;
    const decision = asked.state === 'open' ? 'decide it' : 'its refund is due';
    say(
      `${quoteText(digest, source)}: ${decision}\n  ${moneyText(request)} on ${network} of ${payer}\n${askedLine(asked)}`,
    );
  }
  return exitCodes.done;
}

export async function grant(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(moneyCommands['refunds grant'], args);
  const quoteDigest = readHash(values['quote-digest'], quoteDigestMeaning);
  return decide({ kind: 'grant', quoteDigest, operator: readOperator(values.by) }, 'granted: it is due');
}

export async function decline(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(moneyCommands['refunds decline'], args);
  const quoteDigest = readHash(values['quote-digest'], quoteDigestMeaning);
  const why = readOperatorText(values.why, '--why is your reason, which the payer reads');
  return decide({ kind: 'decline', quoteDigest, why, operator: readOperator(values.by) }, 'declined');
}

async function decide(decision: RequestDecision, done: string): Promise<ExitCode> {
  const answer = await withLedger((ledger) => decideRequest(ledger, decision));
  if (answer.kind === 'decided') say(`quote ${decision.quoteDigest}: the refund is ${done}.`);
  else fail(`quote ${decision.quoteDigest}: ${decisionRefusalTexts[answer.code]}. Nothing was recorded.`);
  return answer.kind === 'decided' ? exitCodes.done : exitCodes.notDone;
}
