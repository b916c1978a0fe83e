import { describe, expect, test } from 'vitest';
import { type Aging, ageExport } from '../../../../src/finance/use-cases/books/age-books.ts';
import { agingText } from '../../../../src/finance/use-cases/books/aging-text.ts';
import { openFileSource } from '../../../../src/finance/use-cases/books/source.ts';
import type { RecordedEvent } from '../../../../src/ledger/rules/event.ts';
import { paidQuote, recorded, type StreamEvent } from '../../../audit/rules/bookkeeping/support.ts';
import { namesOfTokens } from '../../../../src/audit/rules/bookkeeping/commodity.ts';
import { Rates } from '../../../../src/audit/rules/bookkeeping/rates.ts';
import { tollbook } from '../../../support/program.ts';
import { booksFrom, exportFile, february, january, readCsv, twoMonths } from './support.ts';

const dayMs = 86_400_000;
const startMs = Date.parse('2026-01-01T00:00:00Z');
const aged =
  /^(?:Assets:(?:Unconfirmed|Receivable:Spends)|Liabilities:(?:Undelivered|RefundsDue|Suspense|PrepaidCredit))\b/;

const agingAt = (file: string, asOfMs: number): Promise<Aging> =>
  ageExport(openFileSource(file, Date.now(), asOfMs), asOfMs);

/** Events with the day on which each was recorded, from the first of January on. */
function onDays(events: readonly (readonly [day: number, StreamEvent])[]): RecordedEvent[] {
  return recorded(events.map(([, event]) => event)).map((event, i) => ({
    ...event,
    at: new Date(startMs + (events[i]?.[0] ?? 0) * dayMs).toISOString(),
  }));
}

const credit = (type: string, data: object): StreamEvent =>
  ({ stream: 'account:7', event: { type, data: { account_id: 7, ...data } } }) as StreamEvent;

const itemsOf = ({ rows }: Aging): string[] =>
  rows.map(({ kind, atoms, ageDays, bucket }) => `${kind} ${atoms} ${ageDays} ${bucket}`);

describe('an aging', () => {
  test.each([
    ['January', january],
    ['February', february],
  ])('at the end of %s adds up to the closing balances of every account that ages', async (_, period) => {
    const file = exportFile(twoMonths().both);
    const sums = new Map<string, bigint>();
    for (const { account, commodity, atoms } of (await agingAt(file, period.toMs)).rows) {
      const key = `${account} ${commodity.name}`;
      if (account !== undefined) sums.set(key, (sums.get(key) ?? 0n) + atoms);
    }
    const closing = readCsv((await booksFrom(file, period, 'summary')).toString())
      .filter(({ account = '', closing_atoms: atoms }) => aged.test(account) && atoms !== '0')
      .map(
        ({ account, commodity, closing_atoms: atoms = '' }) =>
          `${account} ${commodity} ${atoms.replace('-', '')}`,
      );
    expect(closing).not.toEqual([]);
    expect([...sums].map(([key, atoms]) => `${key} ${atoms}`).toSorted()).toEqual(closing.toSorted());
  });

  test('has a settlement without an outcome, until there is one', async () => {
    const quote = paidQuote(1);
    quote.start();
    quote.markUnknown();
    const started = quote.events.splice(0);
    quote.settle('chain');
    const file = exportFile(
      onDays([
        ...started.map((event) => [0, event] as const),
        ...quote.events.map((event) => [3, event] as const),
      ]),
    );
    expect(itemsOf(await agingAt(file, startMs + 2 * dayMs))).toEqual([`settlement ${quote.amount} 2 0-7`]);
    expect(itemsOf(await agingAt(file, startMs + 4 * dayMs))).toEqual([`undelivered ${quote.amount} 1 0-7`]);
  });

  test('takes credit from the oldest grant first, and gives a correction back to those that were used last', async () => {
    const chat = { key_id: 1, chat_id: '00000000-0000-4000-8000-00000000000b' };
    const inChat = (type: string, data: object): StreamEvent => ({
      ...credit(type, { ...chat, ...data }),
      stream: `chat:${chat.chat_id}`,
    });
    const completed = {
      ending: 'recovered' as const,
      model: 'large',
      prompt_tokens: 0,
      completion_tokens: 0,
      is_estimate: true,
    };
    const events = onDays([
      [0, credit('credit_account_opened', { name: 'acme' })],
      [0, credit('credit_granted', { amount_micros: '100' })],
      [31, credit('credit_granted', { amount_micros: '50' })],
      [39, inChat('credit_held', { amount_micros: '120' })],
      [
        40,
        {
          stream: `chat:${chat.chat_id}`,
          event: { type: 'chat_completed', data: { ...completed, cost_micros: '120' } },
        },
      ],
      [40, inChat('credit_captured', { amount_micros: '120', is_estimate: true })],
      [41, inChat('credit_corrected', { amount_micros: '30' })],
    ]);
    const at = (day: number) => agingAt(exportFile(events), startMs + day * dayMs);
    expect(itemsOf(await at(38))).toEqual(['granted_credit 100 38 31-60', 'granted_credit 50 7 0-7']);
    // held credit is still owed
    expect(itemsOf(await at(40))).toEqual(['granted_credit 100 40 31-60', 'granted_credit 50 9 8-30']);
    expect(itemsOf(await at(41))).toEqual(['granted_credit 30 10 8-30']);
    expect(itemsOf(await at(131))).toEqual([
      'granted_credit 10 131 over 90',
      'granted_credit 50 100 over 90',
    ]);
    expect((await at(131)).rows.map(({ name, accountName }) => [name, accountName])).toEqual([
      ['account:7', 'acme'],
      ['account:7', 'acme'],
    ]);
  });

  test('says the same as text, CSV and JSON', async () => {
    const aging = await agingAt(exportFile(twoMonths().both), january.toMs);
    const written = (format: Parameters<typeof agingText>[1]): string =>
      [...agingText(aging, format)].join('');
    const amounts = aging.rows.map(({ atoms }) => String(atoms));
    expect(readCsv(written('csv')).map(({ atoms }) => atoms)).toEqual(amounts);
    const json = JSON.parse(written('json')) as { items: { atoms: string }[]; totals: { atoms: string }[] };
    expect(json.items.map(({ atoms }) => atoms)).toEqual(amounts);
    expect(json.totals.map(({ atoms }) => atoms)).toEqual(aging.totals.map(({ total }) => String(total)));
    expect(written('text').match(/^ {2}2026-/gm)).toHaveLength(amounts.length);
  });
});

