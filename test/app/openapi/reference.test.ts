import { expect, test } from 'vitest';
import { operationsOf } from '../../../src/app/openapi/document.ts';
import { tags } from '../../../src/app/openapi/operation.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { openTab } from '../../support/site.ts';
import { startTour } from '../../support/tour.ts';

const chain = useChain();
const chromium = useBrowser();
const start = async () => startTestGateway({ database: await createDatabase(), chain });

test.skipIf(!hasBrowser).each([
  ['/docs', 'customers'],
  ['/docs/runners', 'operators'],
])(
  'the reference page %s shows every route for %s and no other, loads nothing from another origin, and has less than 40 kB in three files',
  async (path, audience) => {
    const gateway = await start();
    const tab = await openTab(chromium, gateway);
    const { page, asked } = tab;
    let bytes = 0;
    const network = await page.context().newCDPSession(page);
    await network.send('Network.enable');
    network.on('Network.loadingFinished', ({ encodedDataLength }) => (bytes += encodedDataLength));
    await page.goto(path, { waitUntil: 'networkidle' });
    expect([asked.length, bytes < 40_000]).toEqual([3, true]);
    for (const { summary, tag } of operationsOf(['x402'])) {
      const shown = await page.getByRole('heading', { name: summary, exact: true }).count();
      expect([summary, shown]).toEqual([summary, tags[tag].audience === audience ? 1 : 0]);
    }
    // so that a picture or a print of the page has what is below its window
    await page.waitForFunction(
      "[...document.querySelectorAll('.operation')].every((part) => getComputedStyle(part).contentVisibility === 'visible')",
    );
    await startTour({ ...tab, check: () => tab.check({ maxChars: 400_000 }) }).look(`docs-${audience}`);
    await page
      .getByRole('link', { name: audience === 'customers' ? 'For runners' : 'For customers' })
      .click();
    await page.waitForURL(`**${audience === 'customers' ? '/docs/runners' : '/docs'}`);
  },
);

test('the page may load nothing from other origins, and is sent once', async () => {
  const gateway = await start();
  const { status, headers, text } = await gateway.get('/docs', { 'accept-encoding': 'br' });
  expect([status, headers.get('content-encoding')]).toEqual([200, 'br']);
  const policy = headers.get('content-security-policy');
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("script-src 'self'");
  expect(policy).not.toMatch(/https?:|\*|unsafe/);
  expect(text.replaceAll(gateway.url, '')).not.toMatch(/(?:src|href)="https?:\/\//);
  const again = await gateway.get('/docs', { 'if-none-match': headers.get('etag') ?? '' });
  expect(again).toMatchObject({ status: 304, text: '' });
  const [, style = ''] = /href="(\/docs\/reference\.css\?v=[^"]+)"/.exec(text) ?? [];
  const { headers: ofStyle } = await gateway.get(style);
  expect(ofStyle.get('cache-control')).toContain('immutable');
});
