import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLogger } from '../../../logger.ts';
import { startGateway } from '../../../start.ts';
import { createDemoClock, setDatabaseClock, takeProcessClock } from '../../../../devnet/demo-clock.ts';
import { openDemoUser } from '../../../../devnet/demo-user.ts';
import { writeDescription } from '../../../../devnet/description.ts';
import { startDevnet } from '../../../../devnet/devnet.ts';
import { HttpProblem } from '../../../../devnet/http-service.ts';
import { startEmbeddedPostgres } from '../../../../devnet/postgres.ts';
import type { Hex } from '../../../../base/values/primitives.ts';
import { recordRefund } from '../../../../finance/use-cases/refunds/record-refund.ts';
import { openPool } from '../../../../ledger/store/database.ts';
import { openLane } from '../../../../ledger/store/lane.ts';
import { migrate } from '../../../../ledger/store/migrations.ts';
import { closeChains, openChains } from '../../../../audit/terminal/chains.ts';
import { say } from '../../../../base/terminal/terminal.ts';
import { demoOperator, describe, devnetSecrets } from '../description.ts';
import { developmentGateway } from '../development-config.ts';
import { makeMonth, refusedByRunner } from './activity.ts';
import { appCommands } from '../../descriptions.ts';
import { readOptions } from '../../../../base/terminal/arguments.ts';
import { exitCodes } from '../../../../base/terminal/exit-codes.ts';

const monthMs = 30 * 86_400_000;
const finalPatienceMs = 30_000;
const askEveryMs = 500;

/**
 * A separate program: makes the past of a devnet in a folder without any, and ends. Its database, its chain and its own clock begin a
 * month ago and move on while the requests of that month are made; they have the right time when it ends.
 */
async function makePast(dir: string, port: string): Promise<void> {
  const endMs = Date.now();
  const begin = new Date(endMs - monthMs);
  begin.setUTCHours(6, 0, 0, 0);
  const clock = takeProcessClock(begin);
  const stops: (() => Promise<unknown>)[] = [];
  try {
    const postgres = await startEmbeddedPostgres({ dir: path.join(dir, 'postgres'), durable: true });
    stops.push(() => postgres.stop());
    const databaseUrl = postgres.url('postgres');
    await migrate(databaseUrl);
    await setDatabaseClock(databaseUrl, clock.aheadMs());
    const devnet = await startDevnet({ dir, chainBeginsAt: new Date(), onCall: refuseDamaged });
    stops.push(() => devnet.stop());
    const demoClock = createDemoClock(clock, { databaseUrl, rpcUrl: devnet.rpcUrl });
    const config = await developmentGateway(dir, port, devnet);
    const logger = createLogger(config.logLevel, path.join(dir, 'gateway.log'));
    const gateway = await startGateway({ config, databaseUrl, logger });
    stops.push(() => gateway.stop());
    const secrets = await devnetSecrets(dir, databaseUrl);
    const mailDir = config.identity?.mailDir ?? path.join(dir, 'mail');
    const demoUser = await openDemoUser({ gatewayUrl: gateway.url, mailDir }, undefined);
    const operator = await demoOperator(dir, databaseUrl, config, demoUser);
    const given = { databaseUrl, gateway, demoUser, demoOperator: operator, ...secrets };
    const description = describe(dir, config, devnet, given);
    await writeDescription(dir, description);
    await makeMonth(
      {
        devnet: description,
        clock: demoClock,
        recordRefund: (digest, transaction) => recordOneRefund(databaseUrl, config, digest, transaction),
        onDay: (text) => say(`${' '.repeat(11)}demo data: ${text}`),
      },
      begin.getTime(),
      endMs,
    );
    await demoClock.end();
  } finally {
    for (const stop of stops.toReversed()) await stop();
  }
}

function refuseDamaged({ body }: { readonly body: Buffer }): void {
  if (body.toString('utf8').startsWith(refusedByRunner)) throw new HttpProblem(422, 'the pages are damaged');
}

async function recordOneRefund(
  url: string,
  config: Parameters<typeof openChains>[0],
  quoteDigest: Hex,
  transaction: Hex,
): Promise<void> {
  const pool = openPool({ url, maxConnections: 1 });
  const lane = openLane({ url, flushers: 1 });
  const chains = openChains(config);
  const order = { quoteDigest, paymentNonce: undefined, transaction, operator: 'demo', isGoodwill: false };
  try {
    const deadline = performance.now() + finalPatienceMs;
    for (;;) {
      const answer = await recordRefund({ pool, lane }, order, chains);
      if (answer.kind !== 'refused') return;
      // until its block is final
      if (performance.now() > deadline) throw new Error(`the refund was not recorded: ${answer.code}`);
      await sleep(askEveryMs);
    }
  } finally {
    await closeChains(chains);
    await lane.close();
    await pool.end();
  }
}

const ofStart = { dir: appCommands.start.options.dir, port: appCommands.start.options.port };
const { values } = readOptions({ summary: '', options: ofStart }, process.argv.slice(2));
// it ends with `npm start`
process.once('disconnect', () => process.exit(exitCodes.notDone));
await makePast(values.dir, values.port);
process.removeAllListeners('disconnect');
if (process.connected) process.disconnect();
