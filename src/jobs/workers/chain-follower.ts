import type pg from 'pg';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { EventReader } from '../../payments/peers/chain/event-reader.ts';
import type { ChainTrigger, ReadAhead } from '../use-cases/triggers/chain-look.ts';
import type { Fire, FiringCounts } from '../use-cases/triggers/fire.ts';
import { followChain } from '../use-cases/triggers/follow-chain.ts';
import { newReadAhead } from '../use-cases/triggers/read-next.ts';
import { LedgerInconsistentError } from '../../ledger/store/halt.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

const pollMs = 500;

export interface ChainFollowing {
  readonly pool: pg.Pool;
  readonly log: OperatorLog;
  readonly counts: FiringCounts;
  readonly triggers: () => readonly ChainTrigger[];
  readonly readerOf: (trigger: ChainTrigger) => EventReader;
  readonly fireOf: (trigger: ChainTrigger) => Fire;
}

/** Reads the chains of triggers, each when it is due: one gateway at a time does. A slow chain delays no other trigger. */
export function startChainFollower(following: ChainFollowing): Loop {
  const { pool, log, counts, triggers, readerOf, fireOf } = following;
  const aheadOf = new Map<string, ReadAhead>();
  const looking = new Map<string, Promise<void>>();
  let isStopping = false;
  const loop = startLoop(
    async () => {
      for (const trigger of triggers()) {
        const { name } = trigger;
        if (looking.has(name)) continue;
        const ahead = aheadOf.get(name) ?? newReadAhead();
        aheadOf.set(name, ahead);
        const parts = { pool, log, counts, ahead, isStopping: () => isStopping };
        const looked = followChain({ ...parts, reader: readerOf(trigger), fire: fireOf(trigger) }, trigger)
          .catch((error: unknown) => {
            // a halted ledger was logged once already
            if (error instanceof LedgerInconsistentError) return;
            log.warn(
              { err: error, trigger: name },
              'the events of a trigger could not be recorded: they are read again',
            );
          })
          .finally(() => looking.delete(name));
        looking.set(name, looked);
      }
    },
    {
      pollMs,
      log,
      failureMessage: 'the chains of triggers could not be looked at',
      onStopped: () => Promise.all(looking.values()),
    },
  );
  return {
    wake: () => loop.wake(),
    stop() {
      isStopping = true;
      return loop.stop();
    },
  };
}
