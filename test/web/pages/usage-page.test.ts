import { expect, test } from 'vitest';
import { findAccountId } from '../../../src/accounts/store/credit.ts';
import { accountNameOf } from '../../../src/accounts/store/identity.ts';
import { fastestMs } from '../../support/fastest.ts';
import { signInByWallet } from '../../support/identity.ts';
import { startSite } from '../../support/site.ts';

test('the page of usage is there in under 100 ms with a million completions', async () => {
  const gateway = await startSite();
  const browser = gateway.browser();
  await signInByWallet(browser);
  const { json } = await browser.get('/api/auth/get-session');
  const accountId = await findAccountId(gateway.database.pool, accountNameOf(json.user.id as string));
  // a hundred days of ten models and forty keys, 25 completions each
  await gateway.database.asOwner((owner) =>
    owner.query(
      `insert into tollbook.usage_day
        (generation, account_id, day, model, key_id, requests, failed, prompt_tokens, completion_tokens, cached_tokens, cost)
      select 1, $1, (now() at time zone 'UTC')::date - day, 'model-' || model, key, 25, 0, 1000, 500, 500, 0
      from generate_series(0, 99) day, generate_series(1, 40) key, generate_series(1, 10) model`,
      [accountId],
    ),
  );
  await gateway.database.asOwner((owner) => owner.query('analyze tollbook.usage_day'));
  const page = async () => {
    const { status, text } = await browser.get('/usage');
    expect(status).toBe(200);
    // thirty days of them
    expect(text).toContain('300,000');
  };
  expect(await fastestMs(100, page)).toBeLessThan(100);
});
