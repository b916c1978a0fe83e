import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { isInstalled, notChecked, packageEnvironment } from '../support/installed.ts';
import { readPage } from '../support/pages.ts';

const rulesFile = path.resolve(import.meta.dirname, '../../docs/operations/prometheus-rules.yml');
const rules = readFileSync(rulesFile, 'utf8');
const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name);
const absence = notChecked('THE ALERT RULES', isInstalled('promtool') ? [] : ['promtool of prometheus']);

test('the runbook has an entry for each alert, in the order of the rules, and for no other', () => {
  const { text } = readPage('docs/operations/runbook.md');
  expect(alerts.length).toBeGreaterThan(10);
  expect([...text.matchAll(/^- `(Tollbook\w+)`: \S/gm)].map(([, name]) => name)).toEqual(alerts);
});

test('the rules ask only for metrics that the page of metrics names', () => {
  const { text } = readPage('docs/operations/metrics.md');
  const asked = new Set(
    [...rules.matchAll(/\b(tollbook_\w+?)(?:_bucket)?\b(?=[)[{ ])/g)].map(([, name = '']) => name),
  );
  expect(asked.size).toBeGreaterThan(10);
  expect([...asked].filter((name) => !text.includes(`\`${name}\``))).toEqual([]);
});

/** A gateway that has each fault from minute 5 on until minute 30, and what is to fire meanwhile. */
const faults: readonly (readonly [
  alert: string,
  series: string,
  good: string,
  bad: string,
  labels?: string,
  /** A series that stays as it is, and its value. */
  beside?: readonly [series: string, value: string],
])[] = [
  ['TollbookDown', 'up{job="tollbook"}', '1', '0', 'job="tollbook"'],
  ['TollbookLedgerHalted', 'tollbook_ledger_halted', '0', '1'],
  // missing if a process is live
  ['TollbookQuiet', 'tollbook_quiet', '_', '1'],
  ['TollbookLedgerUnreachable', 'tollbook_ledger_unreachable_seconds', '0', '60'],
  ['TollbookCircuitOpen', 'tollbook_facilitator_circuit_open', '0', '1'],
  ['TollbookFacilitatorDegraded', 'tollbook_facilitator_up', '1', '0'],
  ['TollbookChainDown', 'tollbook_chain_up{network="eip155:8453"}', '1', '0', 'network="eip155:8453"'],
  [
    'TollbookRateNotCurrent',
    'tollbook_rate_current{symbol="USDC",network="eip155:8453"}',
    '1',
    '0',
    'symbol="USDC",network="eip155:8453"',
  ],
  ['TollbookListingGone', 'tollbook_listing_up{service="1"}', '1', '0', 'service="1"'],
  ['TollbookDiscoveryUnknown', 'tollbook_discovery_up', '1', '0'],
  ['TollbookTriggerBehind', 'tollbook_trigger_behind{trigger="deposits"}', '0', '1', 'trigger="deposits"'],
  ['TollbookSettlementsUnknown', 'tollbook_settlement_oldest_open_seconds', '0', '1000'],
  [
    'TollbookCallsWaiting',
    'tollbook_call_oldest_waiting_seconds{service="1",runner="a"}',
    '3',
    '400',
    'service="1",runner="a"',
  ],
  [
    'TollbookDeliveriesFailing',
    'tollbook_call_oldest_failing_seconds{service="1",runner="a"}',
    '0',
    '700',
    'service="1",runner="a"',
  ],
  ['TollbookDeadLetters', 'tollbook_calls_dead', '0', '3'],
  ['TollbookRunnerPaused', 'tollbook_runner_paused{runner="a"}', '0', '1', 'runner="a"'],
  ['TollbookModelDown', 'tollbook_model_up{model="m"}', '1', '0', 'model="m"'],
  [
    'TollbookEtherLow',
    'tollbook_gas_affordable_transactions{purpose="spends"}',
    '400',
    '9',
    'purpose="spends"',
  ],
  ['TollbookAnchorBehind', 'tollbook_anchor_up{anchor="s3"}', '1', '0', 'anchor="s3"'],
  ['TollbookClockOff', 'tollbook_clock_offset_seconds', '0', '-3'],
  [
    'TollbookSealerBehind',
    'tollbook_log_oldest_unsealed_seconds',
    '0',
    '62',
    '',
    ['tollbook_log_seal_interval_seconds', '1'],
  ],
  ['TollbookFiguresOld', 'tollbook_figures_age_seconds{part="calls"}', '4', '90', 'part="calls"'],
  ['TollbookEventLoopSlow', 'nodejs_eventloop_lag_max_seconds', '0.02', '0.9'],
  ['TollbookDatabaseConnectionsAwaited', 'tollbook_database_connections_awaited', '0', '40'],
];

test('the rule of each gauge has a fault to fire for', () => {
  expect(alerts.filter((name) => !faults.some(([alert]) => alert === name))).toEqual(['TollbookAppendsSlow']);
});

test.skipIf(absence !== '')(
  `Prometheus accepts the rules, and each alert fires for its fault and is resolved after it${absence}`,
  () => {
    const dir = mkdtempSync(path.join(tmpdir(), 'tollbook-rules-'));
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
    const tests = faults.map(([alert, series, good, bad, labels = '', beside]) => {
      const expected = labels === '' ? [] : labels.split(',').map((one) => one.replace('=', ': '));
      const severity = new RegExp(`alert: ${alert}\\n[^]*?severity: (\\w+)`).exec(rules)?.[1] ?? '';
      const summary = (new RegExp(`alert: ${alert}\\n[^]*?summary: (.*)\\n`).exec(rules)?.[1] ?? '').replace(
        /^(['"])(.*)\1$/,
        '$2',
      );
      const value = alert === 'TollbookDeadLetters' ? bad : '';
      const text = summary
        .replace('{{ $value }}', value)
        .replace(/\{\{ \$labels\.\w+ \}\}/, labels.split('"')[1] ?? '');
      return `
  - interval: 1m
    input_series:
      - {series: '${series}', values: '${good}x5 ${bad}x25 ${good}x60'}${constant(beside)}
    alert_rule_test:
      - {eval_time: 4m, alertname: ${alert}, exp_alerts: []}
      - eval_time: 29m
        alertname: ${alert}
        exp_alerts: [{exp_labels: {${[`severity: ${severity}`, ...expected].join(', ')}}, exp_annotations: {summary: ${JSON.stringify(text)}}}]
      - {eval_time: 40m, alertname: ${alert}, exp_alerts: []}`;
    });
    writeFileSync(
      path.join(dir, 'tests.yml'),
      `rule_files: [${rulesFile}]\nevaluation_interval: 1m\ntests:${tests.join('')}\n`,
    );
    expect(promtool(['check', 'rules', rulesFile])).toContain(`${alerts.length} rules found`);
    expect(promtool(['test', 'rules', path.join(dir, 'tests.yml')])).toContain('SUCCESS');
  },
);

function constant(beside: readonly [series: string, value: string] | undefined): string {
  return beside === undefined ? '' : `\n      - {series: '${beside[0]}', values: '${beside[1]}x90'}`;
}

function promtool(args: readonly string[]): string {
  return execFileSync('promtool', args, { encoding: 'utf8', stdio: 'pipe', env: packageEnvironment() });
}
