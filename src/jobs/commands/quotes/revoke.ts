import { revokeQuotes } from '../../use-cases/revoke-quotes.ts';
import { parseInstant } from '../../../base/values/period.ts';
import { ArgumentError, readOperator, readOptions } from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';
import { jobCommands } from '../../terminal/descriptions.ts';

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(jobCommands['quotes revoke'], args);
  const beforeMs = values.before === undefined ? undefined : parseInstant(values.before);
  if (beforeMs === undefined)
    throw new ArgumentError(
      '--before is a time, such as 2026-11-20T06:30:00Z: quotes issued before it are revoked',
    );
  const request = { beforeSecs: Math.ceil(beforeMs / 1_000), operator: readOperator(values.by) };
  const result = await withLedger((ledger) => revokeQuotes(ledger, request));
  switch (result.kind) {
    case 'revoked':
      say(`No payment is started any more on a quote that was issued before ${values.before}.`);
      return exitCodes.done;
    case 'revoked_before':
      fail(
        `Quotes were revoked up to ${new Date(result.beforeSecs * 1_000).toISOString()} already: nothing changes.`,
      );
      return exitCodes.notDone;
    case 'in_future':
      fail(
        'That time is in the future: quotes that do not exist yet cannot be revoked. Nothing was changed.',
      );
      return exitCodes.notDone;
  }
}
