import { readOptions } from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { readClosed } from '../../terminal/period-choice.ts';
import { periodLines } from '../../terminal/period-text.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';
import { bookCommands } from '../../terminal/book-descriptions.ts';

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(bookCommands['period show'], args);
  return withLedger(async ({ pool }) => {
    const found = await readClosed(pool, positionals);
    if (found.kind === 'none') {
      fail(found.words);
      return exitCodes.notDone;
    }
    const { close, review } = found.closed;
    if (values.json) say(JSON.stringify({ close, review: review ?? null }, undefined, 2));
    else for (const line of periodLines(found.closed)) say(line);
    return exitCodes.done;
  });
}
