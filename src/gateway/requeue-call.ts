import { findCall } from '../store/calls.ts';
import type { Gateway } from './gateway.ts';

/** Puts a dead-lettered call back in the queue, by the operator's word. False where there is no such dead letter. */
export async function requeueCall(
  gateway: Pick<Gateway, 'db' | 'lane'>,
  callId: number,
  tokenId?: number,
): Promise<boolean> {
  const call = await findCall(gateway.db, callId);
  if (call?.status !== 'dead') return false;
  const { outcome } = await gateway.lane.append({
    stream: call.stream,
    events: [
      {
        type: 'operator_requeued',
        data: { call_id: callId, ...(tokenId === undefined ? {} : { token_id: tokenId }) },
      },
    ],
    call: { op: 'requeue', callId },
  });
  return outcome === 'ok';
}
