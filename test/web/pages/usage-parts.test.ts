import { expect, test } from 'vitest';
import type { Generation } from '../../../src/chat/use-cases/generation.ts';
import { barChart, barHeight, scaleTop } from '../../../src/web/pages/usage/chart.ts';
import { dayFields, dayMistakes } from '../../../src/web/pages/usage/days.ts';
import { generationView } from '../../../src/web/pages/usage/generation.ts';
import { periodsOf, stepOf, totalsOf } from '../../../src/web/pages/usage/periods.ts';
import { csvPath, pathTo, readShown } from '../../../src/web/pages/usage/query.ts';
import { type Usage, usageBody } from '../../../src/web/pages/usage/view.ts';
import type { UsageSums } from '../../../src/chat/store/usage.ts';

const nowMs = Date.parse('2026-11-23T23:59:59Z');

function row(more: Partial<UsageSums>): UsageSums {
  const counts = { prompt_tokens: '3', completion_tokens: '2', cached_tokens: '1', cost: '5' };
  const none = { day: null, model: null, key_id: null, key_name: null };
  return { ...none, requests: '1', failed: '0', ...counts, ...more };
}

const shownOf = (query: string) => readShown(new URLSearchParams(query), nowMs);

test.each([
  ['2026-11-23', '2026-11-23', 'day', 1],
  ['2026-10-20', '2026-11-23', 'day', 35],
  ['2026-10-19', '2026-11-23', 'week', 6],
  ['2026-08-26', '2026-11-23', 'week', 14],
  ['2025-11-24', '2026-11-23', 'month', 13],
  ['2025-10-19', '2026-11-23', 'month', 14],
  ['1970-01-01', '1971-02-05', 'month', 14],
  ['9998-11-27', '9999-12-31', 'month', 14],
  ['9999-11-01', '9999-12-31', 'week', 9],
])('the days from %s to %s are in a chart by %s, in %i periods without a gap', (from, to, step, size) => {
  const periods = periodsOf(from, to, []);
  expect([stepOf(from, to), periods.length]).toEqual([step, size]);
  expect([periods[0]?.from, periods.at(-1)?.to]).toEqual([from, to]);
  for (const [index, { to: last }] of periods.slice(0, -1).entries())
    expect(Date.parse(periods[index + 1]?.from ?? '') - Date.parse(last)).toBe(86_400_000);
});

test('every day is in one period, so that the periods have the sum of the days', () => {
  const days = Array.from({ length: 400 }, (_, index) =>
    row({
      day: new Date(nowMs - index * 86_400_000).toISOString().slice(0, 10),
      cost: String(10 ** 15 + index),
    }),
  );
  for (const size of [7, 35, 36, 140, 141, 400]) {
    const own = days.slice(0, size);
    const periods = periodsOf(own.at(-1)?.day ?? '', own[0]?.day ?? '', days);
    expect(periods.reduce((sum, { totals }) => sum + totals.cost, 0n)).toBe(totalsOf(own).cost);
  }
});

test.each([
  [0n, 1n],
  [1n, 1n],
  [3n, 5n],
  [5n, 5n],
  [6n, 10n],
  [1_234_567n, 2_000_000n],
  [10n ** 40n + 1n, 2n * 10n ** 40n],
])('a scale for %s ends at %s', (highest, top) => {
  expect(scaleTop(highest)).toBe(top);
});

test('a bar is as high as its value, and what is above zero can be seen', () => {
  expect([-5n, 0n, 1n, 250n, 333n, 1_000n].map((value) => barHeight(value, 1_000n))).toEqual([
    0, 0, 1, 25, 33.3, 100,
  ]);
  expect(barHeight(1n, 10n ** 40n)).toBe(1);
});

