import { expect, test } from 'vitest';
import { retentionShape } from '../../../src/base/config/retention.ts';
import { createDatabase } from '../../support/database.ts';
import { bare, parse, wrongs } from './support.ts';

const retention = (lines: string): string => bare(`[retention]\n${lines}`);

test('a period that is too short is refused, and so is one of what is kept for ever', async () => {
  const { config } = await parse(retention('results_days = 3'));
  expect(config.retention).toEqual({ resultsDays: 3, recordsDays: 400, personalDays: 7 });
  const lines = ['results_days = 0', 'records_days = 399', 'personal_days = 0', 'event_days = 400'];
  expect(await wrongs(retention(lines.join('\n')))).toEqual([
    'retention.results_days: must be a whole number from 1 to 36500',
    'retention.records_days: must be a whole number from 400 to 36500',
    'retention.personal_days: must be a whole number from 1 to 36500',
    'retention.event_days: is not a known key',
  ]);
});

test('the least periods of the configuration are the longest least lives of their kinds in the database', async () => {
  const { asOwner } = await createDatabase();
  const kindsOf: Record<keyof typeof retentionShape, readonly string[]> = {
    results_days: ['call_results', 'callbacks', 'refund_reasons'],
    records_days: ['request_ids', 'operator_tokens', 'api_keys'],
    personal_days: ['mails'],
  };
  for (const [key, kinds] of Object.entries(kindsOf)) {
    const { rows } = await asOwner((owner) =>
      owner.query<{ days: number }>(
        'select extract(epoch from max(tollbook.least_life(kind)))::int / 86400 as days from unnest($1::text[]) kind',
        [kinds],
      ),
    );
    const days = BigInt(rows[0]?.days ?? 0);
    const { [key as keyof typeof retentionShape]: schema } = retentionShape;
    expect([key, schema.safeParse(days).success, schema.safeParse(days - 1n).success]).toEqual([
      key,
      true,
      false,
    ]);
  }
});
