import { expect, test } from 'vitest';
import { type Browser, signInByWallet } from '../../support/identity.ts';
import { startSite } from '../../support/site.ts';

const address = '203.0.113.7';

async function statusesOf(times: number, ask: () => Promise<{ readonly status: number }>): Promise<number[]> {
  const statuses = [];
  for (let count = 0; count < times; count++) statuses.push((await ask()).status);
  return statuses;
}

const unknownKey = (browser: Browser) => browser.request('DELETE', '/api/keys/77');

test('a signed-in user has a budget for the session: neighbours at the same address neither spend it nor share it', async () => {
  const gateway = await startSite({ tables: '[limits]\nrequests_per_minute = 4' });
  const user = gateway.browser('203.0.113.8');
  expect((await signInByWallet(user)).status).toBe(200);
  const neighbour = gateway.browser(address);
  const moved = { 'x-forwarded-for': address };
  expect(await statusesOf(5, () => neighbour.post('/api/siwe/verify', { x: 1 }))).toEqual([
    400, 400, 400, 400, 429,
  ]);
  expect(await statusesOf(5, () => user.request('DELETE', '/api/keys/77', undefined, moved))).toEqual([
    404, 404, 404, 404, 429,
  ]);
  expect((await user.get('/api/keys', moved)).status).toBe(200);
});

test('a cookie that this gateway has not signed names no budget: it counts for the address', async () => {
  const gateway = await startSite({ tables: '[limits]\nrequests_per_minute = 2' });
  const browser = gateway.browser(address);
  let made = 0;
  const planted = () => {
    browser.cookies.set('tollbook.session_token', `${'a'.repeat(31)}${made++}.${'b'.repeat(43)}=`);
    return unknownKey(browser);
  };
  expect(await statusesOf(3, planted)).toEqual([401, 401, 429]);
});
