import path from 'node:path';
import { readLogTip } from '../src/audit/store/log.ts';
import type { Bench } from './bench.ts';
import { type Ledger, readSettings, startLedger } from './ledger.ts';
import {
  eventsAJob,
  loadJobs,
  projectBeside,
  projectRest,
  sealBeside,
  sealRest,
  secondsSince,
  signer,
} from './log-load.ts';
import { cpuSecs, machineBusySecs } from './processes.ts';
import { circumstancesOf, median, row, ruler, spread, whole } from './report.ts';
import { type Findings, interleave } from './rounds.ts';

interface LogTarget {
  readonly name: string;
  readonly seals: boolean;
  readonly projects: boolean;
}

interface LogScenario {
  readonly title: string;
  readonly concurrency: number;
  readonly secs: number;
}

interface LogMeasurement {
  readonly perSec: number;
  /** The largest numbers of unsealed and unprojected events; 0 when sealer or projector did not run. */
  readonly unsealed: number;
  readonly unread: number;
  /** Events per second of sealing the rest without other load; 0 when almost nothing was left. */
  readonly sealedPerSec: number;
  readonly foreignCores: number;
}

const targets: readonly LogTarget[] = [
  { name: 'lane alone', seals: false, projects: false },
  { name: 'lane, sealer beside', seals: true, projects: false },
  { name: 'lane, sealer and read models beside', seals: true, projects: true },
];

const columns = [
  '',
  'events/s (min–max)',
  '× alone',
  'unsealed at most',
  'that is, seconds',
  'unread at most',
  'that is, seconds',
];
const leastSealed = 2_000;

/** Measures how far sealing falls behind while the lane runs at full load. */
export const logPart = {
  async compare(bench: Bench): Promise<string> {
    const ledger = await bench.keep(startLedger(path.join(bench.dir, 'pg'), {}));
    let first = 0;
    const findings = await interleave(bench, {
      targets,
      scenarios: [
        { title: 'Events of paid jobs, 256 appends at a time', concurrency: 256, secs: bench.runSecs },
      ],
      isOf: () => true,
      measure: async (target, { concurrency }, events) => {
        const count = Math.ceil(events / eventsAJob);
        first += count;
        return measureLog(ledger, target, { first: first - count, count, inFlight: concurrency });
      },
    });
    return [
      tableOf(findings),
      '',
      circumstancesOf(bench, findings, await readSettings(ledger)),
      `- Sealing alone: ${whole(median(sealedAlone(findings)))} events/s. A head a second, or every 10,000 events. ` +
        'Lane, sealer and read models share one process here.',
    ].join('\n');
  },

  profile(): Promise<string> {
    return Promise.resolve('The log has no profile of its own: `node --cpu-prof bench/log.ts`.');
  },
};

async function measureLog(
  ledger: Ledger,
  { seals, projects }: LogTarget,
  jobs: Parameters<typeof loadJobs>[1],
): Promise<LogMeasurement> {
  const before = await readLogTip(ledger.pool, signer.name);
  const [start, cpu] = [performance.now(), readCpu(ledger)];
  let isOver = false;
  const beside = Promise.all([
    seals ? sealBeside(ledger, () => isOver) : 0,
    projects ? projectBeside(ledger, () => isOver) : 0,
  ]);
  const perSec = await loadJobs(ledger, jobs).finally(() => {
    isOver = true;
  });
  const [unsealed, unread] = await beside;
  const foreignCores = Math.max(0, readCpu(ledger) - cpu) / secondsSince(start);
  const left = await readLogTip(ledger.pool, signer.name);
  if (left.seq - before.seq !== jobs.count * eventsAJob) throw new Error('the ledger lacks events');
  const rate = await sealRest(ledger);
  // the next measurement starts without a backlog
  await projectRest(ledger);
  return {
    perSec,
    unsealed,
    unread,
    sealedPerSec: left.seq - left.size < leastSealed ? 0 : rate,
    foreignCores,
  };
}

/** Processor seconds used by other programs than PostgreSQL and this process. */
function readCpu({ postmasterPid }: Ledger): number {
  return machineBusySecs() - cpuSecs(postmasterPid, true) - cpuSecs(process.pid);
}

type LogFindings = Findings<LogTarget, LogScenario, LogMeasurement>;

function sealedAlone(findings: readonly LogFindings[]): number[] {
  const all = findings.flatMap(({ rounds }) => [...rounds.values()].flat().map((one) => one.sealedPerSec));
  const measured = all.filter((rate) => rate > 0);
  return measured.length > 0 ? measured : [0];
}

function tableOf(findings: readonly LogFindings[]): string {
  const lines = [row(columns), ruler(columns)];
  for (const { scenario, rounds } of findings) {
    lines.push(row([`**${scenario.title}**`, ...columns.slice(1).map(() => '')]));
    const [alone = 0] = [...rounds.values()].map((measured) => median(measured.map(({ perSec }) => perSec)));
    for (const [{ name, seals, projects }, measured] of rounds) {
      const rates = measured.map(({ perSec }) => perSec);
      const rate = median(rates);
      const behind = (isThere: boolean, events: number): string[] =>
        isThere ? [whole(events), (events / rate).toFixed(2)] : ['–', '–'];
      lines.push(
        row([
          name,
          spread(rates),
          (rate / alone).toFixed(2),
          ...behind(seals, Math.max(...measured.map(({ unsealed }) => unsealed))),
          ...behind(projects, Math.max(...measured.map(({ unread }) => unread))),
        ]),
      );
    }
  }
  return lines.join('\n');
}
