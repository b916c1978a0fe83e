import { describe, expect, test } from 'vitest';
import { ask, freeModel } from '../../support/chat-gateway.ts';
import {
  goodPassword,
  type IdentityGateway,
  signIn,
  signInByWallet,
  signUp,
} from '../../support/identity.ts';
import { formsIn, postForm, sendForm, startSite } from '../../support/site.ts';
const email = 'ada@example.org';
async function keyCount({ database }: IdentityGateway): Promise<number> {
  const { rows } = await database.pool.query<{ n: number }>(
    'select count(*)::int as n from tollbook.api_key',
  );
  return rows[0]?.n ?? 0;
}

describe('the form of a new key', () => {
  test('that is sent twice, also simultaneously and to two gateways, makes one key and shows it both times', async () => {
    const gateway = await startSite();
    const other = await startSite({ database: gateway.database });
    const browser = gateway.browser();
    await signInByWallet(browser);
    const elsewhere = other.browser();
    for (const [name, value] of browser.cookies) elsewhere.cookies.set(name, value);
    const [form] = formsIn((await browser.get('/keys/new')).text).filter(
      ({ action }) => action === '/keys/new',
    );
    const fields = { ...form?.fields, name: 'one' };
    const answers = await Promise.all([
      postForm(browser, '/keys/new', fields),
      postForm(browser, '/keys/new', fields),
      postForm(elsewhere, '/keys/new', fields),
    ]);
    const keys = answers.map(({ text }) => /sk-net-\w{39}/.exec(text)?.[0]);
    expect(new Set(keys).size).toBe(1);
    expect(keys[0]).toBeDefined();
    expect(await keyCount(gateway)).toBe(1);
    await gateway.database.moveClock(700);
    // its answer tells the gateway the time
    await browser.post('/api/keys', { name: 'two' });
    const late = await postForm(browser, '/keys/new', fields);
    expect(late.status).toBe(409);
    expect(late.text).not.toMatch(/sk-net-\w{39}/);
    expect((await sendForm(browser, '/keys/new', { name: 'three' })).status).toBe(201);
    expect(await keyCount(gateway)).toBe(3);
  });

  test('whose session has ended makes no key, and after the sign-in what was typed is there again', async () => {
    const gateway = await startSite();
    const browser = gateway.browser();
    await signUp(gateway, browser, email);
    await signIn(browser, email);
    const { text } = await browser.get('/keys/new');
    const [form] = formsIn(text).filter(({ action }) => action === '/keys/new');
    await browser.post('/api/auth/sign-out');
    const typed = { name: 'Ada’s <laptop>', cap: '2.50', budget: '1', period: 'day', expires: '2099-12-31' };
    const sent = await postForm(browser, '/keys/new', { ...form?.fields, ...typed });
    const toSignIn = sent.headers.get('location') ?? '';
    expect(toSignIn).toMatch(/^\/sign-in\?next=.*notice=session_over$/);
    const signedIn = await sendForm(browser, toSignIn, { email, password: goodPassword });
    const back = signedIn.headers.get('location') ?? '';
    const again = await browser.get(back);
    for (const part of [
      'value="Ada’s &#60;laptop&#62;"',
      'value="2.50"',
      'value="day" selected',
      'value="2099-12-31"',
    ])
      expect(again.text.replaceAll(/\s+/g, ' ')).toContain(part);
    expect(await keyCount(gateway)).toBe(0);
    // the old token belongs to the old session: also in a second tab that was open all the time
    const stale = await postForm(browser, '/keys/new', { ...form?.fields, ...typed });
    expect(stale.headers.get('location')).toMatch(/^\/keys\/new\?name=.*notice=form_too_old$/);
    expect((await sendForm(browser, back, typed)).status).toBe(201);
  });

  test.each([
    [{ name: '' }, 'A key needs a name'],
    [{ name: 'a\u202eb' }, 'A key needs a name'],
    [{ name: 'x', cap: '-1' }, 'An amount above zero'],
    [{ name: 'x', cap: '0' }, 'An amount above zero'],
    [{ name: 'x', budget: '1e9' }, 'An amount above zero'],

    [{ name: 'x', expires: '2001-01-01' }, 'not a day to come'],
    [{ name: 'x', expires: 'never' }, 'not a day to come'],
  ])('with %j makes no key, says why, and keeps what was typed', async (typed, why) => {
    const gateway = await startSite();
    const browser = gateway.browser();
    await signInByWallet(browser);
    const { status, text } = await sendForm(browser, '/keys/new', { model: 'vendor/large', ...typed });
    expect(status).toBe(422);
    expect(text).toContain(why);
    expect(text).toMatch(/value="vendor\/large"\s+checked/);
    expect(await keyCount(gateway)).toBe(0);
  });
});

test('the keys, requests and receipts of others look like ones that do not exist, and stay unchanged', async () => {
  const gateway = await startSite();
  const [owner, stranger] = [gateway.browser(), gateway.browser('198.51.100.1')];
  for (const browser of [owner, stranger]) await signInByWallet(browser);
  const { json } = await owner.post('/api/keys', { name: 'mine' });
  expect((await stranger.get(`/keys/${json.id}/revoke`)).status).toBe(404);
  const [form] = formsIn((await stranger.get('/keys/new')).text).filter(
    ({ action }) => action === '/keys/new',
  );
  const revoked = await postForm(stranger, `/keys/${json.id}/revoke`, { form: form?.fields['form'] ?? '' });
  expect(revoked.status).toBe(404);
  expect((await stranger.get(`/credit/receipts/0x${'1'.repeat(64)}`)).status).toBe(404);
  expect((await owner.get('/keys')).text).toContain('Revoke mine');
  const { headers } = await owner.post('/v1/chat/completions', ask('Hello', freeModel));
  const request = `/usage/generation?id=${headers.get('x-request-id')}`;
  expect((await stranger.get(request)).status).toBe(404);
  expect((await owner.get(request)).text).toContain(freeModel);
});

test('every page of a user leads a visitor to the sign-in, and then to that page', async () => {
  const gateway = await startSite();
  for (const path of [
    '/keys',
    '/keys/new',
    '/usage',
    '/usage/requests',
    '/usage/generation?id=1',
    '/credit',
    '/account',
  ]) {
    const { status, headers } = await gateway.browser().get(path);
    expect([status, headers.get('location')]).toEqual([
      303,
      `/sign-in?next=${encodeURIComponent(path)}&notice=session_required`,
    ]);
  }
});
