import { encode } from 'uqr';
import { describe, expect, test } from 'vitest';
import { invitationUrl, inviteOperator } from '../../../src/accounts/use-cases/invitations.ts';
import { readConsoleEvents } from '../../../src/accounts/use-cases/operators.ts';
import { setUserDisabled } from '../../../src/accounts/use-cases/users.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { browserOf, codeOf, operatorTab, signInOperator, startConsole } from '../../support/console.ts';
import { laneOn } from '../../support/credit.ts';
import { goodPassword, type IdentityGateway, linkIn, signIn, signUp } from '../../support/identity.ts';
import { expectSoundLedger } from '../../support/invariants.ts';
import { formsIn, openTab, postForm, sendForm } from '../../support/site.ts';
import { startTour } from '../../support/tour.ts';

const chromium = useBrowser();

async function invite({ database, url }: IdentityGateway, email = 'ada@example.org', name = 'ada') {
  const ledger = { pool: database.pool, lane: laneOn(database) };
  const invited = await inviteOperator(ledger, {
    name,
    email,
    role: 'admin',
    by: { name: 'root', at: 'command' },
  });
  if (invited.kind !== 'invited') throw new Error(invited.kind);
  return new URL(invitationUrl(url, invited.token));
}

/** The places that a path of rectangles covers, row by row. */
function modulesIn(path: string): string[] {
  return [...path.matchAll(/M(\d+) (\d+)h(\d+)v1h-\3z/g)].flatMap(([, x, y, run]) =>
    Array.from({ length: Number(run) }, (_, at) => `${Number(x) + at},${y}`),
  );
}

async function eventsOf({ database }: IdentityGateway): Promise<string[]> {
  const events = await readConsoleEvents(database, undefined, 100);
  return events.toReversed().map(({ type }) => type);
}

describe.skipIf(!hasBrowser)('a person with a browser', () => {
  test.each([true, false])(
    'accepts an invitation, sets up a second factor, signs out and in again (with JavaScript: %s)',
    async (javaScriptEnabled) => {
      const gateway = await startConsole();
      const tab = await openTab(chromium, gateway, { javaScriptEnabled });
      const { page } = tab;
      const tour = startTour(tab);
      const look = async (name: string): Promise<void> => (javaScriptEnabled ? tour.look(name) : undefined);
      const link = await invite(gateway);
      await page.goto(link.pathname + link.search);
      await look('console-invitation');
      await page.getByLabel('New password').fill(goodPassword);
      await page.getByRole('button', { name: 'Make the account' }).click();
      await page.getByRole('button', { name: 'Accept' }).click();
      await page.getByRole('heading', { name: 'Set up a second factor' }).waitFor();
      await look('console-second-factor');
      const uri =
        (await page.getByRole('link', { name: 'open the authenticator app' }).getAttribute('href')) ?? '';
      expect(uri).toMatch(/^otpauth:\/\/totp\/.*secret=[A-Z2-7]{32}/);
      const drawn = page
        .getByRole('img', { name: 'The secret, for the camera of an authenticator app' })
        .locator('path');
      const dark = encode(uri, { ecc: 'M', border: 4 }).data.flatMap((row, y) =>
        row.flatMap((isDark, x) => (isDark ? [`${x},${y}`] : [])),
      );
      expect(modulesIn((await drawn.getAttribute('d')) ?? '')).toEqual(dark);
      const secret = ((await page.locator('.secret code').textContent()) ?? '').replaceAll(' ', '');
      await page.getByLabel('Code').fill('000000');
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.getByText('This code is not right').waitFor();
      // the form has the same secret again
      expect((await page.locator('.secret code').textContent())?.replaceAll(' ', '')).toBe(secret);
      await page.getByLabel('Code').fill(codeOf(secret));
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.getByRole('heading', { name: 'Recovery codes' }).waitFor();
      const [recovery = ''] = ((await page.locator('pre').textContent()) ?? '').split('\n');
      await look('console-recovery-codes');
      await page.getByRole('link', { name: 'I have kept them' }).click();
      await page.getByRole('heading', { name: 'Nothing needs you' }).waitFor();
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByText('You are signed out').waitFor();
      await look('console-sign-in');
      await page.getByLabel('E-mail').fill('ada@example.org');
      await page.getByLabel('Password').fill(goodPassword);
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.getByRole('heading', { name: 'Second factor' }).waitFor();
      await page.goto('/console/activity');
      expect(new URL(page.url()).pathname).toBe('/console/second-factor');
      // the code that was used to set it up is not taken again, though its time is not over
      await page.getByLabel('Code').fill(recovery);
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.getByRole('heading', { name: 'Activity' }).waitFor();
      expect(await eventsOf(gateway)).toEqual([
        'operator_invited',
        'operator_role_granted',
        'operator_factor_added',
        'operator_signed_in',
        'operator_signed_in',
      ]);
      await gateway.database.asOwner((owner) => expectSoundLedger(gateway.database.db, owner));
    },
  );

  test('who types ? sees the keys, and j and k walk through a table', async () => {
    const gateway = await startConsole();
    const { open, page } = await operatorTab(chromium, gateway, await signInOperator(gateway));
    await open('/console/operators');
    await page.keyboard.press('?');
    await page.getByRole('dialog').getByText('next row of the table').waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('j');
    expect(await page.evaluate("document.activeElement.closest('tr').textContent")).toContain('ada');
  });
});

