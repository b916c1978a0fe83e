import type { LedgerEvent } from '../domain/events/event.ts';
import { sha256 } from '../domain/payments/payment.ts';
import { presence } from '../domain/values/presence.ts';
import type { AppendOutcome, Claim, LaneCommand } from '../store/append-batch.ts';
import { LaneFullError } from '../store/lane.ts';
import { isProcessSilent } from '../store/processes.ts';
import { endExposure } from '../store/exposure.ts';
import { readStream } from '../store/streams.ts';
import type { SpendContext } from './context.ts';
import { invalidSpend, type SpendRefusal } from './refusal.ts';
import {
  type AcceptedSpend,
  claimOf,
  factsIn,
  factsOf,
  type SpendFacts,
  spendStream,
  type VerifiedSpend,
} from './spend.ts';
import { createSpendRecorder } from './spend-recorder.ts';

type Accepting = Pick<SpendContext, 'settings' | 'pool' | 'lane' | 'processId'>;

/** The only route that spends pay for. */
const target = 'POST /v1/chat/completions';
const maxTries = 3;

/**
 * Accepts a verified spend for one completion: its nonce is claimed until the spend is released, which happens only when
 * nothing was delivered for it. Refuses a nonce that pays for another request, or for this one already.
 */
export async function acceptSpend(
  context: Accepting,
  spend: VerifiedSpend,
  chatId: string,
  body: Uint8Array,
): Promise<{ readonly kind: 'accepted'; readonly spend: AcceptedSpend } | SpendRefusal> {
  const { settings, lane, processId } = context;
  const binding = sha256(`${spend.digest} ${target} ${sha256(body)}`);
  const claim = claimOf(settings, spend.auth, binding);
  const facts = factsOf(settings, spend, chatId);
  const { serviceId, jobIndex, expiry, signature } = spend.auth;
  const terms = {
    service_id: String(serviceId),
    job_index: jobIndex,
    expiry: String(expiry),
    signature,
  };
  const accepted: LedgerEvent = {
    type: 'spend_accepted',
    data: { ...facts, ...terms, binding, process_id: processId },
  };
  const stream = spendStream(chatId);
  for (let tries = 1; ; tries++) {
    const result = await append(context, { stream, expect: 0, events: [accepted], claims: [claim] });
    if (result === 'lane_full') return { kind: 'lane_full' };
    if (result.outcome === 'ok') {
      const record = createSpendRecorder(lane, stream, result.version);
      return { kind: 'accepted', spend: { ...spend, claim, facts, record } };
    }
    if (result.outcome !== 'lost' && result.outcome !== 'same')
      throw new Error(`accepting a new spend ended as ${result.outcome}`);
    const isSame = result.outcome === 'same';
    const holder = await resolveHolder(context, result.stream, claim);
    if (holder === 'released' && tries < maxTries) continue;
    return refuseReplay(isSame, holder === 'earned', result.stream);
  }
}

async function append({ lane }: Accepting, command: LaneCommand): Promise<AppendOutcome | 'lane_full'> {
  try {
    return await lane.append(command);
  } catch (error) {
    if (error instanceof LaneFullError) return 'lane_full';
    throw error;
  }
}

function refuseReplay(isSame: boolean, isEarned: boolean, stream: string): SpendRefusal {
  if (!isSame) return invalidSpend('nonce_replay');
  if (!isEarned) return { kind: 'in_progress' };
  return { kind: 'already_paid', chatId: stream.slice(spendStream('').length) };
}

/**
 * The state of the spend that holds a nonce. When its process sends no heartbeats and has delivered nothing, the spend is
 * released here; the next append of that process then fails before it delivers anything.
 */
async function resolveHolder(
  { pool, lane, processId }: Accepting,
  stream: string,
  claim: Claim,
): Promise<'earned' | 'running' | 'released'> {
  const { events } = await readStream(pool, stream);
  const accepted = events.find((event) => event.type === 'spend_accepted');
  if (!accepted || events.some(({ type }) => type === 'spend_released')) return 'released';
  if (events.some(({ type }) => type === 'spend_earned')) return 'earned';
  const { binding, process_id: owner } = accepted.data;
  const { silentSecs } = presence;
  if (!(await isProcessSilent(pool, { processId: owner, by: processId, silentSecs }))) return 'running';
  const facts: SpendFacts = factsIn(accepted.data);
  const released: LedgerEvent = { type: 'spend_released', data: { ...facts, reason: 'process_lost' } };
  const freed = [{ ...claim, binding }];
  const { outcome } = await lane.append({ stream, expect: events.length, events: [released], freed });
  if (outcome !== 'ok') return 'running';
  await endExposure(pool, stream, false);
  return 'released';
}