test('an aging says what amounts are worth at its date, in every format, and where no rate is known', async () => {
  const aging = await agingAt(exportFile(twoMonths().both), january.toMs);
  const rates = new Rates([
    { day: '2026-01-31', commodity: 'USDC-84532', currency: 'EUR', text: '900' },
    // of the day that the aging does not include
    { day: '2026-02-01', commodity: 'USDC-84532', currency: 'EUR', text: '1' },
  ]);
  const written = (format: Parameters<typeof agingText>[1]): string =>
    [...agingText(aging, format, { rates, currency: 'EUR' })].join('');
  expect(written('text')).toContain('refund due: 0.001000 USDC-84532 (0.900000 EUR), 1 item\n');
  expect(written('text')).toContain('granted credit: 9.000000 CREDIT (no rate in EUR), 1 item\n');
  expect(written('text')).toMatch(/Z {2}0 days {2}0\.001000 \(0\.900000 EUR\) {2}0x/);
  const values = readCsv(written('csv')).map((row) => [
    row['commodity'],
    row['value'],
    row['value_currency'],
  ]);
  expect(values).toContainEqual(['USDC-84532', '0.900000', 'EUR']);
  expect(values).toContainEqual(['CREDIT', '', 'EUR']);
  const json = JSON.parse(written('json')) as { items: { commodity: string; value: string | null }[] };
  expect(json.items.find(({ commodity }) => commodity === 'CREDIT')).toMatchObject({ value: null });
});

test('a list has no name for a token whose symbol another token of its network has too', () => {
  const token = { network: 'eip155:10', asset: '0xa', symbol: 'USDC', decimals: 6 };
  const nameOf = namesOfTokens([
    token,
    { ...token, asset: '0xb', symbol: 'usdc' },
    { ...token, network: 'eip155:1' },
  ]);
  expect(nameOf(token)).toBeUndefined();
  expect(nameOf({ ...token, network: 'eip155:1' })).toBe('USDC-1');
  expect(nameOf({ ...token, network: 'eip155:1', asset: '0xc' })).toBeUndefined();
  expect(nameOf({ network: 'eip155:10', symbol: 'ETH' })).toBe('ETH-10');
});

const run = (...args: string[]) => tollbook(['aging', '--input', exportFile(twoMonths().both), ...args]);

describe('tollbook aging', () => {
  test('reads an export at a date', async () => {
    const ended = await run('--as-of', '2026-02', '--exported-at', '2026-03-01');
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(ended.stdout).toMatch(
      /^What was open at 2026-02-01T00:00:00\.000Z, by the time of recording; ages in days\n/,
    );
    expect(ended.stdout).toContain('refund due: 0.001000 USDC-84532, 1 item\n');
  });

  test('refuses a date that has not come, a text that is not a date, and an unknown format', async () => {
    for (const [args, words] of [
      [['--as-of', '2999-01'], '--as-of is in the future'],
      [['--as-of', 'yesterday'], '--as-of is a date or time'],
      [['--as-of', '2026-02', '--format', 'pdf'], '--format is text, csv, json'],
      [[], '--input needs --as-of'],
    ] as const) {
      const ended = await run(...args);
      expect(ended).toMatchObject({ code: 2, stderr: expect.stringContaining(words) });
    }
  });
});
