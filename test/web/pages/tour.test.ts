import { expect, test } from 'vitest';
import { accountStream, grantCredit } from '../../../src/accounts/use-cases/credit/credit.ts';
import { findAccountId } from '../../../src/accounts/store/credit.ts';
import { accountNameOf } from '../../../src/accounts/store/identity.ts';
import type { Lane } from '../../../src/ledger/store/lane.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { ask, paidModel } from '../../support/chat-gateway.ts';
import { laneOn } from '../../support/credit.ts';
import type { TestDatabase } from '../../support/database.ts';
import { signIn, signUp } from '../../support/identity.ts';
import { registeredPages, startTour } from '../../support/tour.ts';
import { openTab, startSite } from '../../support/site.ts';

const chromium = useBrowser();
const email = 'ada@example.org';

/** A month in which ten models were asked, with and without keys, by names that are not friendly. */
async function addUsage(database: TestDatabase, accountId: number): Promise<void> {
  await database.asOwner((owner) =>
    owner.query(
      `insert into tollbook.usage_day
        (generation, account_id, day, model, key_id, requests, failed, prompt_tokens, completion_tokens, cached_tokens, cost)
      select 1, $1, (now() at time zone 'UTC')::date - day, 'vendor/<b>model-' || model, key, 3 * model + day % 7, day % 3,
        1234 * (day % 9 + 1) * model, 321 * (day % 5 + 1), 100 * (day % 9), 4321 * (day % 11) * model
      from generate_series(0, 29) day, generate_series(0, 3) key, generate_series(1, 10) model where day % 6 < 5`,
      [accountId],
    ),
  );
}

/** The digest of a top-up that was credited. */
async function addTopUp(lane: Lane, accountId: number): Promise<string> {
  const digest = `0x${'5e'.repeat(32)}` as const;
  const paid = { call_id: 1, quote_digest: digest, network: 'eip155:8453', symbol: 'USDC', decimals: 6 };
  const payment = {
    asset: `0x${'a5'.repeat(20)}`,
    payer: `0x${'b6'.repeat(20)}`,
    atoms: '10000000',
  } as const;
  const { outcome } = await lane.appendCredit({
    stream: accountStream(accountId),
    events: [
      {
        type: 'credit_topped_up',
        data: { ...paid, ...payment, account_id: accountId, amount_micros: '10000000' },
      },
    ],
    credit: { op: 'top_up', accountId, amountMicros: 10_000_000n, requestId: 'top-up:1' },
  });
  expect(outcome).toBe('ok');
  return digest;
}

/** More requests than one page has, of all ends. */
async function addRequests(database: TestDatabase, accountId: number): Promise<void> {
  await database.asOwner((owner) =>
    owner.query(
      `insert into tollbook.completion (generation, account_id, seq, at, key_id, prompt_tokens, completion_tokens, cached_tokens, cost,
        chat_id, status, model)
      select 1, $1, 1000000 + n, now() - (200 - n) * interval '47 minutes', n % 4, case when ended then 1234 * (n % 50) end,
        case when ended then 321 * (n % 9) end, case when ended then 0 end, case when ended then 4321 * (n % 50) end,
        gen_random_uuid(), status, 'vendor/<b>model-' || n % 3
      from generate_series(1, 120) n
      cross join lateral (select (array['completed', 'cut', 'client_left', 'recovered', 'failed', 'running'])[n % 6 + 1] as status) one
      cross join lateral (select status not in ('failed', 'running') as ended) two`,
      [accountId],
    ),
  );
}

function daysAgo(days: number): string {
  return new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
}

/** A name for the picture of a page: its path, and of its query the values. */
function nameOf(where: string): string {
  return where.replace(/id=[0-9a-f-]{36}|0x[0-9a-f]{64}/, '').replaceAll(/[^\w-]+/g, '-');
}

