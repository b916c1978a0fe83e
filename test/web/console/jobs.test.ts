import { expect, test } from 'vitest';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { browserOf, operatorTab, signInOperator } from '../../support/console.ts';
import { useChain } from '../../support/devnet.ts';
import { testConfig } from '../../support/gateway.ts';
import { echo, startJobsSite } from '../../support/jobs-site.ts';
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
    await tab.page.getByLabel('Job, as').fill('1/3');
    await tab.page.getByLabel('Caller').fill(payer.address);
    await tab.page.getByRole('button', { name: 'Try it' }).click();
    await tab.page.getByRole('heading', { name: 'Dry run of 1/3' }).waitFor();
    await tour.look('console-jobs-dry-run');
    expect((await readConsoleEvents(site.database, undefined, 1))[0]?.data).toMatchObject({
      action: 'dry_run',
      subject: '1/3',
      operator: 'ada',
    });
  },
);

test('what a reload sold otherwise than before is listed', async () => {
  const site = await startJobsSite(chain, echo, { tables: '[console]\n' });
  const ada = browserOf(site, await signInOperator(site));
  expect((await ada.get(page)).text).toContain('none was reloaded');
  await site.reload(await testConfig({ ...site.options, jobs: '[job_prices.1]\n0 = "5"' }));
  await site.reload(
    await testConfig({ ...site.options, jobs: '[job_prices.1]\n0 = "0.000000000000000005 USD"' }),
  );
  const { text } = await ada.get(page);
  expect(text).toContain('disabled at 0.000000000000000005 ether → disabled at 0.000000000000000005 USD');
  expect(text).toContain('1/1: public paid at 0.000000000000000001');
  expect(text).toContain('→ no price');
  expect(text).toContain('→ disabled at 0.000000000000000005');
});

test('a dry run without a job is refused as for clients, and a viewer asks for none', async () => {
  const site = await startJobsSite(chain, echo, { tables: '[console]\n' });
  const ada = browserOf(site, await signInOperator(site));
  const action = `${page}/dry-run`;
  expect((await sendForm(ada, page, { job: 'x<b>', caller: '' }, { action })).text).toContain(
    'Dry run of x&#60;b&#62;',
  );
  const viewer = browserOf(site, await signInOperator(site, { name: 'vera', role: 'viewer' }));
  const forms = formsIn((await viewer.get(page)).text);
  expect(forms.map((form) => form.action)).toEqual(['/console/sign-out']);
  expect((await postForm(viewer, action, { ...forms[0]?.fields, job: '1/0' })).status).toBe(403);
});
