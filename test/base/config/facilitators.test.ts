import { describe, expect, it } from 'vitest';
import { minimal, mistakesIn, parseX402 } from './support.ts';

describe('several facilitators', () => {
  const only = minimal().replace(/^facilitator_url = .*$/m, '');
  const listed = (...tables: readonly string[]): string =>
    only + tables.map((table) => `\n[[facilitators]]\n${table}`).join('\n');

  it('are asked in their order, each with its own token, and events name them by their address', async () => {
    const text = listed(
      `url = "https://one.example/x402/"\ntoken = "env:FACILITATOR_TOKEN"\nwallet_factories = ["0x${'ab'.repeat(20)}"]`,
      'url = "http://127.0.0.1:9"',
    );
    expect((await parseX402(text)).facilitators).toEqual([
      {
        name: 'one.example/x402',
        label: 'one.example/x402',
        url: 'https://one.example/x402',
        tokens: ['secret'],
        walletFactories: [`0x${'ab'.repeat(20)}`],
      },
      {
        name: '127.0.0.1:9',
        label: '127.0.0.1:9',
        url: 'http://127.0.0.1:9',
        tokens: undefined,
        walletFactories: [],
      },
    ]);
  });

  it.each<[what: string, text: string, mistakes: readonly unknown[]]>([
    [
      'twice the same',
      listed('url = "https://a.example"', 'url = "https://a.example/"'),
      [/facilitators\[1\]\.url: is the one of facilitators\[0\] too/],
    ],
    ['a key that is none', listed('url = "https://a.example"\nweight = 2'), [/weight: is not a known key/]],
    ['one without an address', listed('token = "env:FACILITATOR_TOKEN"'), [/url: is missing/]],
    [
      'a factory that is no address',
      listed('url = "https://a.example"\nwallet_factories = ["0x12"]'),
      [/wallet_factories\[0\]: /],
    ],
    ['one over plain http', listed('url = "http://a.example"'), [/url: must be https, or http on loopback/]],
    ['an empty list', `facilitators = []\n${only}`, [/facilitators: names none/]],
    [
      'a key of the single one beside the list',
      `${minimal('facilitator_token = "env:FACILITATOR_TOKEN"')}\n[[facilitators]]\nurl = "https://a.example"`,
      [/facilitator_url: is in \[\[facilitators\]\]/, /facilitator_token: is in \[\[facilitators\]\]/],
    ],
  ])('are refused with the place of the mistake: %s', async (_, text, mistakes) => {
    expect(await mistakesIn(text)).toEqual(mistakes.map((one) => expect.stringMatching(one as RegExp)));
  });
});
