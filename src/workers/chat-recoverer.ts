import { recoverChats } from '../chat/recover-chats.ts';
import type { ChatContext } from '../chat/context.ts';
import { beat } from '../store/credit.ts';
import { openBeside } from '../store/database.ts';
import { type Loop, startLoop } from './loop.ts';

/** After how much silence a process counts as gone, and how often it says that it is not. */
export interface Presence {
  readonly silentSecs: number;
  readonly heartbeatMs: number;
}

export const presence: Presence = { silentSecs: 15, heartbeatMs: 3_000 };

/**
 * Says that this process lives, and brings to an end what others held who do not any more. To be stopped last: while its
 * own completions are being finished, it must be seen.
 */
export function startChatRecoverer(
  context: Pick<ChatContext, 'pool' | 'lane' | 'processId' | 'log'>,
  { silentSecs, heartbeatMs: beatMs }: Presence = presence,
): Loop {
  // a loop and a connection of its own: however long anything else takes, this process is seen. Should one beat go unanswered,
  // the next, on another connection, is in time
  const own = openBeside(context.pool, silentSecs * 250);
  const pulse = startLoop(() => beat(own, context.processId, silentSecs), {
    pollMs: beatMs,
    log: context.log,
    failureMessage: 'the heartbeat could not be written',
  });
  const recoverer = startLoop(async () => void (await recoverChats(context, silentSecs)), {
    pollMs: beatMs,
    log: context.log,
    failureMessage: 'the holds of dead processes could not be read',
  });
  return {
    wake: () => recoverer.wake(),
    async stop() {
      await recoverer.stop();
      await pulse.stop();
      if (!own.ending) await own.end();
    },
  };
}
