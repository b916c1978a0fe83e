/** `npm run alert-drill`: docs/operations/metrics.md describes it. */
import { parseArgs } from 'node:util';
import { runCommand, say } from '../chaos/command-line.ts';
import { isInstalled } from '../support/installed.ts';
import { runDrill } from './drill.ts';
import { alertsOf, shippedRules } from './rules.ts';

function readOnly(): string[] | undefined {
  const { values } = parseArgs({ options: { only: { type: 'string', multiple: true } } });
  const unknown = values.only?.filter((name) => !alertsOf(shippedRules).includes(name)) ?? [];
  if (unknown.length > 0)
    throw new Error(`--only is the name of an alert, which ${unknown.join(', ')} is not`);
  return values.only;
}

await runCommand(async () => {
  const only = readOnly();
  if (!isInstalled('prometheus')) throw new Error('prometheus is not installed (apt-get install prometheus)');
  const startedMs = performance.now();
  const { proven, failures } = await runDrill({ only, say });
  for (const failure of failures) say(`FAILED ${failure}`);
  const minutes = ((performance.now() - startedMs) / 60_000).toFixed(1);
  say(
    `${new Set(proven).size} alerts fired for ${proven.length} faults and were resolved, ${failures.length} failures, ${minutes} minutes`,
  );
  return failures.length === 0;
});
