import { expect, test } from 'vitest';
import { oneModel } from '../../support/chat-gateway.ts';
import { useChain } from '../../support/devnet.ts';
import { startWithDatabase } from '../../support/gateway.ts';
import { operatorOf } from '../../support/operator.ts';
import { identitySecret } from '../../support/identity.ts';

const chain = useChain();
/** What a runner must send before it is known whether it may. */
const body = JSON.stringify({ lease_id: '00000000-0000-4000-8000-000000000000', fraction: 0.5 });

interface Protected {
  readonly method: string;
  readonly path: string;
  readonly scheme: string;
}

type Methods = Readonly<Record<string, { readonly security?: readonly Readonly<Record<string, unknown>>[] }>>;

/** The operations that need credentials, and of which kind. */
function protectedIn(paths: Readonly<Record<string, Methods>>): readonly Protected[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { security = [] }]) => {
      const schemes = security.map((one) => Object.keys(one)[0]);
      const [scheme] = schemes;
      return scheme === undefined || schemes.includes(undefined) ? [] : { method, path, scheme };
    }),
  );
}

test('no operation that needs credentials answers a request without them, and none for operators answers one whose token lacks the right', async () => {
  const { database, gateway } = await startWithDatabase({
    chain,
    top: 'features = ["x402", "chat"]',
    tables: `${oneModel('http://127.0.0.1:1/v1')}
[[runners]]
services = [1]
mode = "lease"
token = "env:RUNNER_TOKEN"
[identity]
secret = "env:IDENTITY_SECRET"`,
    env: { IDENTITY_SECRET: identitySecret },
  });
  const operations = protectedIn((await gateway.get('/openapi.json')).json.paths);
  const answers = (to: readonly Protected[], headers: Record<string, string> = {}) =>
    Promise.all(
      to.map(async ({ method, path }) => {
        const { status } = await fetch(gateway.url + path.replaceAll(/\{\w+\}/g, '1'), {
          method: method.toUpperCase(),
          headers: { 'content-type': 'application/json', ...headers },
          ...(method !== 'get' && { body }),
        });
        return `${status} ${method} ${path}`;
      }),
    );
  expect(operations.length).toBeGreaterThan(40);
  expect((await answers(operations)).filter((answer) => !answer.startsWith('401'))).toEqual([]);
  const ofOperators = operations.filter(({ scheme }) => scheme === 'operatorToken');
  const other = await operatorOf(database, ['status:read']);
  expect((await answers(ofOperators, other)).filter((answer) => !answer.startsWith('403'))).toEqual([]);
});
