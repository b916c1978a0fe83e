import type pg from 'pg';
import { explanationClasses } from '../../../ledger/rules/explanation-class.ts';
import type { ReportJson } from '../../rules/reconcile/report.ts';
import { explainBreak, type Explanation, findBreak } from '../../use-cases/reconcile/explain-break.ts';
import { newestReports } from '../../../audit/store/reconciliations.ts';
import {
  ArgumentError,
  readOperator,
  readOperatorText,
  readOptions,
} from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { readReport } from '../../terminal/check-period.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { notDone, say } from '../../../base/terminal/terminal.ts';
import { bookCommands } from '../../terminal/book-descriptions.ts';

const messages = {
  unknown:
    'no break of the last stored reconciliations begins so: reconcile again, or name its report with --report',
  unknownInReport: 'no break of the report that --report names begins so',
  ambiguous: 'several breaks begin so: give more of the digits',
} as const;

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(bookCommands['reconcile explain'], args);
  const [beginning = ''] = positionals;
  if (!/^0x[0-9a-f]{8,64}$/.test(beginning))
    throw new ArgumentError(
      'name one break by its id, or the first digits of it: 0x and 8 to 64 hexadecimal digits',
    );
  const explanation: Explanation = {
    as: readClass(values.class),
    note: readOperatorText(values.note, '--note is what you know about it'),
    // no default: the person who explains a break answers for it
    operator: readOperator(values.by ?? ''),
  };
  const given = values.report === undefined ? undefined : [await readReport(values.report)];
  return withLedger(async ({ pool, lane }) => {
    const found = await findBreak(given ?? storedReports(pool), beginning);
    if (found.kind !== 'found')
      return notDone(messages[found.kind === 'unknown' && given ? 'unknownInReport' : found.kind]);
    await explainBreak(lane, found, explanation);
    const { itemClass, breakId } = found;
    say(
      explanation.as === 'open'
        ? `Open again: ${itemClass} ${breakId}.`
        : `Explained: ${itemClass} ${breakId} as ${explanation.as}.`,
    );
    return exitCodes.done;
  });
}

function readClass(text: string | undefined): Explanation['as'] {
  const known = explanationClasses.find((name) => name === text);
  if (known) return known;
  throw new ArgumentError(`--class is one of ${explanationClasses.join(', ')}`);
}

async function* storedReports(pool: pg.Pool): AsyncGenerator<ReportJson> {
  for await (const text of newestReports(pool)) yield JSON.parse(text) as ReportJson;
}
