import { expect, test } from 'vitest';
import { retentionShape } from '../../../src/base/config/retention.ts';
import { createDatabase } from '../../support/database.ts';
import { bare, parse, wrongs } from './support.ts';

const retention = (lines: string): string => bare(`[retention]\n${lines}`);

test('a life that is too short is refused, and so is one of what is kept for ever', async () => {
  const { config } = await parse(retention('result_days = 3\nbody_hours = 48'));
  expect(config.retention).toMatchObject({ resultDays: 3, bodyHours: 48, treeHeadDays: 30 });
  const lines = [
    'result_days = 0',
    'tree_head_days = 29',
    'request_id_days = 399',
    'event_days = 400',
    'claim_days = 1',
  ];
  expect(await wrongs(retention(lines.join('\n')))).toEqual([
    'retention.result_days: must be a whole number from 1 to 36500',
    'retention.tree_head_days: must be a whole number from 30 to 36500',
    'retention.request_id_days: must be a whole number from 400 to 36500',
    'retention.event_days: is not a known key',
    'retention.claim_days: is not a known key',
  ]);
});

test('the least lives of the configuration are those of the database', async () => {
  const { asOwner } = await createDatabase();
  const kindsOf: Partial<Record<keyof typeof retentionShape, string>> = {
    result_days: 'call_results',
    tree_head_days: 'tree_heads',
    follow_up_days: 'follow_ups',
    failed_spend_days: 'failed_spends',
    request_id_days: 'request_ids',
    rate_limit_days: 'rate_limits',
    ended_token_days: 'operator_tokens',
    ended_key_days: 'api_keys',
    sign_in_link_days: 'sign_in_links',
    alert_days: 'alert_messages',
  };
  for (const [key, kind] of Object.entries(kindsOf)) {
    const { rows } = await asOwner((owner) =>
      owner.query<{ days: number }>(
        `select extract(epoch from tollbook.least_life($1))::int / 86400 as days`,
        [kind],
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