test('a chart has a title, and every text in it is escaped; nothing in it is a style', () => {
  const hostile = '"><script>alert(1)</script>';
  const bars = [
    { value: 2n, text: hostile },
    { value: 0n, text: 'none' },
  ];
  const parts = { title: hostile, description: hostile, below: [hostile, hostile] } as const;
  const chart = String(barChart({ id: 'x', ...parts, bars, scale: String }));
  expect(chart).toMatch(/role="img"\s+aria-labelledby="x-title"/);
  expect(chart).toContain('<title id="x-title">&#34;&#62;&#60;script');
  expect(chart).not.toMatch(/<script|style=/);
  expect(chart.match(/class="bar"/g)).toHaveLength(1);
  expect(String(barChart({ id: 'x', ...parts, bars: [], scale: String }))).toContain('viewBox="0 0 12 100"');
});

test('the query of the page follows the rules of the API, and empty fields of its form are left out', () => {
  expect(shownOf('')).toMatchObject({
    from: '2026-10-25',
    to: '2026-11-23',
    model: undefined,
    measure: undefined,
  });
  const shown = shownOf('from=2026-11-01&to=&model=a%2Fb&key_id=0&show=tokens&notice=x');
  expect(shown).toEqual({ from: '2026-11-01', to: '2026-11-23', model: 'a/b', keyId: 0, measure: 'tokens' });
  expect(shown && pathTo(shown, { model: undefined })).toBe(
    '/usage?from=2026-11-01&to=2026-11-23&key_id=0&show=tokens',
  );
  expect(shown && csvPath(shown)).toBe('/v1/usage.csv?from=2026-11-01&to=2026-11-23&model=a%2Fb&key_id=0');
  expect(shownOf('show=__proto__')?.measure).toBeUndefined();
});

test.each([
  ['', undefined],
  ['from=2026-11-01&to=2026-11-23', undefined],
  [
    'from=2026-02-30&to=2026-11-23',
    { from: '“2026-02-30” is not a day. Choose one that exists, or write it as 2026-11-23.' },
  ],
  ['to=x', { to: '“x” is not a day. Choose one that exists, or write it as 2026-11-23.' }],
  [
    'from=2026-11-24',
    {
      from: '24 Nov 2026 is after the last day, 23 Nov 2026. Choose an earlier first day or a later last day.',
    },
  ],
  [
    'from=2025-10-18&to=2026-11-23',
    {
      from: 'From 18 Oct 2025 to 23 Nov 2026 are 402 days, and this page shows at most 401. Choose 19 Oct 2025 or a later first day.',
    },
  ],
])('of the days %s the page says what is wrong and what to choose', (query, expected) => {
  expect(dayMistakes(new URLSearchParams(query), '2026-11-23')).toEqual(expected);
});

test('a day that cannot be read stays in its field as it was typed', () => {
  const fields = String(dayFields({ from: '2026-02-30', to: '2026-11-23' }));
  expect(fields).toMatch(/name="from"\s+type="text"\s+value="2026-02-30"/);
  expect(fields).toMatch(/name="to"\s+type="date"\s+value="2026-11-23"/);
});

test.each([
  'from=2026-11-23&to=2026-11-22',
  'from=2020-01-01',
  'from=2026-02-30',
  'from=x',
  'from=0000-01-01&to=0000-01-02',
  'to=0000-01-01',
  'model=%00',
  `model=${'x'.repeat(201)}`,
  'key_id=-1',
  'key_id=x',
])('the query %s is refused', (query) => {
  expect(shownOf(query)).toBeUndefined();
});

function usage(more: Partial<Usage>): Usage {
  const none = { days: [], models: [], keys: [], areAllKeys: true };
  return { ...none, currency: 'USD', today: '2026-11-23', ...more };
}

const shown = {
  from: '2026-10-20',
  to: '2026-11-23',
  model: undefined,
  keyId: undefined,
  measure: undefined,
};

