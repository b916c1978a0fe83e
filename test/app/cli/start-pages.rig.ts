import path from 'node:path';
import type { Page } from 'playwright-core';
import { expect, onTestFinished, test, vi } from 'vitest';
import { processEnvironment } from '../../../src/base/config/environment.ts';
import { readDescription } from '../../../src/devnet/description.ts';
import { freePort } from '../../../src/devnet/ports.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { endProcessesAround } from '../../support/processes.ts';
import { destroy, spawnTollbook, temporaryFolder } from '../../support/program.ts';
import { timeLimits } from '../../support/time-limits.ts';

const chromium = useBrowser();
const { SCREENSHOTS: pictures } = processEnvironment();

// everything starts, on a machine that is busy with other tests
vi.setConfig({ testTimeout: 180_000 });

async function startProgram() {
  const dir = temporaryFolder();
  const port = await freePort();
  const program = spawnTollbook(['start', '--dir', dir, '--port', String(port)]);
  onTestFinished(async () => {
    await destroy(program);
    await endProcessesAround(dir);
  });
  await program.says(/Try next/);
  return { url: `http://127.0.0.1:${port}`, ...(await readDescription(dir)) };
}

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

async function keepPicture(page: Page, name: string): Promise<void> {
  if (pictures) await page.screenshot({ path: path.join(pictures, `start-${name}.png`), fullPage: true });
}

test.skipIf(!hasBrowser)(
  'the demo user signs in, tops up, chats and buys a job with what npm start prints, and nothing else',
  async () => {
    const { url, demo_user: user } = await startProgram();
    const page = await chromium.browser.newPage({ baseURL: url });
    onTestFinished(() => page.close());
    await page.goto('/sign-in');
    await page.getByLabel('E-mail').fill(user?.email ?? '');
    await page.getByLabel('Password').fill(user?.password ?? '');
    await button(page, 'Sign in').click();
    await button(page, 'Sign out').waitFor();

    await page.goto('/credit');
    await keepPicture(page, 'credit');
    await page.getByRole('button', { name: /^Pay/ }).first().click();
    await button(page, 'Connect').click();
    await button(page, 'Sign').click();
    await page.getByText('were added: you can spend').waitFor({ timeout: timeLimits.conditionMs });
    await keepPicture(page, 'topped-up');

    await page.goto('/try');
    await page.getByLabel('Your message').fill('Hello');
    await button(page, 'Send').click();
    await page.getByRole('link', { name: 'Details' }).first().waitFor({ timeout: timeLimits.conditionMs });
    await keepPicture(page, 'try');

    await page.goto('/jobs/1/0');
    await page.getByLabel('Input').fill('hello from the page');
    await page.getByRole('button', { name: 'Continue to payment' }).click();
    await page.getByRole('button', { name: 'Pay with the wallet' }).click();
    await button(page, 'Sign').click();
    await page.getByText('The job is done.').waitFor({ timeout: timeLimits.conditionMs });
    // the devnet's runner gives the body back
    expect(await page.textContent('main')).toContain(Buffer.from('hello from the page').toString('base64'));
    await keepPicture(page, 'receipt');
  },
);
