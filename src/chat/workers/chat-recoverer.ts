import { recoverChats } from '../use-cases/recover-chats.ts';
import type { ChatContext } from '../use-cases/context.ts';
import { type Presence, presence } from '../../base/values/presence.ts';
import { openBeside } from '../../ledger/store/database.ts';
import { sendHeartbeat } from '../../ledger/store/processes.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

/**
 * Records this process's heartbeats. Stopped last: they must continue while its own completions are being finished, and while
 * it judges other processes.
 */
export function startHeartbeats(
  context: Pick<ChatContext, 'pool' | 'processId' | 'log'>,
  { silentSecs, heartbeatMs }: Presence = presence,
): Loop {
  // a separate loop and connection pool, so that no other work delays a heartbeat; its statement time-out lets the next
  // heartbeat, on another connection, still be in time when one is not answered
  const own = openBeside(context.pool, silentSecs * 250);
  return startLoop(() => sendHeartbeat(own, context.processId, silentSecs), {
    pollMs: heartbeatMs,
    log: context.log,
    failureMessage: 'the heartbeat could not be written',
    async onStopped() {
      if (!own.ending) await own.end();
    },
  });
}

/** Ends the holds of processes whose heartbeats are missing. This process judges others only while it sends its own heartbeats. */
export function startChatRecoverer(
  context: Pick<ChatContext, 'pool' | 'lane' | 'processId' | 'log'>,
  { silentSecs, heartbeatMs }: Presence = presence,
): Loop {
  return startLoop(async () => void (await recoverChats(context, silentSecs)), {
    pollMs: heartbeatMs,
    log: context.log,
    failureMessage: 'the holds of dead processes could not be read',
  });
}
