import type { LedgerEvent } from '../../../ledger/rules/event.ts';
import { sha256 } from '../../../base/values/sha256.ts';
import { presence } from '../../../base/values/presence.ts';
import type { Hex } from '../../../base/values/primitives.ts';
import type { AppendOutcome, Claim, LaneCommand } from '../../../ledger/store/append-batch.ts';
import { LaneFullError } from '../../../ledger/store/lane.ts';
import { isProcessSilent } from '../../../ledger/store/processes.ts';
import { endExposure } from '../../store/exposure.ts';
import { findClaim, readStream } from '../../../ledger/store/streams.ts';
import { spendClaims } from '../../../payments/store/recorded-claims.ts';
import { nonceUsed } from './authorize-spend.ts';
import type { SpendContext } from '../context.ts';
import { releasedEvent } from './record-spend.ts';
import { createSpendRecorder } from './spend.ts';
import { invalidSpend, type SpendRefusal } from './refusal.ts';
import {
  type AcceptedSpend,
  factsIn,
  factsOf,
  type SpendFacts,
  spendStream,
  type VerifiedSpend,
} from './spend.ts';

type Accepting = Pick<SpendContext, 'settings' | 'pool' | 'lane' | 'processId'>;

/** The only route that spends pay for. */
const target = 'POST /v1/chat/completions';
const maxTries = 5;

/**
 * Accepts a verified spend for one completion. Its nonce is claimed until the spend is released, which happens only when nothing
 * was delivered for it. The spend itself pays for one request: once it may be public, for ever, and again for that request only
 * with the client's secret, since the rest of the request may be guessed. A spend that landed before it was accepted here is
 * public and belongs to no request: it is refused.
 */
export async function acceptSpend(
  context: Accepting,
  spend: VerifiedSpend,
  chatId: string,
  body: Uint8Array,
): Promise<{ readonly kind: 'accepted'; readonly spend: AcceptedSpend } | SpendRefusal> {
  const { settings, pool, lane } = context;
  const hasSecret = spend.secret !== undefined;
  const binding = bindingOf(spend, body);
  const claims = spendClaims(settings, spend.auth, spend.digest, binding);
  const stream = spendStream(chatId);
  const accepted = acceptedEvent(context, spend, chatId, binding);
  if (spend.isNonceUsed && !(await findClaim(pool, claims.request))) return nonceUsed(spend.auth);
  // it was accepted for this request before, and may be public
  let isBound = false;
  for (let tries = 1; ; tries++) {
    const wanted = isBound ? [claims.nonce] : [claims.request, claims.nonce];
    const result = await append(context, { stream, expect: 0, events: [accepted], claims: wanted });
    if (result === 'lane_full') return { kind: 'lane_full' };
    if (result.outcome === 'ok') {
      const record = createSpendRecorder(lane, stream, result.version);
      const facts = factsIn(accepted.data);
      const { nonce: claim, request: requestClaim } = claims;
      const mine = { claim, requestClaim, facts, record, isPublic: isBound };
      return { kind: 'accepted', spend: { ...spend, ...mine } };
    }
    if (result.outcome !== 'lost' && result.outcome !== 'same')
      throw new Error(`accepting a new spend ended as ${result.outcome}`);
    if (result.outcome === 'lost' && result.claim === 'spend_request') return invalidSpend('nonce_replay');
    const holder = await resolveHolder(context, result.stream, claims.nonce);
    const isSame = result.outcome === 'same';
    if (holder === 'earned' || holder === 'running' || tries === maxTries)
      return refuseReplay(isSame, holder === 'earned', hasSecret ? result.stream : undefined);
    if (holder === 'bound' && result.claim === 'spend_request') {
      if (!hasSecret) return { kind: 'bound' };
      isBound = true;
    }
  }
}

/** What a spend pays for. The secret is the only part that neither the chain shows nor a stranger can guess. */
function bindingOf({ digest, secret }: VerifiedSpend, body: Uint8Array): Hex {
  const request = `${digest} ${target} ${sha256(body)}`;
  return sha256(secret === undefined ? request : `${request} ${sha256(secret)}`);
}

type AcceptedEvent = Extract<LedgerEvent, { type: 'spend_accepted' }>;

function acceptedEvent(
  { settings, processId }: Accepting,
  spend: VerifiedSpend,
  chatId: string,
  binding: Hex,
): AcceptedEvent {
  const { serviceId, jobIndex, expiry, signature } = spend.auth;
  const terms = {
    service_id: String(serviceId),
    job_index: jobIndex,
    expiry: String(expiry),
    signature,
  };
  const facts = factsOf(settings, spend, chatId);
  return { type: 'spend_accepted', data: { ...facts, ...terms, binding, process_id: processId } };
}

async function append({ lane }: Accepting, command: LaneCommand): Promise<AppendOutcome | 'lane_full'> {
  try {
    return await lane.append(command);
  } catch (error) {
    if (error instanceof LaneFullError) return 'lane_full';
    throw error;
  }
}

function refuseReplay(isSame: boolean, isEarned: boolean, stream: string | undefined): SpendRefusal {
  if (!isSame) return invalidSpend('nonce_replay');
  if (!isEarned) return { kind: 'in_progress' };
  return { kind: 'already_paid', chatId: stream?.slice(spendStream('').length) };
}

/**
 * The state of the spend that holds a claim. When its process sends no heartbeats and has delivered nothing, the spend is
 * released here; the next append of that process then fails before it delivers anything. `bound`: released, and it may be
 * public.
 */
async function resolveHolder(
  { pool, lane, processId }: Accepting,
  stream: string,
  nonceClaim: Claim,
): Promise<'earned' | 'running' | 'bound' | 'free'> {
  const { events } = await readStream(pool, stream);
  const accepted = events.find((event) => event.type === 'spend_accepted');
  const released = events.find((event) => event.type === 'spend_released');
  if (!accepted || released) return released?.data.may_have_landed ? 'bound' : 'free';
  if (events.some(({ type }) => type === 'spend_earned')) return 'earned';
  const { binding, process_id: owner } = accepted.data;
  const { silentSecs } = presence;
  if (!(await isProcessSilent(pool, { processId: owner, by: processId, silentSecs }))) return 'running';
  const facts: SpendFacts = factsIn(accepted.data);
  const freed = [{ ...nonceClaim, binding }];
  // its process may have sent it to the chain
  const lost = releasedEvent(facts, 'process_lost');
  const { outcome } = await lane.append({ stream, expect: events.length, events: [lost], freed });
  if (outcome !== 'ok') return 'running';
  await endExposure(pool, stream, false);
  return 'bound';
}