test.skipIf(!hasBrowser)(
  'axe finds nothing on any page in light and dark, none is wider than a phone, over 100 kB or asks another origin',
  async () => {
    const gateway = await startSite({
      identity:
        '[[identity.providers]]\nname = "github"\nissuer = "github"\nclient_id = "x"\nclient_secret = "env:SECRET"',
      env: { SECRET: 'x' },
    });
    const tab = await openTab(chromium, gateway);
    const { page } = tab;
    const tour = startTour(tab);
    for (const where of [
      '/',
      '/try',
      '/sign-in',
      '/sign-up',
      '/sign-up/sent?email=ada@example.org',
      '/forgot-password',
      '/forgot-password/sent',
      '/reset-password?token=abc',
    ]) {
      await tour.open(where, `visitor${where.replace(/\?.*/, '').replaceAll('/', '-')}`);
    }
    const person = gateway.browser();
    await signUp(gateway, person, email);
    await signIn(person, email);
    await signIn(gateway.browser('203.0.113.7'), email);
    const [name = '', value = ''] = [...person.cookies].find(([one]) => one.endsWith('session_token')) ?? [];
    await tab.context.addCookies([{ name, value, url: gateway.url }]);
    for (const where of ['/', '/try', '/keys', '/usage', '/usage/requests', '/credit']) {
      await tour.open(where, `new${where.replaceAll('/', '-')}`);
    }
    const userId = (await person.get('/api/auth/get-session')).json.user.id as string;
    const accountId = (await findAccountId(gateway.database.pool, accountNameOf(userId))) ?? 0;
    const lane = laneOn(gateway.database);
    for (const micros of [25_000_000n, 1_234_567n, 890n])
      await grantCredit({ ...gateway.database, lane }, accountId, micros);
    const topUp = await addTopUp(lane, accountId);
    await person.post('/api/keys', {
      name: 'The website’s assistant',
      cap: '50',
      budget: { amount: '10', period: 'month' },
    });
    await person.post('/api/keys', { name: 'x'.repeat(64), expires_at: '2099-01-01T00:00:00Z' });
    await person.request('DELETE', '/api/keys/1');
    await person.post('/api/keys', { name: 'Nightly report' });
    const answer = await person.post('/v1/chat/completions', ask('Hello', paidModel));
    const request = `/usage/generation?id=${answer.headers.get('x-request-id')}`;
    await addUsage(gateway.database, accountId);
    await addRequests(gateway.database, accountId);
    for (const where of [
      '/',
      '/usage',
      '/usage?from=2026-02-30',
      '/usage/requests',
      '/usage/requests?key_id=9',
      '/usage/requests?from=2026-02-30',
      request,
      '/usage/generation?id=unknown',
      '/keys',
      '/keys/new?name=My+laptop&cap=5',
      '/keys/3/revoke',
      '/keys/99/revoke',
      '/credit',
      `/credit/receipts/${topUp}`,
      '/account',
    ]) {
      await tour.open(where, `user${nameOf(where)}`);
    }
    await tab.open('/try');
    for (const text of ['words:40', 'fault:cut_after_first_token ?', 'fault:status_500', 'مرحبا']) {
      await page.getByLabel('Your message').fill(text);
      await page.getByRole('button', { name: 'Send' }).click();
      await page.getByRole('button', { name: 'New conversation' }).waitFor();
    }
    await page.locator('.turn:last-child a').waitFor();
    await tour.look('user-try-answered');
    await tab.open('/try');
    await page.getByLabel('Your message').fill('Without the module of the page');
    await page.evaluate("document.querySelector('[data-try] form').submit()");
    await page.getByText('tokens in').waitFor();
    await tour.look('user-try-plain');
    await tab.open('/keys/new?name=My+laptop&cap=five');
    await page.getByRole('button', { name: 'Make the key' }).click();
    await page.getByText('An amount above zero').waitFor();
    expect(await page.getByLabel('Name').inputValue()).toBe('My laptop');
    await tour.look('user-keys-refused');
    await page.getByLabel('Spending limit in all').fill('5');
    await page.getByRole('button', { name: 'Make the key' }).click();
    await page.getByRole('heading', { name: 'Your new key' }).waitFor();
    await tour.look('user-keys-made');
    expect(tour.unseen(await registeredPages('GET'))).toEqual([]);
    const plain = await openTab(chromium, gateway, { javaScriptEnabled: false });
    await plain.context.addCookies([{ name, value, url: gateway.url }]);
    await plain.open('/try?model=vendor%2Flarge');
    await plain.page.getByLabel('Your message').fill('Hello');
    await plain.page.getByRole('button', { name: 'Send' }).click();
    await plain.page.getByText('tokens in').waitFor();
    await plain.open('/usage/requests');
    await plain.page.getByLabel('Model').selectOption('vendor/large');
    await plain.page.getByRole('button', { name: 'Show' }).click();
    await plain.page.getByRole('cell', { name: 'vendor/large' }).first().waitFor();
    await plain.open('/usage/requests?model=vendor/<b>model-1&key_id=1');
    expect(await plain.page.locator('tbody tr').count()).toBe(10);
    await plain.open('/usage/requests');
    await plain.page.getByRole('link', { name: 'Older requests' }).click();
    await plain.page.getByRole('link', { name: 'The newest' }).waitFor();
    await plain.page.getByRole('link', { name: 'Older requests' }).click();
    await plain.page.getByText('Download as CSV').waitFor();
    await plain.open('/usage?model=vendor%2F%3Cb%3Emodel-3&show=tokens');
    await plain.page.getByText('Other days').click();
    await plain.page.getByLabel('First day').fill(daysAgo(1));
    await plain.page.getByLabel('Last day').fill(daysAgo(0));
    await plain.page.getByRole('button', { name: 'Show' }).click();
    await plain.page.getByText('Only vendor/<b>model-3').waitFor();
    expect(await plain.page.locator('svg .column').count()).toBe(2);
    const [file] = await Promise.all([
      plain.page.waitForEvent('download'),
      plain.page.getByRole('link', { name: 'Download as CSV' }).click(),
    ]);
    expect(file.suggestedFilename()).toBe(`usage-${daysAgo(1)}-${daysAgo(0)}.csv`);
    await plain.page.getByRole('link', { name: 'Last 90 days' }).click();
    await plain.page.getByRole('heading', { name: 'Usage' }).waitFor();
    expect(new URL(plain.page.url()).search).toContain(`from=${daysAgo(89)}&to=${daysAgo(0)}&model=`);
  },
);