test('a page with the longest hostile names in every row is below 100 kB and has none of their markup', () => {
  const huge = { requests: '9'.repeat(15), failed: '9'.repeat(15), prompt_tokens: '9'.repeat(18) };
  const most = {
    ...huge,
    completion_tokens: '9'.repeat(18),
    cached_tokens: '9'.repeat(18),
    cost: '9'.repeat(15),
  };
  const days = periodsOf(shown.from, shown.to, []).map(({ from }) => row({ ...most, day: from }));
  const hostile = `<b onclick="x">\u202e'&`;
  const models = Array.from({ length: 50 }, (_, index) =>
    row({ ...most, model: `${index}${hostile.repeat(5)}`.slice(0, 64) }),
  );
  const keys = Array.from({ length: 1_000 }, (_, index) => {
    const name = `${index}${hostile.repeat(5)}`.slice(0, 64);
    return row({ ...most, key_id: index, key_name: name });
  });
  const only = { ...shown, model: hostile, keyId: 1 };
  const body = String(usageBody(only, usage({ days, models, keys, areAllKeys: false })));
  expect(body.length).toBeLessThan(95_000);
  expect(body).not.toMatch(/<b |<i>|style=/);
  // the form keeps the filter as it is, unseen
  expect(body.replaceAll(/<input type="hidden"[^>]*>/g, '')).not.toContain('\u202e');
  expect(body).toContain('986 others');
  expect(body).toContain('36 others');
});

test('the page shows cost, or requests where nothing had a cost', () => {
  const days = [row({ day: '2026-11-22', cost: '1250000' })];
  const paid = String(usageBody(shown, usage({ days, models: days, keys: days })));
  expect(paid).toMatch(/<title>22 Nov 2026: 1\.25 USD</);
  const free = String(usageBody(shown, usage({ days: [row({ day: '2026-11-22', cost: '0' })] })));
  expect(free).toMatch(/<title>22 Nov 2026: requests 1</);
});

const generation: Generation = {
  id: '00000000-0000-7000-8000-000000000000',
  model: '<b>\u202emodel',
  upstream: null,
  created_at: '2026-11-23T10:00:00.000Z',
  streamed: true,
  status: 'running',
  prompt_tokens: null,
  completion_tokens: null,
  cached_tokens: null,
  cache_write_tokens: null,
  is_estimate: null,
  price: null,
  cost: null,
  held: '0.5',
  captured: '0',
  released: '0',
  key_id: null,
  ended_at: null,
  reason: null,
  events: [{ seq: 7, type: 'chat_admitted', at: '2026-11-23T10:00:00.000Z' }],
  first_byte_ms: null,
  latency_ms: null,
};

test('a request that runs is shown with its hold, without what is not known yet', () => {
  const text = String(generationView(generation, undefined, 'USD').body);
  expect(text).toContain('value="0.5"');
  expect(text).toContain('&#60;b&#62;model');
  for (const name of ['Ended', 'Upstream', 'Input tokens', 'Reason', 'Cost'])
    expect(text).not.toContain(`<dt>${name}</dt>`);
});

test('a request is shown with its prices, and once it has ended with how its cost follows from them', () => {
  const price = { input: '2.5', output: '10', cached_input: '1.25', cache_write: '3' };
  const running = String(generationView({ ...generation, price }, undefined, 'USD').body).replaceAll(
    /<[^>]*>|\s+/g,
    ' ',
  );
  expect(running).toMatch(/Tokens +Price of a million +Input +2\.50 +USD +Output +10\.00 +USD/);
  const tokens = { prompt_tokens: 12, cached_tokens: 4, completion_tokens: 1_234_567 };
  const ended = { ...generation, ...tokens, price, status: 'completed', cost: '12.345695' } as const;
  const text = String(generationView(ended, undefined, 'USD').body).replaceAll(/<[^>]*>|\s+/g, ' ');
  expect(text.replaceAll(/ +/g, ' ')).toContain(
    'Input 8 2.50 USD 0.000020 USD Input from the cache 4 1.25 USD 0.000005 USD Output 1,234,567 10.00 USD 12.345670 USD',
  );
  expect(text.replaceAll(/ +/g, ' ')).toContain('is the cost: 12.345695 USD.');
  expect(text).not.toContain('Input written to the cache');
});

test('an amount beyond a form’s limit is shown unchanged', () => {
  const ended = { ...generation, status: 'completed', cost: '1234567890.5' } as const;
  expect(String(generationView(ended, undefined, 'USD').body)).toMatch(/1234567890\.5/);
});
