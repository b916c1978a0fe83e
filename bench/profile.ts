import path from 'node:path';
import { measure, type Scenario, type Stage } from './measure.ts';
import { topOf } from './top.ts';
import { startTollbook } from './tollbook.ts';

interface Places {
  readonly dir: string;
  readonly homeDir: string;
  readonly runSecs: number;
}

/** CPU profiles of a gateway under one kind of load each; another gateway issues the quotes. Returns what to read. */
export async function profileTollbook(stage: Stage, places: Places): Promise<string> {
  const parts: string[] = [];
  for (const what of ['unpaid', 'payments'] as const) {
    parts.push(await profileOne(stage, places, { what, concurrency: 64 }));
  }
  return parts.join('\n\n');
}

async function profileOne(
  stage: Stage,
  { dir, homeDir, runSecs }: Places,
  scenario: Pick<Scenario, 'what' | 'concurrency'>,
): Promise<string> {
  const options = { databaseUrl: stage.ledger.url, facilitatorUrl: stage.stub.url, verify: true, dir };
  const file = `${scenario.what}-${Date.now()}.cpuprofile`;
  const quoting = await startTollbook(options);
  const profiled = await startTollbook({
    ...options,
    nodeOptions: ['--cpu-prof', `--cpu-prof-dir=${homeDir}`, `--cpu-prof-name=${file}`],
  });
  const { pid, url } = profiled;
  const target = { name: 'Tollbook', isPeer: false, pid, url, offersUrl: quoting.url, signed: false };
  try {
    const warm = await measure(stage, target, scenario, 1_000);
    await stage.ledger.pool.query('select pg_stat_reset()');
    const measured = await measure(stage, target, scenario, Math.round(warm.perSec * runSecs));
    const functions = await readFunctionTimes(stage);
    await profiled.stop();
    return [
      `### ${scenario.what}: ${Math.round(measured.perSec)}/s while profiled, ${Math.round(measured.serverCpuUs)} µs CPU a request, ` +
        `PostgreSQL ${Math.round(measured.databaseCpuUs)} µs, ${measured.batchSize.toFixed(1)} appends a batch`,
      path.join(homeDir, file),
      functions,
      topOf(path.join(homeDir, file)),
    ].join('\n');
  } finally {
    await profiled.stop();
    await quoting.stop();
  }
}

async function readFunctionTimes({ ledger }: Stage): Promise<string> {
  const { rows } = await ledger.pool.query<{
    funcname: string;
    calls: number;
    total_time: number;
    self_time: number;
  }>(
    `select funcname, calls, total_time from pg_stat_user_functions where schemaname = 'tollbook' and calls > 0 order by total_time desc`,
  );
  return rows
    .map(
      ({ funcname, calls, total_time }) =>
        `${funcname}: ${calls} calls, ${(total_time / calls).toFixed(3)} ms each`,
    )
    .join('\n');
}
