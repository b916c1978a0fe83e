import { expect, test } from 'vitest';
import { chatStatus } from '../../src/chat/use-cases/chat-status.ts';
import { chatFigures, logFigures } from '../../src/app/metric-values.ts';
import { createMetrics, type Figure } from '../../src/ledger/metrics/metrics.ts';
import { createUpstreamHealth } from '../../src/chat/peers/upstream/health.ts';
import { createSince } from '../../src/base/runtime/since.ts';
import { createLastKnown } from '../../src/base/runtime/last-known.ts';
import type { AnchorLag } from '../../src/audit/use-cases/log/anchor-lag.ts';

/** What a scrape says of these figures, without comments. */
async function scrape(figures: readonly Figure[]): Promise<string[]> {
  const metrics = createMetrics('0');
  for (const figure of figures) metrics.add(figure);
  const { body } = await metrics.text();
  return body.split('\n').filter((line) => figures.some(({ name }) => line.startsWith(name)));
}

const ether = 10n ** 18n;
const chat = { status: 'ok', since: '', models: {} } as const;

test('gas is given in ether and in transactions by purpose, and is missing if no key pays for any', async () => {
  const holds = createLastKnown<{ count: number; oldestMs: number }>();
  const of = (funds?: { balanceWei: bigint; costWei: bigint }) =>
    scrape(
      chatFigures({ status: () => chat, holds, funds: () => funds }).filter(({ name }) =>
        name.startsWith('tollbook_gas'),
      ),
    );
  expect(await of()).toEqual([]);
  expect(await of({ balanceWei: 5n * ether, costWei: ether / 2n })).toEqual([
    'tollbook_gas_balance_ether{purpose="spends"} 5',
    'tollbook_gas_affordable_transactions{purpose="spends"} 10',
  ]);
  expect(await of({ balanceWei: 1n, costWei: 0n })).toContain(
    'tollbook_gas_affordable_transactions{purpose="spends"} 1000000',
  );
});

test('a value that was never read is missing, and one that cannot be read any more stays and says its age', async () => {
  let nowMs = 1_000;
  const unsealed = createLastKnown<{ count: number; oldestMs: number }>(() => nowMs);
  const lags = createLastKnown<ReadonlyMap<string, AnchorLag>>(() => nowMs);
  const figures = logFigures({ sealEveryMs: 1_000, hasAnchors: true, lags, unsealed, funds: new Map() });
  const own = figures.filter(({ name }) => !name.includes('gas') && !name.includes('age'));
  expect(await scrape(own)).toEqual(['tollbook_log_seal_interval_seconds 1']);
  unsealed.learn({ count: 7, oldestMs: 2_500 });
  lags.learn(new Map([['copies', { size: 3, behindEvents: 4, behindMs: 90_000, isLate: true }]]));
  nowMs += 30_000;
  expect(await scrape(own)).toEqual([
    'tollbook_log_unsealed_events 7',
    'tollbook_log_oldest_unsealed_seconds 2.5',
    'tollbook_log_seal_interval_seconds 1',
    'tollbook_anchor_behind_events{anchor="copies"} 4',
    'tollbook_anchor_behind_seconds{anchor="copies"} 90',
    'tollbook_anchor_up{anchor="copies"} 0',
  ]);
  const [age] = figures.filter(({ name }) => name === 'tollbook_figures_age_seconds');
  expect(age && [...age.read()]).toEqual([{ labels: { part: 'log' }, value: 30 }]);
});

test('a model is not up while its only upstream is tested again: the alert that waits for two minutes fires for one that never answers', () => {
  let nowMs = 0;
  const pauses = { failuresToOpen: 1, firstPauseMs: 1_000, maxPauseMs: 30_000 };
  const health = createUpstreamHealth({ ...pauses, nowMs: () => nowMs, random: () => 0.5 });
  const models = new Map([['m', { name: 'm', targets: [{ upstream: 'u', model: 'm' }] }]]);
  const isUp = () =>
    chatStatus({ models, health, spending: undefined } as never, createSince()).models['m']?.ok;
  const choose = () => health.choose([{ name: 'u', model: 'm', weight: 1 }]);
  expect(isUp()).toBe(true);
  const first = choose();
  if (first.kind === 'chosen') first.attempt.report({ kind: 'failure' });
  expect(isUp()).toBe(false);
  nowMs = 60_000;
  const second = choose();
  expect(second.kind).toBe('chosen');
  expect(health.circuitOf({ name: 'u', model: 'm' })).toBe('probing');
  expect(isUp()).toBe(false);
  if (second.kind === 'chosen') second.attempt.report({ kind: 'success' });
  expect(isUp()).toBe(true);
});
