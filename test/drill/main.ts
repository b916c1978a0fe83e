/** `npm run alert-drill`: docs/operations/metrics.md describes it. */
import { parseArgs } from 'node:util';
import { isInstalled } from '../support/installed.ts';
import { runDrill } from './drill.ts';
import { alertsOf, shippedRules } from './rules.ts';

const say = (line: string): void => console.log(line);

function readOnly(): string[] | undefined {
  const { values } = parseArgs({ options: { only: { type: 'string', multiple: true } } });
  const unknown = values.only?.filter((name) => !alertsOf(shippedRules).includes(name)) ?? [];
  if (unknown.length > 0)
    throw new Error(`--only is the name of an alert, which ${unknown.join(', ')} is not`);
  return values.only;
}

try {
  const only = readOnly();
  if (!isInstalled('prometheus')) throw new Error('prometheus is not installed (apt-get install prometheus)');
  const startedMs = performance.now();
  const { proven, failures } = await runDrill({ only, say });
  for (const failure of failures) say(`FAILED ${failure}`);
  const minutes = ((performance.now() - startedMs) / 60_000).toFixed(1);
  say(
    `${new Set(proven).size} alerts fired for ${proven.length} faults and were resolved, ${failures.length} failures, ${minutes} minutes`,
  );
  process.exitCode = failures.length === 0 ? 0 : 1;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 64;
}
