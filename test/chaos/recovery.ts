import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { processEnvironment } from '../../src/config/environment.ts';
import type { Violation } from './checks/violation.ts';
import type { Environment } from './environment.ts';
import type { FaultInjector } from './fault-injector.ts';
import { logKey, runnerToken } from './gateway-process.ts';
import type { Participants } from './participants.ts';
import type { Records } from './records.ts';

/** Gateways notice a loss within 5 seconds, also without a request. */
const noticeMs = 15_000;
const pollMs = 50;
/** A request that had passed the check when the halt was recorded. */
const underWayMs = 500;
/** Transfers are found once their block is final. */
const finalMs = 3_500;
/** The command's code where payments may still land: what has landed is on record. */
const unfinished = 2;

export interface RecoveryParts {
  readonly environment: Environment;
  readonly database: string;
  readonly participants: Pick<Participants, 'gateways' | 'configFiles'>;
  readonly records: Records;
  readonly faults: FaultInjector;
}

/** After a loss: the gateways must stop by themselves and charge nothing; then the operator recovers the ledger. */
export async function recoverLedger(parts: RecoveryParts): Promise<Violation[]> {
  const { environment, database, participants, records, faults } = parts;
  const url = environment.postgres.url(database);
  const haltedAt = await untilHalted(url);
  if (haltedAt === undefined)
    return [
      { kind: 'loss_not_noticed', words: `events were lost, and after ${noticeMs} ms no gateway stopped` },
    ];
  faults.trace('the ledger is halted');
  await sleep(finalMs);
  await Promise.all(participants.gateways.map((gateway) => gateway.pause()));
  const charged = [...records.settles].filter(([, sentAt]) => sentAt > haltedAt + underWayMs);
  const { code, output } = await recover(environment, url, participants.configFiles[0] ?? '');
  faults.trace(`recovered, exit code ${code}`);
  for (const gateway of participants.gateways) gateway.resume();
  const failed: Violation[] =
    code === 0 || code === unfinished
      ? []
      : [{ kind: 'ledger_unsound', words: `tollbook recover ended with ${code}: ${output}` }];
  return [
    ...charged.map(([nonce]) => ({ kind: 'charged_after_halt' as const, words: `payment ${nonce}` })),
    ...failed,
  ];
}

async function untilHalted(url: string): Promise<number | undefined> {
  const owner = new pg.Client(url);
  await owner.connect();
  try {
    const deadline = Date.now() + noticeMs;
    while (Date.now() < deadline) {
      const { rows } = await owner.query('select from tollbook.lane where halt_reason is not null');
      if (rows.length > 0) return Date.now();
      await sleep(pollMs);
    }
    return undefined;
  } finally {
    await owner.end();
  }
}

async function recover(
  { root }: Environment,
  url: string,
  configFile: string,
): Promise<{ code: number | null; output: string }> {
  const command = ['src/cli/tollbook.ts', 'recover', '--config', configFile, '--by', 'chaos'];
  const child = spawn(process.execPath, command, {
    cwd: root,
    env: {
      PATH: processEnvironment()['PATH'] ?? '',
      DATABASE_URL: url,
      CHAOS_RUNNER_TOKEN: runnerToken,
      CHAOS_LOG_KEY: logKey,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, output: output.slice(-2_000) };
}
