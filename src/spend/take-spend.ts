import type { LedgerEvent } from '../domain/events/event.ts';
import { openAiError } from '../domain/errors/openai-error.ts';
import { sha256 } from '../domain/payments/payment.ts';
import type { CreditsAnswer } from '../peers/prepaid/prepaid-contract.ts';
import type { Claim, LaneCommand } from '../store/append-batch.ts';
import { LaneFullError } from '../store/lane.ts';
import { endExposure, isProcessGone } from '../store/spend.ts';
import { readStream } from '../store/streams.ts';
import { type Refused, refuse } from '../chat/answer.ts';
import type { ChatContext } from '../chat/context.ts';
import { inBackground } from '../runtime/background.ts';
import { type late, within } from '../runtime/within.ts';
import {
  claimOf,
  factsOf,
  recorderOf,
  spendError,
  type Spending,
  spendStream,
  type TakenSpend,
  type VerifiedSpend,
} from './spend.ts';

type Taking = Pick<ChatContext, 'pool' | 'lane' | 'processId'>;

/** After how much silence the process that took a spend counts as gone. */
const silentSecs = 15;
/** The one place that spends pay for. */
const target = 'POST /v1/chat/completions';

/**
 * Takes a verified spend for one completion: its nonce is claimed for good, until nothing was delivered for it. A nonce that
 * pays for something already is refused, and says for what where it is this very request.
 */
export async function takeSpend(
  context: Taking,
  spending: Spending,
  spend: VerifiedSpend,
  chatId: string,
  body: Uint8Array,
): Promise<TakenSpend | Refused> {
  const binding = sha256(`${spend.digest} ${target} ${sha256(body)}`);
  const claim = claimOf(spending.settings, spend.auth, binding);
  const facts = factsOf(spending.settings, spend, chatId);
  const { serviceId, jobIndex, expiry, signature } = spend.auth;
  const accepted: LedgerEvent = {
    type: 'spend_accepted',
    data: {
      ...facts,
      service_id: String(serviceId),
      job_index: jobIndex,
      expiry: String(expiry),
      signature,
      binding,
      process_id: context.processId,
    },
  };
  const stream = spendStream(chatId);
  for (let tries = 1; ; tries++) {
    const outcome = await append(context, { stream, expect: 0, events: [accepted], claims: [claim] });
    if ('kind' in outcome) return outcome;
    if (outcome.outcome === 'ok')
      return { ...spend, claim, facts, record: recorderOf(context.lane, stream, outcome.version) };
    if (outcome.outcome !== 'lost' && outcome.outcome !== 'same')
      throw new Error(`a new spend was refused as ${outcome.outcome}`);
    const isSame = outcome.outcome === 'same';
    const holder = await lookAt(context, outcome.stream, claim);
    if (holder === 'gone' && tries < 3) continue;
    return refuseReplay(isSame, holder === 'done', outcome.stream);
  }
}

/** A lane without room takes nothing: nothing was recorded. */
async function append({ lane }: Taking, command: LaneCommand) {
  try {
    return await lane.append(command);
  } catch (error) {
    if (error instanceof LaneFullError) return refuse(openAiError('overloaded'), { retryAfterSecs: 1 });
    throw error;
  }
}

function refuseReplay(isSame: boolean, isDone: boolean, stream: string): Refused {
  if (!isSame) return refuse(spendError('nonce_replay'));
  if (!isDone) return refuse(openAiError('spend_in_progress'), { retryAfterSecs: 2 });
  const message = `The spend authorization has paid for this request before, as generation ${stream.slice(spendStream('').length)}.`;
  return refuse(openAiError('spend_replay', { message }));
}

/**
 * How the completion stands that holds a nonce. One that nothing was delivered of, and whose process is gone, gives it up:
 * should that process come back, it finds that out before it delivers anything.
 */
async function lookAt(
  { pool, lane, processId }: Taking,
  stream: string,
  claim: Claim,
): Promise<'done' | 'running' | 'gone'> {
  const { events } = await readStream(pool, stream);
  const accepted = events.find((event) => event.type === 'spend_accepted');
  if (!accepted || events.some(({ type }) => type === 'spend_released')) return 'gone';
  if (events.some(({ type }) => type === 'spend_earned')) return 'done';
  const { binding, process_id: owner, ...data } = accepted.data;
  if (!(await isProcessGone(pool, { processId: owner, by: processId, silentSecs }))) return 'running';
  const { service_id: _, job_index: __, expiry: ___, signature: ____, ...facts } = data;
  const released: LedgerEvent = { type: 'spend_released', data: { ...facts, reason: 'process_lost' } };
  const freed = [{ ...claim, binding }];
  const { outcome } = await lane.append({ stream, expect: events.length, events: [released], freed });
  if (outcome === 'ok') await endExposure(pool, stream, false);
  return outcome === 'ok' ? 'gone' : 'running';
}

type Recording = Pick<ChatContext, 'running' | 'log' | 'pool'>;

/** How long anybody waits for the ledger where a spend's story goes on. */
const patienceMs = 5_000;

/** Gives a nonce up: nothing was delivered for it, and nothing will be claimed. */
export async function releaseSpend(context: Recording, spend: TakenSpend, reason: string): Promise<void> {
  const { record, facts, claim } = spend;
  await recordWithin(
    context,
    spend,
    record([{ type: 'spend_released', data: { ...facts, reason } }], [claim]),
  );
  endUnused(context, spend);
}

/** Of what is delivered to nobody, nothing can be lost. */
function endUnused({ pool, running, log }: Recording, { facts }: TakenSpend): void {
  const ended = endExposure(pool, spendStream(facts.chat_id), false);
  inBackground({ running, log }, ended, 'an exposure could not be ended', { chat_id: facts.chat_id });
}

/**
 * An answer is about to be delivered: from here on it is paid for. False where the nonce was taken away meanwhile. Where the
 * ledger is away it is written down as soon as it is back, and nobody else can have taken the nonce so soon.
 */
export async function earnSpend(context: Recording, spend: TakenSpend): Promise<boolean> {
  const { record, facts } = spend;
  return (await recordWithin(context, spend, record([{ type: 'spend_earned', data: facts }]))) !== 'refused';
}

/** Notes where a spend has landed. Nobody waits for it: what comes after it is written down after it. */
export function noteAuthorized(
  context: Recording,
  spend: TakenSpend,
  landed: Extract<CreditsAnswer, { kind: 'landed' }> | undefined,
): void {
  const onChain = landed && {
    transaction: landed.transaction,
    block_number: String(landed.block.number),
    block_hash: landed.block.hash,
  };
  const { record, facts } = spend;
  void recordWithin(context, spend, record([{ type: 'spend_authorized', data: { ...facts, ...onChain } }]));
}

/** Waits for a record within limits; going down waits for it to its end. */
async function recordWithin(
  { running, log }: Recording,
  { facts }: TakenSpend,
  recorded: Promise<boolean>,
): Promise<'ok' | 'refused' | typeof late> {
  const outcome = recorded
    .then((isOurs): 'ok' | 'refused' => (isOurs ? 'ok' : 'refused'))
    .catch((err: unknown): 'refused' => {
      log.error({ err, chat_id: facts.chat_id }, "a spend's story could not be written down");
      return 'refused';
    });
  return within(patienceMs, running.add(outcome));
}
