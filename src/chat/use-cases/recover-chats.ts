import type { LedgerEvent } from '../../ledger/rules/event.ts';
import type { CreditMove } from '../../ledger/store/append-batch.ts';
import { findOrphanedHolds, type OrphanedHold } from '../../accounts/store/credit.ts';
import { readStream } from '../../ledger/store/streams.ts';
import type { ChatContext } from './context.ts';

type Recovering = Pick<ChatContext, 'pool' | 'lane' | 'processId' | 'log'>;

/** Limited, since requests use the same connection pool. */
const holdsPerRound = 16;

/**
 * Ends the holds of processes without a heartbeat for `silentSecs`: captures a hold whose answer had begun to be passed on, and
 * releases any other. Other processes may do the same, and the owner may come back: the first one to end a hold counts. Does
 * nothing unless this process's own heartbeats were recorded all that time. Returns how many holds it ended. A hold that
 * cannot be ended is logged, and does not stop the others.
 */
export async function recoverChats(context: Recovering, silentSecs: number): Promise<number> {
  const { pool, processId } = context;
  const left: string[] = [];
  let ended = 0;
  for (;;) {
    const holds = await findOrphanedHolds(pool, { processId, silentSecs, max: holdsPerRound, besides: left });
    await Promise.all(
      holds.map(async (hold) => {
        if (await tryToRecover(context, hold, silentSecs)) ended++;
        else left.push(hold.chatId);
      }),
    );
    if (holds.length < holdsPerRound) return ended;
  }
}

async function tryToRecover(context: Recovering, hold: OrphanedHold, silentSecs: number): Promise<boolean> {
  const { chatId, accountId, amountMicros, isStarted } = hold;
  const facts = { chat_id: chatId, account_id: accountId, amount_micros: String(amountMicros) };
  try {
    const isEnded = await recover(context, hold, silentSecs);
    if (isEnded) {
      const message = 'the hold of a process without heartbeats was ended';
      context.log.warn({ ...facts, is_charged: isStarted }, message);
    }
    return isEnded;
  } catch (error) {
    context.log.error(
      { err: error, ...facts },
      'the hold of a process without heartbeats could not be ended',
    );
    return false;
  }
}

/** False when another process has ended it, its answer has begun meanwhile, or its owner is back. */
async function recover(
  { pool, lane, processId }: Recovering,
  hold: OrphanedHold,
  silentSecs: number,
): Promise<boolean> {
  const stream = `chat:${hold.chatId}`;
  const { events } = await readStream(pool, stream);
  const admitted = events.find((event) => event.type === 'chat_admitted');
  if (!admitted) throw new Error('the ledger has no admission of this completion');
  const { outcome } = await lane.appendCredit(
    {
      stream,
      events: endOf(hold, admitted.data.model),
      credit: { ...moveOf(hold), recovery: { processId, silentSecs } },
    },
    { urgent: true },
  );
  return outcome === 'ok';
}

/** The actual cost is lost with the process: the hold counts, as its upper bound, with no tokens. */
function endOf(
  { chatId, accountId, keyId, amountMicros, isStarted }: OrphanedHold,
  model: string,
): LedgerEvent[] {
  const amount_micros = String(amountMicros);
  const of = { account_id: accountId, chat_id: chatId, ...(keyId === undefined ? {} : { key_id: keyId }) };
  if (!isStarted)
    return [
      { type: 'chat_failed', data: { reason: 'process_lost', model } },
      { type: 'credit_released', data: { ...of, amount_micros } },
    ];
  return [
    {
      type: 'chat_completed',
      data: {
        ending: 'recovered',
        model,
        prompt_tokens: 0,
        completion_tokens: 0,
        is_estimate: true,
        cost_micros: amount_micros,
        reason: 'process_lost',
      },
    },
    { type: 'credit_captured', data: { ...of, amount_micros, is_estimate: true } },
  ];
}

function moveOf({ chatId, amountMicros, isStarted }: OrphanedHold): Extract<CreditMove, { op: 'settle' }> {
  return isStarted
    ? { op: 'settle', chatId, capturedMicros: amountMicros, releasedMicros: 0n }
    : { op: 'settle', chatId, capturedMicros: 0n, releasedMicros: amountMicros, isUnstarted: true };
}
