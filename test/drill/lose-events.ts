import { setTimeout as sleep } from 'node:timers/promises';
import { runTollbook } from '../chaos/tollbook-command.ts';
import type { DrillRig } from './rig.ts';

/** While customers pay, so that the backup lacks some of their payments. */
const payingMs = 3_000;
/** What the command says where payments may still land: what has landed is on record. */
const unfinished = /The recovery is not finished/;

/** The database is restored from a backup that lacks the last events. The operator recovers the ledger to end it. */
export async function loseEvents(rig: DrillRig): Promise<() => Promise<void>> {
  const { environment, gateways } = rig;
  const since = new Date().toISOString();
  const backup = await environment.postgres.backUp();
  await sleep(payingMs);
  for (const { wire } of gateways) wire.block();
  // a statement that had arrived already is committed or rolled back soon
  await sleep(200);
  await environment.postgres.replaceBy(backup);
  for (const { wire } of gateways) wire.open();
  return () => recover(rig, since);
}

async function recover({ environment, databaseUrl, gateways }: DrillRig, since: string): Promise<void> {
  await Promise.all(gateways.map(({ slot }) => slot.pause()));
  const command = ['recover', '--config', gateways[0]?.slot.configFile ?? '', '--by', 'drill'];
  const tollbook = (...more: readonly string[]) =>
    runTollbook(environment, databaseUrl(), [...command, ...more]);
  const first = await tollbook();
  const needsTime = first.code !== 0 && first.output.includes('--since TIME');
  const { code, output } = needsTime ? await tollbook('--since', since) : first;
  if (code !== 0 && !unfinished.test(output))
    throw new Error(`tollbook recover ended with ${code}: ${output}`);
  for (const { slot } of gateways) slot.resume();
  await Promise.all(gateways.map(({ slot }) => slot.untilUp()));
}
