import { describe, expect, test } from 'vitest';
import type { OperatorRole } from '../../../src/base/values/operator-role.ts';
import { acceptInvitation, inviteOperator } from '../../../src/accounts/use-cases/invitations.ts';
import { grantRole, readConsoleEvents, withdrawRole } from '../../../src/accounts/use-cases/operators.ts';
import { setUserDisabled } from '../../../src/accounts/use-cases/users.ts';
import { listOperators } from '../../../src/accounts/store/operators.ts';
import { browserOf, type SignedInOperator, signInOperator, startConsole } from '../../support/console.ts';
import { laneOn } from '../../support/credit.ts';
import type { IdentityGateway } from '../../support/identity.ts';
import { useShared } from '../../support/shared.ts';
import { eventually } from '../../support/wait.ts';

const shared = useShared(() => startConsole());
const root = { name: 'root', at: 'command' } as const;
let people = 0;

function ledgerOf({ database }: IdentityGateway) {
  return { pool: database.pool, lane: laneOn(database) };
}

/** Operators with unique names. */
function operators(gateway: IdentityGateway, ...roles: readonly OperatorRole[]): Promise<SignedInOperator[]> {
  return Promise.all(roles.map((role) => signInOperator(gateway, { name: `person-${(people += 1)}`, role })));
}

async function rolesOf({ database }: IdentityGateway): Promise<Record<string, OperatorRole | undefined>> {
  return Object.fromEntries((await listOperators(database.pool)).map(({ name, role }) => [name, role]));
}

/** An admin invites an operator to admin; returns what accepts the invitation, and says what comes of it. */
async function invite(gateway: IdentityGateway, inviter: SignedInOperator, invited: SignedInOperator) {
  const { name } = invited;
  const made = await inviteOperator(ledgerOf(gateway), {
    name,
    email: `${name}@example.org`,
    role: 'admin',
    by: { name: inviter.name, at: 'console' },
  });
  if (made.kind !== 'invited') throw new Error(made.kind);
  return async () => {
    const page = await browserOf(gateway, invited).get(`/console/invitation?token=${made.token}`);
    const { kind } = await acceptInvitation(ledgerOf(gateway), invited.userId, made.token);
    return [page.status, kind, (await rolesOf(gateway))[name]];
  };
}

describe('an invitation to admin', () => {
  test.each<[string, (gateway: IdentityGateway, ada: SignedInOperator) => Promise<unknown>]>([
    ['was withdrawn', (gateway, { name }) => withdrawRole(ledgerOf(gateway), { name, by: root })],
    [
      'has another role',
      (gateway, { name, userId }) =>
        grantRole(ledgerOf(gateway), { name, userId, role: 'operator', by: root }),
    ],
    [
      'is disabled',
      (gateway, { userId }) =>
        setUserDisabled(ledgerOf(gateway), { who: userId, operator: 'root', isDisabled: true }),
    ],
    [
      'was withdrawn, and is an admin again',
      async (gateway, { name, userId }) => {
        await withdrawRole(ledgerOf(gateway), { name, by: root });
        await grantRole(ledgerOf(gateway), { name, userId, role: 'admin', by: root });
      },
    ],
  ])('made by an admin who %s gives no role', async (_, change) => {
    const gateway = shared();
    const [ada, eve] = await operators(gateway, 'admin', 'viewer', 'admin');
    const accept = await invite(gateway, ada!, eve!);
    await change(gateway, ada!);
    expect(await accept()).toEqual([410, 'over', 'viewer']);
  });

  test('ends when the role of its person changes', async () => {
    const gateway = shared();
    const [ada, eve] = await operators(gateway, 'admin', 'admin');
    const accept = await invite(gateway, ada!, eve!);
    const { name, userId } = eve!;
    await grantRole(ledgerOf(gateway), {
      name,
      userId,
      role: 'viewer',
      by: { name: ada!.name, at: 'console' },
    });
    expect(await accept()).toEqual([410, 'over', 'viewer']);
  });

  test('made by an admin gives the role', async () => {
    const gateway = shared();
    const [ada, eve] = await operators(gateway, 'admin', 'viewer');
    expect(await (await invite(gateway, ada!, eve!))()).toEqual([200, 'granted', 'admin']);
  });
});

