import { expect, test } from 'vitest';
import { operatorRoles } from '../../../src/base/values/operator-role.ts';
import { readConsoleEvents } from '../../../src/accounts/use-cases/operators.ts';
import { browserOf, signInOperator, startConsole } from '../../support/console.ts';
import { useChain } from '../../support/devnet.ts';
import { echo, startJobsSite } from '../../support/jobs-site.ts';
import { formsIn, postForm } from '../../support/site.ts';
import { registeredConsole } from '../../support/tour.ts';

const chain = useChain();

test('a viewer can do nothing that writes: every action is refused before it is recorded', async () => {
  const gateway = await startJobsSite(chain, echo, { tables: '[console]\n' });
  const viewer = browserOf(gateway, await signInOperator(gateway, { name: 'vera', role: 'viewer' }));
  const { text } = await viewer.get('/console');
  const fields = formsIn(text).find(({ action }) => action === '/console/sign-out')?.fields ?? {};
  const actions = (await registeredConsole('POST')).filter(
    // factors are an operator's own
    (path) => !/^\/console\/(?:sign-in|sign-out|second-factor|invitation|factors)/.test(path),
  );
  expect(actions).toContain('/console/operators/invite');
  for (const of of ['payments', 'calls', 'jobs', 'books/refunds', 'books/periods', 'chat'])
    expect(actions.filter((action) => action.startsWith(`/console/${of}/`))).not.toEqual([]);
  for (const action of actions) {
    const path = action.replaceAll(/:\w+/g, '1');
    const page = await postForm(viewer, path, fields);
    const data = await postForm(viewer, path, fields, { accept: 'application/json' });
    expect([path, page.status, data.json?.error]).toEqual([path, 403, 'forbidden']);
  }
  const events = await readConsoleEvents(gateway.database, undefined, 10);
  expect(events.map(({ type }) => type)).toEqual(['operator_role_granted']);
});

test.each(operatorRoles)('the list of operators is for admins: %s', async (role) => {
  const gateway = await startConsole();
  const browser = browserOf(gateway, await signInOperator(gateway, { role }));
  expect((await browser.get('/console/operators')).status).toBe(role === 'admin' ? 200 : 403);
  expect((await browser.get('/console')).text.includes('href="/console/operators"')).toBe(role === 'admin');
});

test('an action of another origin, or without the form’s token, changes nothing and is not recorded', async () => {
  const gateway = await startConsole();
  const admin = browserOf(gateway, await signInOperator(gateway));
  await signInOperator(gateway, { name: 'grace', role: 'viewer' });
  const { text } = await admin.get('/console/operators');
  const { fields } = formsIn(text).find(({ action }) => action.endsWith('/withdraw')) ?? { fields: {} };
  const withdraw = { ...fields, name: 'grace' };
  const foreign = await postForm(admin, '/console/operators/withdraw', withdraw, {
    origin: 'https://other.example',
  });
  expect(foreign.status).toBe(403);
  const old = await postForm(admin, '/console/operators/withdraw', { name: 'grace' });
  expect(old.headers.get('location')).toBe('/console/operators?name=grace&notice=form_too_old');
  const grants = ['operator_role_granted', 'operator_role_granted'];
  expect((await readConsoleEvents(gateway.database, undefined, 10)).map(({ type }) => type)).toEqual(grants);
  expect((await postForm(admin, '/console/operators/withdraw', withdraw)).status).toBe(303);
  expect((await readConsoleEvents(gateway.database, undefined, 2)).map(({ data }) => data)).toMatchObject([
    { name: 'grace', operator: 'ada' },
    { action: 'withdraw_role', subject: 'grace', operator: 'ada' },
  ]);
});

test('the last admin keeps the role', async () => {
  const gateway = await startConsole();
  const admin = browserOf(gateway, await signInOperator(gateway));
  const { text } = await admin.get('/console/operators');
  const { fields } = formsIn(text).find(({ action }) => action.endsWith('/role')) ?? { fields: {} };
  const lowered = await postForm(admin, '/console/operators/role', { ...fields, role: 'viewer' });
  expect([lowered.status, lowered.text]).toEqual([409, expect.stringContaining('This is the last admin')]);
  expect((await postForm(admin, '/console/operators/withdraw', fields)).status).toBe(409);
});
