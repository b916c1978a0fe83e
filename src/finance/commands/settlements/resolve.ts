import {
  type OperatorResolution,
  type OperatorResolutionResult,
  resolveSettlementByOperator,
} from '../../../payments/use-cases/resolve-settlement-by-operator.ts';
import { closeChains, openChains, readConfig } from '../../../audit/terminal/chains.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import {
  ArgumentError,
  readHash,
  readOperator,
  readOperatorText,
  readOptions,
} from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { notDone, say } from '../../../base/terminal/terminal.ts';
import { moneyCommands } from '../../terminal/money-descriptions.ts';

const messages: Readonly<Record<Exclude<OperatorResolutionResult['kind'], 'recorded'>, string>> = {
  not_open: 'no settlement of that quote is open: `tollbook settlements` lists those that are',
  not_expired:
    'its authorization has not expired, so the money can still move: try again when it has, if it is still listed',
  contradicted: 'the chain shows the opposite; nothing was recorded',
  chain_unavailable: 'the chain could not be reached; nothing was recorded',
  log_unknown:
    'say which log of the transaction is the transfer, with --log-index: either no RPC of its network is known, and a configuration could be named with --config, or the transaction has several transfers that it may be',
  transfer_claimed: 'that transaction paid for something else; nothing was recorded',
  superseded: 'another decision was recorded meanwhile; check the settlement again',
};

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(moneyCommands['settlements resolve'], args);
  const digest = readHash(positionals[0], 'name the quote of the settlement');
  if ((values.paid === undefined) !== values.unpaid)
    throw new ArgumentError('give either --paid TRANSACTION or --unpaid');
  const transaction =
    values.paid === undefined ? undefined : readHash(values.paid, '--paid is a transaction');
  const logIndex = values['log-index'];
  if (logIndex !== undefined && (transaction === undefined || !/^\d{1,9}$/.test(logIndex)))
    throw new ArgumentError('--log-index is the index in its block of the log that --paid means');
  const evidence = readOperatorText(values.evidence, '--evidence is the source of your decision');
  // no default: a decision about money names the operator who made it
  const operator = readOperator(values.by ?? '');
  const chains = openChains(values.config === undefined ? undefined : await readConfig(values.config));
  const resolution: OperatorResolution = {
    result:
      transaction === undefined
        ? { kind: 'unpaid' }
        : { kind: 'paid', transaction, logIndex: logIndex === undefined ? undefined : Number(logIndex) },
    evidence,
    operator,
  };
  try {
    const { kind } = await withLedger((ledger) =>
      resolveSettlementByOperator(ledger, digest, resolution, (network) => chains.get(network)),
    );
    if (kind !== 'recorded') return notDone(messages[kind]);
    const isPaid = resolution.result.kind === 'paid';
    say(isPaid ? 'Recorded as paid; its call is released to the runner.' : 'Recorded as not paid.');
    return exitCodes.done;
  } finally {
    await closeChains(chains);
  }
}
