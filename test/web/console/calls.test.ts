import { expect, test } from 'vitest';
import { readStream } from '../../../src/ledger/store/streams.ts';
import { listDeadCalls } from '../../../src/calls/store/calls.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { browserOf, operatorTab, signInOperator } from '../../support/console.ts';
import { useChain } from '../../support/devnet.ts';
import { startJobsSite, type JobsSite } from '../../support/jobs-site.ts';
import { payFor } from '../../support/payer.ts';
import { formsIn, postForm, sendForm } from '../../support/site.ts';
import { startTour } from '../../support/tour.ts';
import { eventually } from '../../support/wait.ts';

const chain = useChain();
const chromium = useBrowser();
const job = '/x402/jobs/1/1';

/** A gateway whose runner refuses calls while `isBroken`, and is not there while `isAway`. */
async function startCalls() {
  const runner = { isBroken: true, isAway: false };
  let row = 0;
  const answer = () => {
    if (runner.isAway) return { status: 500, body: 'no room <b>now</b>' };
    return runner.isBroken ? { status: 422, body: `no model for row ${(row += 1)}` } : { status: 200 };
  };
  const site = await startJobsSite(chain, answer, { tables: '[console]\n' });
  return { site, runner };
}

async function deadCalls({ database }: JobsSite, calls: number) {
  return eventually(async () => {
    const dead = await listDeadCalls(database.db, 10);
    expect(dead).toHaveLength(calls);
    return dead;
  });
}

/** A dead letter as the ledger has it, without its payment: it is never put back in the queue. */
async function addUnpaid({ database }: JobsSite): Promise<void> {
  await database.asOwner(async (owner) => {
    await owner.query('alter table tollbook.call disable trigger user');
    const { rows } = await owner.query<{ column_name: string }>(
      `select column_name from information_schema.columns
       where table_schema = 'tollbook' and table_name = 'call' and column_name not in ('call_id', 'stream') and is_generated = 'NEVER'`,
    );
    const columns = rows.map(({ column_name: name }) => name).join(', ');
    await owner.query(
      `insert into tollbook.call (call_id, stream, ${columns}) overriding system value
       select 1000000, '0x' || repeat('ab', 32), ${columns} from tollbook.call where status = 'dead' limit 1`,
    );
    await owner.query('alter table tollbook.call enable trigger user');
  });
}

const lastEvent = async ({ database }: JobsSite, stream: string, type: string) =>
  (await readStream(database.pool, stream)).events.findLast((event) => event.type === type)?.data;

test.skipIf(!hasBrowser)(
  'an operator requeues all dead letters of a cause with one action, sees what was skipped, and each is an event with their name',
  async () => {
    const { site, runner } = await startCalls();
    for (let paid = 0; paid < 3; paid++) expect((await payFor(site, job)).status).toBe(202);
    const dead = await deadCalls(site, 3);
    await addUnpaid(site);
    const ada = await signInOperator(site, { role: 'operator' });
    const tab = await operatorTab(chromium, site, ada);
    const { page } = tab;
    const tour = startTour(tab);
    await tour.open('/console/calls', 'console-calls');
    await page.keyboard.press('j');
    await page.getByRole('link', { name: 'status 422: no model for row #' }).click();
    await page
      .getByText(
        '4 calls were not delivered, of those chosen below; 3 can be sent to a runner again. Mend the cause, then requeue them. 1 cannot: its payment is not settled at present: wait, the gateway looks for the outcome.',
      )
      .waitFor();
    expect(await page.getByLabel('Cause').innerText()).toContain('no model for row #');
    await tour.look('console-dead-letters');
    runner.isBroken = false;
    await page.getByRole('button', { name: 'Requeue 3' }).click();
    await page.getByRole('button', { name: 'Press again' }).click();
    await page
      .getByText('3 calls were sent to their runners again. 1 call was left unchanged: the table says why.')
      .waitFor();
    await tour.look('console-dead-letters-report');
    for (const { call_id: callId, stream } of dead)
      expect(await lastEvent(site, stream, 'operator_requeued')).toEqual({
        call_id: callId,
        operator: 'ada',
      });
    const [first] = dead;
    await eventually(async () =>
      expect(await lastEvent(site, first?.stream ?? '', 'completed')).toMatchObject({
        call_id: first?.call_id,
      }),
    );
    await tour.open('/console/calls/outbox', 'console-outbox-empty');
    await page.goto('/console/activity');
    await page.getByRole('cell', { name: 'requeue calls' }).waitFor();
  },
);

