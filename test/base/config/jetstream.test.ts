import { expect, test } from 'vitest';
import { bare, env, parse, wrongs } from './support.ts';

const text = `${bare('ledger_name = "books"')}
[[runners]]
services = [1]
mode = "jetstream"
token = "env:RUNNER_TOKEN"
[jetstream]
servers = ["nats://127.0.0.1:4222"]
`;
const withSecret = `${text}credentials = "env:NATS"\n`;
const loginOf = async (secret: string) =>
  (await parse(withSecret, {}, { ...env, NATS: secret })).config.jetstream?.login;

test('[jetstream] has the name of the ledger, and its credentials are one secret: user and password, or the seed of an NKey', async () => {
  expect((await parse(text)).config.jetstream).toEqual({
    servers: ['nats://127.0.0.1:4222'],
    name: 'books',
    replicas: 3,
    maxBytes: 1_073_741_824,
    maxWaiting: 500,
    takeWithinSecs: 120,
    login: undefined,
  });
  expect(await loginOf('gateway:a:password')).toEqual({
    kind: 'password',
    user: 'gateway',
    password: 'a:password',
  });
  const seed = `SU${'A2'.repeat(28)}`;
  expect(await loginOf(seed)).toEqual({ kind: 'nkey', seed });
});

test.each(['hush', ':hush', 'hush:', `SA${'A2'.repeat(28)}`])(
  'the credentials %s are refused, and no message contains them',
  async (secret) => {
    const found = await wrongs(withSecret, {}, { ...env, NATS: secret });
    expect(found).toEqual([expect.stringContaining('jetstream.credentials: names a secret that must be')]);
    expect(found.join()).not.toContain(secret);
  },
);
