import { expect, test } from 'vitest';
import { withChanges } from '../../../src/base/config/constants.ts';
import { createDatabase } from '../../support/database.ts';
import { bare, parse, wrongs } from './support.ts';

const retention = (lines: string): string => bare(`[retention]\n${lines}`);

test('a period that is too short is refused, and so is one of what is kept for ever', async () => {
  const { config } = await parse(retention('results_days = 3'));
  expect(config.retention).toEqual({ resultsDays: 3, recordsDays: 400, personalDays: 7 });
  const lines = ['results_days = 0', 'event_days = 400'];
  expect(await wrongs(retention(lines.join('\n')))).toEqual([
    'retention.results_days: must be a whole number from 1 to 36500',
    'retention.event_days: is not a known key',
  ]);
});

test('no period is shorter than the least life that the database allows its kinds', async () => {
  const { recordsDays, personalDays } = withChanges({}).retention;
  const { asOwner } = await createDatabase();
  const periods: [number, string[]][] = [
    [1, ['call_results', 'callbacks', 'refund_reasons']],
    [recordsDays, ['request_ids', 'operator_tokens', 'api_keys']],
    [personalDays, ['mails']],
  ];
  for (const [days, kinds] of periods) {
    const { rows } = await asOwner((owner) =>
      owner.query<{ days: number }>(
        'select extract(epoch from max(tollbook.least_life(kind)))::int / 86400 as days from unnest($1::text[]) kind',
        [kinds],
      ),
    );
    expect(rows[0]?.days).toBeLessThanOrEqual(days);
  }
});
