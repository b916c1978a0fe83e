import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { createMetrics } from '../../src/ledger/metrics/metrics.ts';
import { isInstalled, notChecked, packageEnvironment } from '../support/installed.ts';
import { root } from '../support/pages.ts';
import { temporaryFolder } from '../support/program.ts';

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');
const dashboard = JSON.parse(read('docs/operations/grafana-dashboard.json')) as {
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string }[] };
  readonly panels: readonly Panel[];
};
const queries = dashboard.panels.flatMap(({ targets = [] }) => targets);
const absence = notChecked(
  'THE QUERIES OF THE DASHBOARD',
  isInstalled('promtool') ? [] : ['promtool of prometheus'],
);

test('the dashboard asks only for metrics and labels that a gateway exports, and for every metric of its own that can change', async () => {
  const figures = read('src/app/metric-values.ts');
  const { body } = await createMetrics('0').text();
  const registered = [...body.matchAll(/^# TYPE (\w+) /gm)].map(([, name = '']) => name);
  const exported = new Set([...registered, ...(figures.match(/\btollbook_\w+/g) ?? [])]);
  const asked = new Set(
    queries.flatMap(({ expr }) =>
      [
        ...expr
          .replaceAll(/by \([^)]*\)/g, '')
          .matchAll(/\b(?:tollbook|http|gen_ai|process|nodejs)_\w+(?=[[{)]|$)/g),
      ].map(([name]) => (exported.has(name) ? name : name.replace(/_(?:bucket|sum|count)$/, ''))),
    ),
  );
  expect([...asked].filter((name) => !exported.has(name))).toEqual([]);
  // of pairs that say the same, one is shown
  const unshown = new Set([
    'tollbook_ledger_seq',
    'tollbook_log_seal_interval_seconds',
    'tollbook_gas_balance_ether',
  ]);
  for (const name of ['tollbook_anchor_behind_events', 'tollbook_anchor_up']) unshown.add(name);
  const own = [...exported].filter((name) => /^(?:tollbook|http|gen_ai)_/.test(name));
  expect(own.filter((name) => !asked.has(name) && !unshown.has(name))).toEqual([]);

  const sources = [
    figures,
    ...['metrics', 'chat-metrics'].map((name) => read(`src/ledger/metrics/${name}.ts`)),
  ];
  // Prometheus adds them
  const added = ['le', 'instance'];
  const used = queries.flatMap(({ expr, legendFormat }) => [
    ...[...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(', ')),
    ...[...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label),
  ]);
  const isLabel = (label: string): boolean =>
    added.includes(label) || sources.some((source) => new RegExp(String.raw`\b${label}\b`).test(source));
  expect([...new Set(used)].filter((label) => !isLabel(label))).toEqual([]);
});

test('the dashboard can be imported: one variable for the data source, unique panels in five rows, and nothing of one installation', () => {
  expect(dashboard.templating.list).toMatchObject([{ name: 'datasource', type: 'datasource' }]);
  const rows = dashboard.panels.filter(({ type }) => type === 'row').map(({ title }) => title);
  expect(rows).toEqual(['Payments', 'Calls and runners', 'Ledger and anchors', 'Chat', 'Process']);
  const others = dashboard.panels.filter(({ type }) => type !== 'row');
  expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
  expect(new Set(others.map(({ datasource }) => datasource?.uid))).toEqual(new Set(['${datasource}']));
});

test.skipIf(absence !== '')(`Prometheus can read every query of the dashboard${absence}`, () => {
  const file = path.join(temporaryFolder(), 'queries.yml');
  const rules = queries.map(({ expr }, n) => {
    const text = expr.replaceAll('$__rate_interval', '5m');
    return `      - {record: 'dashboard:query:${n}', expr: ${JSON.stringify(text)}}\n`;
  });
  writeFileSync(file, `groups:\n  - name: dashboard\n    rules:\n${rules.join('')}`);
  const said = execFileSync('promtool', ['check', 'rules', file], {
    encoding: 'utf8',
    stdio: 'pipe',
    env: packageEnvironment(),
  });
  expect(said).toContain(`${queries.length} rules found`);
});
