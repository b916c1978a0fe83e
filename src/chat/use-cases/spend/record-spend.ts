import type { LedgerEvent } from '../../../ledger/rules/event.ts';
import type { Landed } from '../../peers/prepaid/prepaid-contract.ts';
import { inBackground } from '../../../base/runtime/background.ts';
import { type late, within } from '../../../base/runtime/within.ts';
import { endExposure } from '../../store/exposure.ts';
import type { SpendContext } from '../context.ts';
import { type AcceptedSpend, landedData, type SpendFacts, spendStream } from './spend.ts';

type Recording = Pick<SpendContext, 'running' | 'log' | 'pool'>;

/** How long a request waits for the ledger to record a step of its spend. */
const recordTimeoutMs = 5_000;

/**
 * Frees a spend's nonce: nothing was delivered for it, and nothing will be paid out. A spend that may be public stays bound to
 * its request, or a stranger who reads the chain could use it for another.
 */
export async function releaseSpend(context: Recording, spend: AcceptedSpend, reason: string): Promise<void> {
  const { record, facts, claim, requestClaim, isPublic } = spend;
  const release = isPublic
    ? record([releasedEvent(facts, reason)], [claim])
    : record([{ type: 'spend_released', data: { ...facts, reason } }], [claim, requestClaim]);
  await recordWithin(context, spend, release);
  endUnused(context, spend);
}

/** The release of a spend that may be public. */
export function releasedEvent(facts: SpendFacts, reason: string): LedgerEvent {
  return { type: 'spend_released', data: { ...facts, reason, may_have_landed: true } };
}

/** The operator delivers nothing for this spend, so it risks nothing. */
function endUnused({ pool, running, log }: Recording, { facts }: AcceptedSpend): void {
  const ended = endExposure(pool, spendStream(facts.chat_id), false);
  const message = 'the exposure of a released spend could not be ended';
  inBackground({ running, log }, ended, message, { chat_id: facts.chat_id });
}

/**
 * Records that the answer is about to be delivered: from then on its spend pays for it. False when another process has
 * released the spend. Waits for the ledger as long as it takes: until it answers, the spend may be earned as well as released,
 * so neither delivering nor refusing would be right.
 */
export async function earnSpend(context: Recording, spend: AcceptedSpend): Promise<boolean> {
  const { record, facts } = spend;
  return (await recorded(context, spend, record([{ type: 'spend_earned', data: facts }]))) === 'ok';
}

/** Records where a spend has landed, without waiting: later events of the spend are recorded after this one. */
export function recordAuthorized(context: Recording, spend: AcceptedSpend, landed: Landed | undefined): void {
  const { record, facts } = spend;
  const data = { ...facts, ...(landed && landedData(landed)) };
  void recordWithin(context, spend, record([{ type: 'spend_authorized', data }]));
}

/** Waits for a record up to a time limit; shutdown waits until it is complete. */
async function recordWithin(
  context: Recording,
  spend: AcceptedSpend,
  record: Promise<boolean>,
): Promise<'ok' | 'refused' | typeof late> {
  return within(recordTimeoutMs, recorded(context, spend, record));
}

function recorded(
  { running, log }: Recording,
  { facts }: AcceptedSpend,
  record: Promise<boolean>,
): Promise<'ok' | 'refused'> {
  const outcome = record
    .then((isOurs): 'ok' | 'refused' => (isOurs ? 'ok' : 'refused'))
    .catch((err: unknown): 'refused' => {
      log.error({ err, chat_id: facts.chat_id }, 'an event of a spend could not be recorded');
      return 'refused';
    });
  return running.add(outcome);
}