test.each<[string, 'viewer' | undefined]>([
  ['lower', 'viewer'],
  ['withdraw', undefined],
])('of admins who %s each other simultaneously, one stays an admin', async (_, role) => {
  const gateway = await startConsole();
  for (let round = 0; round < 8; round++) {
    const admins = await operators(gateway, 'admin', 'admin', 'admin');
    const changes = admins.map((admin, index) => {
      const { name, userId } = admins[(index + 1) % admins.length]!;
      const by = { name: admin.name, at: 'console' } as const;
      return role
        ? grantRole(ledgerOf(gateway), { name, userId, role, by })
        : withdrawRole(ledgerOf(gateway), { name, by });
    });
    await Promise.all(changes);
    const left = Object.entries(await rolesOf(gateway)).filter(([, held]) => held === 'admin');
    expect(left.map(([name]) => name)).toEqual([expect.any(String)]);
    await withdrawRole(ledgerOf(gateway), { name: left[0]![0], by: root });
  }
});

test('an admin who is disabled does not count as another admin', async () => {
  const gateway = await startConsole();
  const [ada, eve] = await operators(gateway, 'admin', 'admin');
  const ledger = ledgerOf(gateway);
  await setUserDisabled(ledger, { who: eve!.userId, operator: 'root', isDisabled: true });
  const by = { name: ada!.name, at: 'console' } as const;
  expect(await withdrawRole(ledger, { name: ada!.name, by })).toEqual({ kind: 'last_admin' });
});

test('an admin whose role was withdrawn changes no role, and the ledger has no event of it', async () => {
  const gateway = shared();
  const [ada, eve] = await operators(gateway, 'admin', 'viewer', 'admin');
  const ledger = ledgerOf(gateway);
  await withdrawRole(ledger, { name: ada!.name, by: root });
  const before = await readConsoleEvents(gateway.database, undefined, 100);
  const by = { name: ada!.name, at: 'console' } as const;
  const { name, userId } = eve!;
  expect(await grantRole(ledger, { name, userId, role: 'admin', by })).toEqual({ kind: 'not_admin' });
  expect(await withdrawRole(ledger, { name, by })).toEqual({ kind: 'not_admin' });
  expect(await readConsoleEvents(gateway.database, undefined, 100)).toEqual(before);
});

test.each<[string, (gateway: IdentityGateway, operator: SignedInOperator) => Promise<unknown>]>([
  ['a role is withdrawn', (gateway, { name }) => withdrawRole(ledgerOf(gateway), { name, by: root })],
  [
    'a session ends',
    ({ database }, { sessionId }) =>
      database.pool.query(`update identity.session set expires_at = 'epoch' where id = $1`, [sessionId]),
  ],
  [
    'the second factor of a session ends',
    ({ database }, { sessionId }) =>
      database.pool.query('delete from identity.operator_session where session_id = $1', [sessionId]),
  ],
])('live figures end once %s: none is sent from then on', async (_, change) => {
  const gateway = shared();
  const [ada] = await operators(gateway, 'viewer');
  const cookie = [...ada!.cookies].map((pair) => pair.join('=')).join('; ');
  const { body } = await fetch(`${gateway.url}/console/live`, {
    headers: { accept: 'text/event-stream', cookie },
  });
  let told = 0;
  let isOver = false;
  const read = async (): Promise<void> => {
    for await (const bytes of body ?? []) told += Buffer.from(bytes).toString().split('data: ').length - 1;
  };
  const reading = read()
    .catch(() => undefined)
    .finally(() => (isOver = true));
  await eventually(() => expect(told).toBeGreaterThan(0));
  await change(gateway, ada!);
  const before = told;
  await eventually(() => expect(isOver).toBe(true));
  await reading;
  expect(told).toBe(before);
});
