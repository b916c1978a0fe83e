import OpenAI from 'openai';
import { expect, test } from 'vitest';
import { grantCredit } from '../../../src/accounts/use-cases/credit/credit.ts';
import { findAccountId } from '../../../src/accounts/store/credit.ts';
import { accountNameOf } from '../../../src/accounts/store/identity.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { ask, paidModel } from '../../support/chat-gateway.ts';
import { laneOn } from '../../support/credit.ts';
import { goodPassword, type IdentityGateway, linkIn } from '../../support/identity.ts';
import { openTab, startSite } from '../../support/site.ts';
import { eventually } from '../../support/wait.ts';

const chromium = useBrowser();
const email = 'ada@example.org';

/** As the operator's command does. */
async function grantTo({ database }: IdentityGateway, address: string): Promise<void> {
  const { rows } = await database.pool.query<{ id: string }>(
    'select id from identity."user" where email = $1',
    [address],
  );
  const accountId = await findAccountId(database.pool, accountNameOf(rows[0]?.id ?? ''));
  await grantCredit({ ...database, lane: laneOn(database) }, accountId ?? 0, 5_000_000n);
}

test.skipIf(!hasBrowser).each([true, false])(
  'a person signs up, confirms, makes a key, uses it with the openai client, sees what it used, revokes it, and its next request is refused (with JavaScript: %s)',
  async (javaScriptEnabled) => {
    const gateway = await startSite();
    const { page, check } = await openTab(chromium, gateway, { javaScriptEnabled });
    // axe itself is a script
    const checked = async (): Promise<void> => (javaScriptEnabled ? check() : undefined);
    await page.goto('/');
    await page.getByRole('navigation').getByRole('link', { name: 'Sign up' }).click();
    await page.getByLabel('Name').fill('Ada Lovelace');
    await page.getByLabel('E-mail').fill(email);
    await page.getByLabel('Password').fill(goodPassword);
    await page.getByRole('button', { name: 'Sign up' }).click();
    await page.getByRole('heading', { name: 'Look into your mail' }).waitFor();
    const [mail = ''] = await gateway.mails(email);
    await page.goto(linkIn(mail));
    await page.getByText('Your address is confirmed').waitFor();
    await page.getByLabel('E-mail').fill(email);
    await page.getByLabel('Password').fill(goodPassword);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('heading', { name: 'Welcome, Ada Lovelace' }).waitFor();
    await grantTo(gateway, email);

    await page.getByRole('link', { name: 'Make a key' }).click();
    await page.getByLabel('Name').fill('My laptop');
    await page.getByRole('button', { name: 'Make the key' }).click();
    await page.getByRole('heading', { name: 'Your new key' }).waitFor();
    await checked();
    const apiKey = (await page.locator('.secret code').textContent()) ?? '';
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey, maxRetries: 0 });
    const { data, response } = await client.chat.completions.create(ask('Hello', paidModel)).withResponse();
    expect(data.choices[0]?.message.content).not.toBe('');

    await eventually(async () => {
      await page.goto('/usage');
      expect(await page.getByRole('link', { name: 'My laptop' }).count()).toBe(1);
    });
    await page.getByRole('link', { name: paidModel }).waitFor();
    await checked();
    await page.getByLabel('Its id').fill(response.headers.get('x-request-id') ?? '');
    await page.getByRole('button', { name: 'Look it up' }).click();
    await page.getByText('The whole answer was delivered.').waitFor();
    await page.getByText(String(data.usage?.prompt_tokens)).first().waitFor();

    await page.goto('/keys');
    await page.getByRole('link', { name: 'Revoke My laptop' }).click();
    await page.getByRole('button', { name: 'Revoke the key' }).click();
    await page.getByText('The key was revoked').waitFor();
    await expect(client.chat.completions.create(ask('Hello', paidModel))).rejects.toMatchObject({
      status: 401,
    });
  },
);