test('a customer’s session opens no page of the console, and no action', async () => {
  const gateway = await startConsole();
  const browser = gateway.browser();
  await signUp(gateway, browser, 'grace@example.org');
  await signIn(browser, 'grace@example.org');
  for (const path of ['/console', '/console/activity', '/console/operators', '/console/second-factor']) {
    const { status } = await browser.get(path);
    expect([path, status]).toEqual([path, 403]);
  }
  const json = await browser.get('/console', { accept: 'application/json' });
  expect(json.json).toMatchObject({ error: 'forbidden' });
  expect(await eventsOf(gateway)).toEqual([]);
});

test('a password alone opens nothing: neither with a role nor with the console’s cookie of another session', async () => {
  const gateway = await startConsole();
  const operator = await signInOperator(gateway);
  const stolen = browserOf(gateway, operator);
  stolen.cookies.delete('tollbook.console');
  const answer = await stolen.get('/console/activity');
  expect([answer.status, answer.headers.get('location')]).toEqual([
    303,
    '/console/second-factor?next=%2Fconsole%2Factivity',
  ]);
  const other = await signInOperator(gateway, { name: 'eve', role: 'viewer' });
  stolen.cookies.set('tollbook.console', other.cookies.get('tollbook.console') ?? '');
  expect((await stolen.get('/console')).status).toBe(303);
});

test('a code is taken once, and guesses are limited', async () => {
  const gateway = await startConsole();
  const operator = await signInOperator(gateway);
  const browser = browserOf(gateway, operator);
  browser.cookies.delete('tollbook.console');
  const { text } = await browser.get('/console/second-factor');
  const code = codeOf(/<code>([A-Z2-7 ]+)<\/code>/.exec(text)?.[1] ?? '');
  const { fields = {} } = formsIn(text).find(({ action }) => action === '/console/second-factor/new') ?? {};
  const made = await postForm(browser, '/console/second-factor/new', { ...fields, code });
  expect(made.text).toContain('Recovery codes');
  browser.cookies.delete('tollbook.console');
  for (let guess = 0; guess < 3; guess++)
    expect((await sendForm(browser, '/console/second-factor', { code })).status).toBe(403);
  // the first wait is 2 seconds long: a slow machine would let it end
  await gateway.database.pool.query('update identity.factor_guess set guesses = guesses + 20');
  expect((await sendForm(browser, '/console/second-factor', { code })).status).toBe(429);
});

test('an invitation is accepted once, and by the owner of its address alone', async () => {
  const gateway = await startConsole();
  const link = await invite(gateway);
  const browser = gateway.browser();
  await signUp(gateway, browser, 'grace@example.org');
  await signIn(browser, 'grace@example.org');
  const page = link.pathname + link.search;
  const shown = await browser.get(page);
  expect(formsIn(shown.text).map(({ action }) => action)).not.toContain('/console/invitation');
  const { fields } =
    formsIn((await browser.get('/account')).text).find(({ action }) => action === '/sign-out') ?? {};
  const forced = await browser.post(
    '/console/invitation',
    new URLSearchParams({ ...fields, token: link.searchParams.get('token') ?? '' }).toString(),
    { 'content-type': 'application/x-www-form-urlencoded' },
  );
  expect(forced.status).toBe(200);
  expect(await eventsOf(gateway)).toEqual(['operator_invited']);

  const owner = gateway.browser();
  await signUp(gateway, owner, 'ada@example.org');
  await signIn(owner, 'ada@example.org');
  expect((await sendForm(owner, page, {}, { action: '/console/invitation' })).headers.get('location')).toBe(
    '/console',
  );
  expect((await owner.get(page)).status).toBe(410);
});

test('who made an account with the address before does not become the operator by a stranger’s sign-up', async () => {
  const gateway = await startConsole();
  // a stranger, who never confirms the address
  await gateway.browser().post('/api/auth/sign-up/email', {
    email: 'ada@example.org',
    password: 'the password of a stranger',
    name: 'Eve',
  });
  const link = await invite(gateway);
  const answer = await sendForm(
    gateway.browser(),
    link.pathname + link.search,
    { password: goodPassword },
    { action: '/console/invitation/account' },
  );
  expect(answer.text).toContain('There is an account with this address already');
  const { rows } = await gateway.database.pool.query('select email_verified from identity."user"');
  expect(rows).toEqual([{ email_verified: false }]);
});

test('once the user is disabled, an open session of the console is over in every process', async () => {
  const gateway = await startConsole();
  const ada = await signInOperator(gateway);
  const browser = browserOf(gateway, ada);
  expect((await browser.get('/console')).status).toBe(200);
  // by another process
  const ledger = { pool: gateway.database.pool, lane: laneOn(gateway.database) };
  await setUserDisabled(ledger, { who: ada.userId, operator: 'root', isDisabled: true });
  const answer = await browser.get('/console');
  expect([answer.status, answer.headers.get('location')]).toEqual([
    303,
    '/console/sign-in?next=%2Fconsole&notice=session_required',
  ]);
});

test('the console is not there without its table', async () => {
  const gateway = await startConsole({ change: (text) => text.replace('[console]', '') });
  expect((await gateway.browser().get('/console')).status).toBe(404);
});

test('a mail brings the invitation that an admin sends on the page', async () => {
  const gateway = await startConsole();
  const admin = browserOf(gateway, await signInOperator(gateway));
  const typed = { name: 'grace', email: 'grace@example.org', role: 'finance' };
  const sent = await sendForm(admin, '/console/operators', typed, { action: '/console/operators/invite' });
  expect(sent.headers.get('location')).toBe('/console/operators?notice=operator_invited');
  const [mail = ''] = await gateway.mails('grace@example.org');
  const link = new URL(linkIn(mail));
  expect((await gateway.browser().get(link.pathname + link.search)).text).toContain('with the role');
});