test('an operator gives all dead letters of a job up with a reason, and their refunds are due', async () => {
  const { site } = await startCalls();
  for (let paid = 0; paid < 2; paid++) expect((await payFor(site, job)).status).toBe(202);
  const dead = await deadCalls(site, 2);
  const ada = browserOf(site, await signInOperator(site, { role: 'operator' }));
  const page = '/console/calls/dead?job=1%2F1';
  const action = '/console/calls/dead/give-up';
  const text = (await ada.get(page)).text.replaceAll(/<[^>]*>/g, '').replaceAll(/\s+/g, ' ');
  expect(text).toContain('their payers are owed 0.000002 USDC on Base Sepolia (2 payments).');
  const without = await sendForm(ada, page, { why: '' }, { action });
  expect([without.status, without.text]).toEqual([409, expect.stringContaining('Nothing was changed')]);
  const done = await sendForm(ada, page, { why: 'the model is gone' }, { action });
  expect(done.text).toContain('2 calls were given up.');
  for (const { call_id: callId, stream } of dead)
    expect(await lastEvent(site, stream, 'operator_discarded')).toEqual({
      call_id: callId,
      why: 'the model is gone',
      operator: 'ada',
    });
  await deadCalls(site, 0);
});

test('a filter that cannot be read, or a number that is not confirmed, changes no dead letter', async () => {
  const { site } = await startCalls();
  for (let paid = 0; paid < 2; paid++) expect((await payFor(site, job)).status).toBe(202);
  const dead = await deadCalls(site, 2);
  const ada = browserOf(site, await signInOperator(site, { role: 'operator' }));
  const page = '/console/calls/dead';
  const why = 'the model is gone';
  for (const verb of ['give-up', 'requeue']) {
    const action = `${page}/${verb}`;
    const { fields = {} } = formsIn((await ada.get(page)).text).find((form) => form.action === action) ?? {};
    expect(fields).toMatchObject({ count: '2' });
    for (const [name, text] of [
      ['job', '1'],
      ['job', '1/1/1'],
      ['cause', 'none-of-this-form'],
      ['runner', 'no runner'],
      ['after', 'x'],
      ['until', 'yesterday'],
      ['count', 'all'],
    ] as const) {
      const { status, text: shown } = await postForm(ada, action, { ...fields, why, [name]: text });
      expect([verb, name, status, shown.includes('cannot be read')]).toEqual([verb, name, 400, true]);
    }
    for (const count of ['', '1', '3']) {
      const { status, text } = await postForm(ada, action, { ...fields, why, count });
      expect([status, text.includes('Nothing was changed')]).toEqual([409, true]);
    }
    const last = async (type: 'operator_discarded' | 'operator_requeued') =>
      Promise.all(dead.map(({ stream }) => lastEvent(site, stream, type)));
    expect(await last('operator_discarded')).toEqual([undefined, undefined]);
    expect(await last('operator_requeued')).toEqual([undefined, undefined]);
  }
});

