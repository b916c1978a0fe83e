import { describe, expect, test } from 'vitest';
import { addFactor, listFactors, listOperators } from '../../../src/accounts/store/operators.ts';
import { readConsoleEvents, removeFactors, withdrawRole } from '../../../src/accounts/use-cases/operators.ts';
import { overlayLane } from '../../../src/ledger/store/lane.ts';
import { browserOf, codeOf, signInOperator, startConsole } from '../../support/console.ts';
import { laneOn } from '../../support/credit.ts';
import type { Browser, IdentityGateway } from '../../support/identity.ts';
import { formsIn, postForm, sendForm } from '../../support/site.ts';
import { registeredConsole } from '../../support/tour.ts';

const root = { name: 'root', at: 'command' } as const;
const operatorsPath = '/console/operators';

const ledgerOf = ({ database }: IdentityGateway) => ({ pool: database.pool, lane: laneOn(database) });

/** The form token of a session. */
async function tokenOf(browser: Browser): Promise<Record<string, string>> {
  const forms = formsIn((await browser.get('/console')).text);
  return forms.find(({ action }) => action === '/console/sign-out')?.fields ?? {};
}

/** Sets an authenticator app up; returns what opens the console by its next code. */
async function setUp(browser: Browser): Promise<{ readonly recoveryCode: string }> {
  browser.cookies.delete('tollbook.console');
  const { text } = await browser.get('/console/second-factor');
  const code = codeOf(/<code>([A-Z2-7 ]+)<\/code>/.exec(text)?.[1] ?? '');
  const { fields = {} } = formsIn(text).find(({ action }) => action === '/console/second-factor/new') ?? {};
  const made = await postForm(browser, '/console/second-factor/new', { ...fields, code });
  return { recoveryCode: /<pre[^>]*>(\S+)/.exec(made.text)?.[1] ?? '' };
}

test.each<[string, (gateway: IdentityGateway, admin: Browser) => Promise<unknown>]>([
  [
    'another admin has withdrawn',
    (_, admin) => sendForm(admin, operatorsPath, { name: 'eve' }, { action: `${operatorsPath}/withdraw` }),
  ],
  ['a command has withdrawn', (gateway) => withdrawRole(ledgerOf(gateway), { name: 'eve', by: root })],
])(
  'an operator whom %s opens no page, sends no form that was open, and is named by no later event',
  async (_, withdraw) => {
    const gateway = await startConsole();
    const admin = browserOf(gateway, await signInOperator(gateway));
    const eve = browserOf(gateway, await signInOperator(gateway, { name: 'eve' }));
    const fields = await tokenOf(eve);
    await withdraw(gateway, admin);
    const before = await readConsoleEvents(gateway.database, undefined, 100);
    expect(before[0]).toMatchObject({ type: 'operator_role_withdrawn', data: { name: 'eve' } });
    const ownWays = /^\/console\/(?:sign-in|sign-out|invitation)/;
    for (const route of (await registeredConsole('GET')).filter((path) => !ownWays.test(path))) {
      const path = route.replaceAll(/:\w+/g, '1');
      const { status, headers, text } = await eve.get(path);
      expect([
        path,
        status === 404 || headers.get('location')?.startsWith('/console/sign-in') === true,
      ]).toEqual([path, true]);
      expect(text).not.toContain('eve@example.org');
    }
    for (const route of (await registeredConsole('POST')).filter((path) => !ownWays.test(path))) {
      const path = route.replaceAll(/:\w+/g, '1');
      const sent = await postForm(eve, path, {
        ...fields,
        name: 'eve',
        role: 'admin',
        email: 'e@example.org',
      });
      expect([path, [303, 404].includes(sent.status)]).toEqual([path, true]);
    }
    expect(await readConsoleEvents(gateway.database, undefined, 100)).toEqual(before);
    const roles = (await listOperators(gateway.database.pool)).map(({ name, role }) => [name, role]);
    expect(roles).toEqual([
      ['ada', 'admin'],
      ['eve', undefined],
    ]);
  },
);

describe('an admin who removes the second factors of an operator', () => {
  test('ends also what one of them opens at that moment', async () => {
    const gateway = await startConsole();
    await signInOperator(gateway);
    const eve = browserOf(gateway, await signInOperator(gateway, { name: 'eve' }));
    const { recoveryCode } = await setUp(eve);
    eve.cookies.delete('tollbook.console');
    const { lane, pool } = ledgerOf(gateway);
    const meanwhile: number[] = [];
    const ledger = {
      pool,
      lane: overlayLane(lane, {
        async append(command) {
          const sent = await sendForm(eve, '/console/second-factor', { code: recoveryCode });
          meanwhile.push(sent.status, (await eve.get('/console')).status);
          return lane.append(command);
        },
      }),
    };
    expect(await removeFactors(ledger, { name: 'eve', by: root })).toEqual({ kind: 'removed' });
    expect(meanwhile).toEqual([303, 200]);
    const after = await eve.get('/console');
    expect([after.status, after.headers.get('location')]).toEqual([
      303,
      '/console/second-factor?next=%2Fconsole',
    ]);
  });

  test('leaves none that a session adds while it ends', async () => {
    const gateway = await startConsole();
    const { userId, sessionId } = await signInOperator(gateway, { name: 'eve' });
    const { pool } = gateway.database;
    const factor = {
      userId,
      kind: 'totp',
      credentialId: undefined,
      key: Buffer.from('x'),
      lastStep: 0,
    } as const;
    expect(await addFactor(pool, factor, sessionId)).toBe(true);
    const ending = await pool.connect();
    await ending.query('begin');
    await ending.query('delete from identity.operator_session');
    const added = addFactor(pool, factor, sessionId);
    await ending.query('commit');
    ending.release();
    expect(await added).toBe(false);
    expect(await listFactors(pool, userId)).toHaveLength(1);
  });

  test('must be an admin at that moment', async () => {
    const gateway = await startConsole();
    await signInOperator(gateway, { name: 'eve', role: 'viewer' });
    const removed = await removeFactors(ledgerOf(gateway), {
      name: 'eve',
      by: { name: 'eve', at: 'console' },
    });
    expect(removed).toEqual({ kind: 'not_admin' });
  });
});
