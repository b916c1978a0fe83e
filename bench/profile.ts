import path from 'node:path';
import type { Bench } from './bench.ts';
import { measure, type Measurement, type Stage } from './measure.ts';
import { paymentGateway } from './payment-targets.ts';
import { topOf } from './top.ts';
import { startTollbook, type TollbookOptions, type TollbookProcess } from './tollbook.ts';

/** Settings of a PostgreSQL that times its functions. */
export const profileSettings = { track_functions: 'all', track_io_timing: 'on' };

/** Writes CPU profiles of a gateway, one per kind of load; another gateway issues the quotes. Returns the file names. */
export async function profilePayments(stage: Stage, bench: Bench): Promise<string> {
  const gateway = paymentGateway(stage, true, bench.dir);
  const quoting = await bench.keep(startTollbook(gateway));
  const parts: string[] = [];
  for (const what of ['unpaid', 'payments'] as const) {
    const part = await profileOne(stage, bench, what, gateway, ({ pid, url }, count) => {
      const target = {
        name: 'Tollbook',
        isPeer: false,
        pid,
        url,
        offersUrl: quoting.url,
        verifies: true,
        signed: true,
      };
      return measure(stage, target, { what, concurrency: 64 }, count);
    });
    parts.push(part);
  }
  return parts.join('\n\n');
}

type Costs = Pick<Measurement, 'perSec' | 'serverCpuUs' | 'databaseCpuUs' | 'batchSize'>;

/** Writes one profile of a separate gateway under some seconds of load. */
export async function profileOne(
  stage: Stage,
  { homeDir, runSecs }: Bench,
  title: string,
  gateway: TollbookOptions,
  load: (target: TollbookProcess, count: number) => Promise<Costs>,
): Promise<string> {
  const file = `${title.replaceAll(/\W+/g, '-')}-${Date.now()}.cpuprofile`;
  const profiled = await startTollbook({
    ...gateway,
    nodeOptions: ['--cpu-prof', `--cpu-prof-dir=${homeDir}`, `--cpu-prof-name=${file}`],
  });
  try {
    const warm = await load(profiled, 1_000);
    await stage.ledger.pool.query('select pg_stat_reset()');
    const measured = await load(profiled, Math.round(warm.perSec * runSecs * 4));
    const functions = await readFunctionTimes(stage);
    await profiled.stop();
    return [
      `### ${title}: ${Math.round(measured.perSec)}/s while profiled, ${Math.round(measured.serverCpuUs)} µs CPU a request, ` +
        `PostgreSQL ${Math.round(measured.databaseCpuUs)} µs, ${measured.batchSize.toFixed(1)} appends a batch`,
      path.join(homeDir, file),
      functions,
      topOf(path.join(homeDir, file)),
    ].join('\n');
  } finally {
    await profiled.stop();
  }
}

async function readFunctionTimes({ ledger }: Stage): Promise<string> {
  const { rows } = await ledger.pool.query<{ funcname: string; calls: number; total_time: number }>(
    `select funcname, calls, total_time from pg_stat_user_functions where schemaname = 'tollbook' and calls > 0 order by total_time desc`,
  );
  return rows
    .map(
      ({ funcname, calls, total_time }) =>
        `${funcname}: ${calls} calls, ${(total_time / calls).toFixed(3)} ms each`,
    )
    .join('\n');
}
