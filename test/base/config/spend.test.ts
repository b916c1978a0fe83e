import { describe, expect, it } from 'vitest';
import { freeModel, localUpstream, networks, parse, wrongs } from './support.ts';

const key = `0x${'17'.repeat(32)}`;
const address = (digits: string) => `0x${digits.repeat(20)}`;
const models = `${localUpstream}\n${freeModel}`;

function config(change: Readonly<Record<string, string | undefined>> = {}): string {
  const table: Record<string, string | undefined> = {
    network: '"eip155:8453"',
    contract: `"${address('ab')}"`,
    token: `"${address('cd')}"`,
    operator_key: '"env:OPERATOR_KEY"',
    service_id: '1',
    min_charge: '"1000"',
    max_spend: '"50000000"',
    atoms_per_unit: '"1000000"',
    atoms_per_native_unit: '"3200000000"',
    ...change,
  };
  const lines = Object.entries(table).flatMap(([name, value]) =>
    value === undefined ? [] : `${name} = ${value}`,
  );
  return `bind_address = "127.0.0.1:8402"\nfeatures = ["chat"]\n${models}\n${networks}[spend]\n${lines.join('\n')}`;
}

async function read(text: string, variables: Record<string, string> = { OPERATOR_KEY: key }) {
  return (await parse(text, { 'conf/key': `${key}\n` }, variables)).config.spend;
}

const wrongsWith = (change: Readonly<Record<string, string | undefined>>, value = key) =>
  wrongs(config(change), {}, { OPERATOR_KEY: value });

describe('payment by spends', () => {
  it('takes the key from a file, in upper case too', async () => {
    const text = config({ operator_key: '"file:key"' });
    expect((await read(text, {}))?.operatorKey).toBe(key);
    const upper = `0x${key.slice(2).toUpperCase()}`;
    expect((await read(config(), { OPERATOR_KEY: upper }))?.operatorKey).toBe(key);
  });

  it('is off without its table', async () => {
    expect(await read(config().split('\n[spend]', 1)[0] ?? '')).toBeUndefined();
  });

  const mistakes: [string, Record<string, string | undefined>, string][] = [
    ['no key', { operator_key: undefined }, 'spend.operator_key: is missing'],
    ['a misspelt name', { min_chrage: '"1"' }, 'did you mean min_charge'],
    ['the zero address', { contract: `"${address('00')}"` }, 'is the zero address'],
    ['a float', { min_charge: '0.5' }, 'a float is not exact'],
    ['a minimum charge of zero', { min_charge: '"0"' }, 'must be atoms of the token'],
    ['more than 2^256', { max_spend: `"${2n ** 256n}"` }, 'must be atoms of the token'],
    [
      'a maximum spend below the minimum charge',
      { max_spend: '"999"' },
      'must not be below min_charge (1000)',
    ],
    ['an exposure below the minimum charge', { exposure: '"999"' }, 'would never apply'],
    ['an exposure that is not a number', { exposure: '"-1"' }, 'exposure: must be atoms of the token'],
    ['a network of another kind', { network: '"solana:1"' }, 'must be eip155'],
    [
      'a network without an RPC',
      { network: '"eip155:1"' },
      'spend.network: has no RPC: [[networks]] does not name',
    ],
  ];
  it.each(mistakes)('refuses %s', async (_, change, message) => {
    expect((await wrongsWith(change)).join('\n')).toContain(message);
  });

  it.each(['0x', key.slice(0, -1), `0x${'0'.repeat(64)}`, `0x${'f'.repeat(64)}`])(
    'refuses an invalid private key without printing it: %s',
    async (value) => {
      const [mistake = '', ...more] = await wrongsWith({}, value);
      expect(more).toEqual([]);
      expect(mistake).toBe('spend.operator_key: names no private key (0x and 64 hex digits)');
    },
  );
});
