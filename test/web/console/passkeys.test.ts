import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { freePort } from '../../../src/devnet/ports.ts';
import { invitationUrl, inviteOperator } from '../../../src/accounts/use-cases/invitations.ts';
import { readConsoleEvents } from '../../../src/accounts/use-cases/operators.ts';
import { checkPasskey } from '../../../src/accounts/use-cases/passkeys.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { browserOf, codeOf, signInOperator, startConsole } from '../../support/console.ts';
import { laneOn } from '../../support/credit.ts';
import { goodPassword, identitySecret, type IdentityGateway } from '../../support/identity.ts';
import { expectSoundLedger } from '../../support/invariants.ts';
import { openTab, type Tab } from '../../support/site.ts';

const chromium = useBrowser();

/** A console at a name: browsers make no passkeys for IP addresses. */
async function startNamedConsole(): Promise<IdentityGateway & { readonly url: string }> {
  const port = await freePort();
  const url = `http://localhost:${port}`;
  const gateway = await startConsole({ bind: `127.0.0.1:${port}`, top: `public_url = "${url}"` });
  return { ...gateway, url };
}

/** An authenticator of the browser's own, as a laptop has one. */
async function addAuthenticator({ context, page }: Tab): Promise<void> {
  const session = await context.newCDPSession(page);
  await session.send('WebAuthn.enable');
  await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
}

/** Accepts an invitation as ada and makes a passkey the second factor. */
async function joinWithPasskey(gateway: IdentityGateway): Promise<Tab> {
  const ledger = { pool: gateway.database.pool, lane: laneOn(gateway.database) };
  const by = { name: 'root', at: 'command' } as const;
  const invitation = { name: 'ada', email: 'ada@example.org', role: 'admin', by } as const;
  const invited = await inviteOperator(ledger, invitation);
  if (invited.kind !== 'invited') throw new Error(invited.kind);
  const tab = await openTab(chromium, gateway);
  await addAuthenticator(tab);
  const { page } = tab;
  await page.goto(invitationUrl(gateway.url, invited.token));
  await page.getByLabel('New password').fill(goodPassword);
  await page.getByRole('button', { name: 'Make the account' }).click();
  await page.getByRole('button', { name: 'Accept' }).click();
  await page.getByRole('heading', { name: 'Set up a second factor' }).waitFor();
  await tab.check();
  await page.getByRole('button', { name: 'Use a passkey' }).click();
  await page.getByRole('heading', { name: 'Recovery codes' }).waitFor();
  await page.getByRole('link', { name: 'I have kept them' }).click();
  await page.getByRole('heading', { name: 'Nothing needs you' }).waitFor();
  return tab;
}

async function signOutAndIn(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByText('You are signed out').waitFor();
  await page.getByLabel('E-mail').fill('ada@example.org');
  await page.getByLabel('Password').fill(goodPassword);
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByRole('heading', { name: 'Second factor' }).waitFor();
}

describe.skipIf(!hasBrowser)('a passkey', () => {
  test('opens the console as the first second factor, and others are added to it', async () => {
    const gateway = await startNamedConsole();
    const { page, check } = await joinWithPasskey(gateway);
    await signOutAndIn(page);
    await check();
    await page.getByRole('button', { name: 'Use your passkey' }).click();
    await page.getByRole('heading', { name: 'Nothing needs you' }).waitFor();

    await page.getByRole('link', { name: 'ada' }).click();
    await page.getByRole('heading', { name: 'Your second factors' }).waitFor();
    await check();
    // this authenticator has one for ada already
    await page.getByRole('button', { name: 'Use a passkey' }).click();
    await page.getByText('has a passkey for you already').waitFor();
    const secret = ((await page.locator('.secret code').textContent()) ?? '').replaceAll(' ', '');
    await page.getByLabel('Code').fill(codeOf(secret));
    await page.getByRole('button', { name: 'Add the app' }).click();
    await page.getByText('The second factor was added').waitFor();
    expect(await page.locator('tbody tr').count()).toBe(2);
    const { database } = gateway;
    const events = await readConsoleEvents(database, undefined, 100);
    expect(
      events.toReversed().map(({ type, data }) => [type, 'factor' in data ? data.factor : undefined]),
    ).toEqual([
      ['operator_invited', undefined],
      ['operator_role_granted', undefined],
      ['operator_factor_added', 'passkey'],
      ['operator_signed_in', 'passkey'],
      ['operator_signed_in', 'passkey'],
      ['operator_factor_added', 'totp'],
    ]);
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test('is taken once for each question, in time, for the session that was asked, and only as its authenticator signed it', async () => {
    const gateway = await startNamedConsole();
    const { page } = await joinWithPasskey(gateway);
    await signOutAndIn(page);
    const sent = page.waitForRequest((request) => request.url().endsWith('/console/second-factor/passkey'));
    await page.route('**/console/second-factor/passkey', (route) => route.abort());
    await page.getByRole('button', { name: 'Use your passkey' }).click();
    const fields = new URLSearchParams((await sent).postData() ?? '');
    const answer = {
      sealed: fields.get('sealed') ?? '',
      credentialId: fields.get('credential') ?? '',
      response: fields.get('response') ?? '',
    };
    const { pool } = gateway.database;
    const { rows } = await pool.query<{ userId: string; sessionId: string }>(
      `select user_id as "userId", session.id as "sessionId" from identity.session order by created_at desc limit 1`,
    );
    const asked = { name: 'ada', ...(rows[0] ?? { userId: '', sessionId: '' }) };
    const check = (
      changed: Partial<typeof answer & typeof asked> = {},
      { url = gateway.url, late = 0 } = {},
    ): Promise<boolean> =>
      checkPasskey(
        {
          pool,
          publicUrl: () => url,
          settings: { secrets: [identitySecret] },
          lane: { state: { clockOffsetMs: late } },
        },
        { ...asked, ...changed },
        { ...answer, ...changed },
      );
    const parsed = JSON.parse(answer.response) as { response: { signature: string; userHandle?: string } };
    const { signature } = parsed.response;
    const forged = `${signature.slice(0, 20)}${signature[20] === 'A' ? 'B' : 'A'}${signature.slice(21)}`;
    const withSignature = { ...parsed, response: { ...parsed.response, signature: forged } };
    expect(await check({ response: JSON.stringify(withSignature) })).toBe(false);
    expect(await check({ response: 'no JSON' })).toBe(false);
    expect(await check({ credentialId: 'another' })).toBe(false);
    expect(await check({ sealed: 'AAAA' })).toBe(false);
    expect(await check({ sessionId: '00000000-0000-4000-8000-000000000000' })).toBe(false);
    expect(await check({}, { late: 301_000 })).toBe(false);
    expect(await check({}, { url: 'http://another.localhost:1' })).toBe(false);
    expect(await check()).toBe(true);
    expect(await check()).toBe(false);
    // the database alone gives nobody a passkey: the key of a row is sealed for its user
    await pool.query(
      'update identity.operator_factor set last_step = 0, key = set_byte(key, 40, 1 - least(1, get_byte(key, 40)))',
    );
    expect(await check()).toBe(false);
  });
});

test('a gateway at an IP address, for which browsers make no passkeys, offers none', async () => {
  const gateway = await startConsole();
  const browser = browserOf(gateway, await signInOperator(gateway));
  const { status, text } = await browser.get('/console/factors');
  expect([status, text.includes('data-passkey')]).toEqual([200, false]);
});
