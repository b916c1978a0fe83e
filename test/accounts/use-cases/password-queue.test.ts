import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createPasswordQueue, type PasswordSender } from '../../../src/accounts/use-cases/password-queue.ts';

const stranger = (client: string): PasswordSender => ({ client, isKnownDevice: false });
const device = (client: string): PasswordSender => ({ client, isKnownDevice: true });

/** A queue with one place, whose work ends one at a time when `finish` is called. */
function start(waitMs = 60_000) {
  let nowMs = 0;
  const queue = createPasswordQueue({ places: 1, waitMs, nowMs: () => nowMs });
  const running: (() => void)[] = [];
  const served: string[] = [];
  const hash = (client: string): Promise<unknown> =>
    queue.run(async () => {
      served.push(client);
      await new Promise<void>((resolve) => void running.push(resolve));
      return true;
    });
  const send = (sender: PasswordSender): Promise<unknown> => queue.as(sender, () => hash(sender.client));
  const finish = async (count: number): Promise<void> => {
    for (let at = 0; at < count; at++) {
      await turn();
      running.shift()?.();
    }
    await turn();
  };
  return { hash, send, finish, served, passMs: (ms: number) => (nowMs += ms) };
}

test('a client that sends its first password waits for no client that had one hashed, however many those send', async () => {
  const { send, finish, served } = start();
  for (let at = 0; at < 900; at++) void send(stranger(`attacker ${at % 45}`));
  await finish(50);
  void send(stranger('Ada'));
  await finish(2);
  expect(served.slice(51)).toContain('Ada');
});

test('clients that send many passwords get equally many places', async () => {
  const { send, finish, served } = start();
  for (let at = 0; at < 100; at++) void send(stranger('many'));
  for (let at = 0; at < 10; at++) void send(stranger('few'));
  await finish(19);
  expect(served.filter((client) => client === 'few')).toHaveLength(10);
});

test('a known device gets every second place, also among clients that send their first password', async () => {
  const { send, finish, served } = start();
  for (let at = 0; at < 900; at++) void send(stranger(`address ${at}`));
  for (let at = 0; at < 4; at++) void send(device('Ada'));
  await finish(8);
  expect(served.filter((client) => client === 'Ada')).toHaveLength(4);
});

test('known devices leave every second place to clients that had fewer', async () => {
  const { send, finish, served } = start();
  for (let at = 0; at < 100; at++) void send(device('of an attacker'));
  await finish(5);
  void send(stranger('Ada'));
  await finish(2);
  expect(served).toContain('Ada');
});

test('what a client had hashed more than a minute ago does not count', async () => {
  const { send, finish, served, passMs } = start();
  for (let at = 0; at < 6; at++) void send(stranger('Ada'));
  await finish(5);
  passMs(60_001);
  void send(stranger('Eve'));
  void send(stranger('Ada'));
  await finish(1);
  expect(served.at(-1)).toBe('Eve');
  await finish(1);
  expect(served.at(-1)).toBe('Ada');
});

test('work whose turn does not come in time is not run, and its place stays free', async () => {
  const { send, finish, served } = start(5);
  void send(stranger('one'));
  expect(await send(stranger('two'))).toBeUndefined();
  await finish(1);
  void send(stranger('three'));
  await turn();
  expect(served).toEqual(['one', 'three']);
});

test('a password whose sender is not known has no place before known devices', async () => {
  const { hash, send, finish, served } = start();
  void send(device('Bob'));
  void hash('nobody');
  void send(device('Ada'));
  await finish(2);
  expect(served).toEqual(['Bob', 'Ada', 'nobody']);
});