test('a list is refused if its filter cannot be read', async () => {
  const { site } = await startCalls();
  const viewer = browserOf(site, await signInOperator(site, { role: 'viewer' }));
  for (const path of [
    '/console/calls/dead?job=1',
    '/console/calls/dead?job=1/0&job=2/0',
    '/console/calls/dead?after=-1',
    '/console/calls/outbox?place=nowhere',
    '/console/calls/outbox?services=1,x',
    '/console/payments?state=nothing',
    '/console/payments?from=2026-13-01',
    '/console/payments.csv?to=yesterday',
    '/console/payments?before=x',
    '/console/activity?before=0',
    '/console/books/refunds?after=x',
    '/jobs?after=x',
    '/jobs/receipts?before=x',
  ]) {
    const { status, text } = await viewer.get(path);
    expect([path, status, text.includes('cannot be read')]).toEqual([path, 400, true]);
  }
});

test('one dead letter is requeued from the list, and what fails is delivered again later, with the runner’s words', async () => {
  const { site, runner } = await startCalls();
  expect((await payFor(site, job)).status).toBe(202);
  const [dead] = await deadCalls(site, 1);
  const ada = browserOf(site, await signInOperator(site, { role: 'operator' }));
  runner.isAway = true;
  const action = `/console/calls/${dead?.call_id}/requeue`;
  const sent = await sendForm(ada, '/console/calls/dead', {}, { action });
  expect(sent.headers.get('location')).toBe('/console/calls/dead?notice=call_requeued');
  await eventually(async () => {
    const { text } = await ada.get('/console/calls/outbox?place=later&runner=runner-1');
    expect(text).toContain('no room &#60;b&#62;now&#60;/b&#62;');
    expect(text).toContain(`href="/console/payments/${dead?.stream}"`);
  });
  expect((await ada.get('/console/calls/outbox?place=leased')).text).toContain('No such call');
  const { fields = {} } = formsIn((await ada.get('/console')).text)[0] ?? {};
  const late = await postForm(ada, action, fields);
  expect([late.status, late.text]).toEqual([409, expect.stringContaining('it is no longer a dead letter')]);
});

test('a paused runner gets no calls, while they are still sold, until an operator resumes it', async () => {
  const { site, runner } = await startCalls();
  runner.isBroken = false;
  const ada = browserOf(site, await signInOperator(site, { role: 'operator' }));
  const change = (verb: string) =>
    sendForm(ada, '/console/calls', {}, { action: `/console/calls/runners/runner-1/${verb}` });
  expect((await change('pause')).headers.get('location')).toBe('/console/calls?notice=runner_paused');
  expect(await lastEvent(site, 'runner:runner-1', 'operator_runner_paused')).toEqual({
    runner: 'runner-1',
    reason: 'operator',
    operator: 'ada',
  });
  const paid = await payFor(site, job);
  expect(paid.status).toBe(202);
  const { text } = await ada.get('/console/calls');
  expect(text).toContain('by ada');
  expect(text).toContain('1 call waits for runner-1, which is paused.');
  expect(text).toMatch(/outbox\?place=due&#38;runner=runner-1"/);
  expect(site.runner.deliveries).toHaveLength(0);
  expect((await change('resume')).headers.get('location')).toBe('/console/calls?notice=runner_resumed');
  await eventually(async () => expect(site.runner.deliveries).toHaveLength(1));
  expect(await lastEvent(site, 'runner:runner-1', 'operator_runner_resumed')).toEqual({
    runner: 'runner-1',
    operator: 'ada',
  });
});

test('while calls wait that no runner takes, the pages of calls say first for how long none has polled', async () => {
  // a runner that leases, of which no process runs
  const site = await startJobsSite(chain, () => ({ status: 200 }), {
    tables: '[console]\n',
    runnerUrl: undefined,
  });
  const ada = browserOf(site, await signInOperator(site));
  expect((await ada.get('/console/calls')).text).toContain('No call waits for a runner.');
  expect((await payFor(site, job)).status).toBe(202);
  await eventually(async () => {
    for (const path of ['/console/calls', '/console/calls/outbox'])
      expect((await ada.get(path)).text).toMatch(/: no runner has polled for \d+ s, and 1 call waits\./);
  });
});
