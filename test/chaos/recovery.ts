import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { RecordedEvent } from '../../src/ledger/rules/event.ts';
import type { Violation } from './checks/violation.ts';
import type { Environment } from './environment.ts';
import type { Participants } from './participants.ts';
import type { RunParts } from './run-parts.ts';
import { type Ended, runTollbook } from './tollbook-command.ts';
import { type Loss, readAll } from './turnovers.ts';
import { untilTrue } from './sql.ts';

/** Gateways notice a loss within 5 seconds, also without a request. */
const noticeMs = 15_000;
/** A request that had passed the check when the halt was recorded. */
const underWayMs = 500;
/** One whose start is on record: a busy or frozen gateway reads late that it was appended, and nothing of it is lost. */
const recordedUnderWayMs = 5_000;
/** Transfers are found once their block is final. */
const finalMs = 3_500;
/** Clients find a gateway that should not have started, and pay it. */
const sellingMs = 3_000;
/** What the command says where payments may still land: what has landed is on record. */
const unfinished = /The recovery is not finished/;

export type RecoveryParts = Pick<RunParts, 'environment' | 'url' | 'records' | 'faults' | 'frontRunner'> & {
  readonly participants: Pick<Participants, 'gateways'>;
  readonly loss: Loss;
};

export interface LedgerRecovery {
  /** What broke until the gateways were started again. */
  readonly found: readonly Violation[];
  /** Whether payments may still land: the operator runs the command again later. */
  readonly isUnfinished: boolean;
}

/** After a loss: the gateways must stop by themselves and charge nothing; then the operator recovers the ledger. */
export async function recoverLedger(parts: RecoveryParts): Promise<LedgerRecovery> {
  const { participants, records, faults } = parts;
  const url = parts.url();
  const isHalted = 'select exists (select from tollbook.lane where halt_reason is not null) as holds';
  const noticedMs = await untilTrue(url, isHalted, noticeMs);
  const haltedAt = Date.now();
  if (noticedMs === undefined) {
    // also where none was lost
    if (await areRepeated(url, parts.loss)) return { found: [], isUnfinished: false };
    const words = `events were lost, and after ${noticeMs} ms no gateway stopped`;
    return { found: [{ kind: 'loss_not_noticed', words }], isUnfinished: false };
  }
  faults.trace('the ledger is halted');
  const [, started] = await Promise.all([sleep(finalMs), participants.gateways[0]?.startAgain()]);
  faults.trace(`a gateway that was started again: ${started}`);
  if (started === 'up') await sleep(sellingMs);
  await Promise.all(participants.gateways.map((gateway) => gateway.pause()));
  const recorded = startedNonces(await readAll(url));
  const charged = [...records.settles].filter(
    ([nonce, sentAt]) => sentAt > haltedAt + (recorded.has(nonce) ? recordedUnderWayMs : underWayMs),
  );
  const { code, output } = await recoverAsOperator(parts, url);
  faults.trace(`recovered, exit code ${code}`);
  await landLost(parts);
  for (const gateway of participants.gateways) gateway.resume();
  return {
    found: [
      ...charged.map(([nonce]) => ({ kind: 'charged_after_halt' as const, words: `payment ${nonce}` })),
      ...failureOf({ code, output }),
    ],
    isUnfinished: code !== 0 && unfinished.test(output),
  };
}

/**
 * A third party that knows the lost payments lands every second one that has not landed, when the operator's search is over and no
 * gateway is running yet: their clients ask again, and neither the ledger nor the search knows of the money.
 */
async function landLost({ loss: { events }, records, frontRunner, faults }: RecoveryParts): Promise<void> {
  const nonces = startedNonces(events);
  const lost = [...records.signed.values()].filter(({ nonce }) => nonces.has(nonce));
  for (const [index, { payment, nonce }] of lost.entries())
    if (index % 2 === 0 && (await frontRunner.submit(payment)))
      faults.count('landed after the recovery', nonce.slice(0, 10));
}

/** The payments whose start is on record, by their nonces. */
function startedNonces(events: readonly RecordedEvent[]): ReadonlySet<string> {
  return new Set(
    events.flatMap((event) => (event.type === 'settlement_started' ? [event.data.payment.nonce] : [])),
  );
}

/** The operator runs the command again when all that was under way has ended: what landed meanwhile is found too. */
export async function recoverAgain({
  environment,
  url,
  participants,
  faults,
}: Omit<RecoveryParts, 'loss'>): Promise<Violation[]> {
  await sleep(finalMs);
  const ended = await recover(environment, url(), participants.gateways[0]?.configFile ?? '');
  faults.trace(`recovered again, exit code ${ended.code}`);
  return failureOf(ended);
}

/**
 * After a failover that lost nothing, a gateway is quiet that was down meanwhile, if its anchors lack the last events before its end. The operator
 * knows that the failover was synchronous.
 */
export async function goLiveIfQuiet({
  environment,
  url,
  participants: { gateways },
  faults,
}: Omit<RecoveryParts, 'loss'>): Promise<void> {
  const isQuiet = await Promise.all(
    gateways.map(async (gateway) => {
      const answer = await fetch(`${gateway.url}/x402/ready`);
      return z.object({ quiet: z.literal(true) }).safeParse(await answer.json()).success;
    }),
  );
  const configFile = gateways[isQuiet.indexOf(true)]?.configFile;
  if (configFile === undefined) return;
  const why = ['--by', 'chaos', '--why', 'the failover was synchronous'];
  const { code } = await runTollbook(environment, url(), ['go-live', '--config', configFile, ...why]);
  faults.trace(`went live, exit code ${code}`);
}

function failureOf({ code, output }: Ended): Violation[] {
  if (code === 0 || unfinished.test(output)) return [];
  return [{ kind: 'ledger_unsound', words: `tollbook recover ended with ${code}: ${output}` }];
}

function placeOf({ stream, version, type }: RecordedEvent): string {
  return `${stream}/${version}/${type}`;
}

/** Whether the gateways recorded the lost events again: they had no answer to those, and have lost nothing. */
async function areRepeated(url: string, { events: lost }: Loss): Promise<boolean> {
  const places = new Set((await readAll(url)).map(placeOf));
  return lost.every((event) => places.has(placeOf(event)));
}

/** Before each run. */
const hourMs = 3_600_000;

/**
 * Where other events took the place of lost ones, or nothing is lost but the record of an append without events, nothing but the operator
 * tells since when events are lost.
 */
async function recoverAsOperator(
  { environment, participants, faults, loss: { events } }: RecoveryParts,
  url: string,
): Promise<Ended> {
  const configFile = participants.gateways[0]?.configFile ?? '';
  const first = await recover(environment, url, configFile);
  if (first.code === 0 || !first.output.includes('--since TIME')) return first;
  faults.count('recover --since');
  const since = events[0]?.at ?? new Date(Date.now() - hourMs).toISOString();
  return recover(environment, url, configFile, ['--since', since]);
}

function recover(
  environment: Environment,
  url: string,
  configFile: string,
  more: readonly string[] = [],
): Promise<Ended> {
  return runTollbook(environment, url, ['recover', '--config', configFile, '--by', 'chaos', ...more]);
}
