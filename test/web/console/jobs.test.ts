import { expect, test } from 'vitest';
import type { Config } from '../../../src/base/config/config.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { browserOf, operatorTab, signInOperator } from '../../support/console.ts';
import { useChain } from '../../support/devnet.ts';
import { testConfig } from '../../support/gateway.ts';
import { echo, type JobsSite, startJobsSite } from '../../support/jobs-site.ts';
import { payer } from '../../support/payer.ts';
import { formsIn, postForm, sendForm } from '../../support/site.ts';
import { startTour } from '../../support/tour.ts';
import { readConsoleEvents } from '../../../src/accounts/use-cases/operators.ts';

const chain = useChain();
const chromium = useBrowser();
const page = '/console/jobs';

test.skipIf(!hasBrowser)(
  'an operator sees each job’s price in every token with its rate, and asks by a dry run who may call it',
  async () => {
    const site = await startJobsSite(chain, echo, { tables: '[console]\n' });
    const ada = await signInOperator(site, { role: 'operator' });
    const tab = await operatorTab(chromium, site, ada);
    const tour = startTour(tab);
    await tour.open(page, 'console-jobs');
    await tab.page.getByText('3.264').first().waitFor();
    await tab.page.getByText('fixed in the configuration').first().waitFor();
    await tab.page.getByText('3,200 USDC for 1 ether').waitFor();
    await tab.page.getByLabel('Job', { exact: true }).selectOption({ label: 'For members (1/3)' });
    await tab.page.getByLabel('Caller').fill(payer.address);
    await tab.page.getByRole('button', { name: 'Try it' }).click();
    await tab.page.getByRole('heading', { name: 'Dry run of For members 1/3' }).waitFor();
    await tour.look('console-jobs-dry-run');
    expect((await readConsoleEvents(site.database, undefined, 1))[0]?.data).toMatchObject({
      action: 'dry_run',
      subject: '1/3',
      operator: 'ada',
    });
  },
);

test('what a reload would sell otherwise is shown before it, and what it did after it', async () => {
  // what the configuration file says
  let file = (): Promise<Config> => testConfig(site.options);
  const site: JobsSite = await startJobsSite(chain, echo, {
    tables: '[console]\n',
    readConfig: () => file(),
  });
  const ada = browserOf(site, await signInOperator(site));
  const before = (await ada.get(page)).text;
  expect(before).toContain('none was reloaded');
  expect(before).not.toContain('A reload would change');
  file = () =>
    testConfig({ ...site.options, change: (text) => text.replace('6 = "1.5 USD"', '6 = "2.25 USD"') });
  const preview = (await ada.get(page)).text;
  expect(preview).toContain('A reload would change these prices');
  expect(preview.replaceAll(/<[^>]*>|\s+/g, ' ')).toMatch(
    /Any JSON +1\/6 +to anyone at 1\.5 USD +to anyone at 2\.25 USD/,
  );
  file = () => testConfig({ ...site.options, change: (text) => text.replace('6 = "1.5 USD"', '6 = "dear"') });
  expect((await ada.get(page)).text).toContain('(1 mistake): a reload would be refused');
  await site.reload(await testConfig({ ...site.options, jobs: '[job_prices.1]\n0 = "5"' }));
  await site.reload(
    await testConfig({ ...site.options, jobs: '[job_prices.1]\n0 = "0.000000000000000005 USD"' }),
  );
  const { text } = await ada.get(page);
  expect(text).toContain('not sold, at 5 wei → not sold, at 0.000000000000000005 USD');
  expect(text).toContain('1/1: to anyone at 1 wei');
  expect(text).toContain('→ no price');
  expect(text).toContain('→ not sold, at 0.000000000000000005');
});

test('a dry run without a job is refused as for clients, and a viewer asks for none', async () => {
  const site = await startJobsSite(chain, echo, { tables: '[console]\n' });
  const ada = browserOf(site, await signInOperator(site));
  const action = `${page}/dry-run`;
  expect((await sendForm(ada, page, { job: 'x<b>', caller: '' }, { action })).text).toContain(
    'Dry run of job x&#60;b&#62;',
  );
  const viewer = browserOf(site, await signInOperator(site, { name: 'vera', role: 'viewer' }));
  const forms = formsIn((await viewer.get(page)).text);
  expect(forms.map((form) => form.action)).toEqual(['/console/sign-out']);
  expect((await postForm(viewer, action, { ...forms[0]?.fields, job: '1/0' })).status).toBe(403);
});
