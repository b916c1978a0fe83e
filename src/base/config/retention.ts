import type { Report } from './report.ts';
import { type ConfigOf, readTable } from './table.ts';
import { wholeNumber } from './values.ts';

const maxDays = 36_500;
const days = (least: number) => wholeNumber(least, maxDays);

/** How long data outside the ledger is kept. What has no period here has a constant one, in the worker that deletes it. */
export const retentionShape = {
  results_days: days(1)
    .default(30)
    .describe(
      'Results of calls, from when they were stored; callbacks, from when they were named; reasons of refund requests',
    ),
  /** After it the same request id would move credit again: the database keeps request ids for as long, whatever is asked for. */
  records_days: days(400)
    .default(400)
    .describe("Request ids of credit; operators' tokens and API keys after they ended"),
  personal_days: days(1)
    .default(7)
    .describe('People who never confirmed their address; mails left in `mail_dir`'),
} as const;

export type RetentionConfig = ConfigOf<typeof retentionShape>;

/** Reads `[retention]`; undefined after a report. */
export function readRetention(raw: unknown, report: Report): RetentionConfig | undefined {
  return readTable(retentionShape, raw ?? {}, ['retention'], report).whole;
}
