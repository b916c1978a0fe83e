import type pg from 'pg';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { EventReader } from '../../payments/peers/chain/event-reader.ts';
import type { ChainTrigger, ReadAhead } from '../use-cases/triggers/chain-look.ts';
import type { Fire, FiringCounts } from '../use-cases/triggers/fire.ts';
import { followChain } from '../use-cases/triggers/follow-chain.ts';
import { newReadAhead } from '../use-cases/triggers/read-next.ts';
import type { Loop } from '../../ledger/workers/loop.ts';
import { startRounds } from '../../ledger/workers/rounds.ts';

const pollMs = 500;

export interface ChainFollowing {
  readonly pool: pg.Pool;
  readonly log: OperatorLog;
  readonly counts: FiringCounts;
  readonly triggers: () => readonly ChainTrigger[];
  readonly readerOf: (trigger: ChainTrigger) => EventReader;
  readonly fireOf: (trigger: ChainTrigger) => Fire;
}

/** Reads the chains of triggers, each when it is due: one gateway at a time does. */
export function startChainFollower(following: ChainFollowing): Loop {
  const { pool, log, counts, triggers, readerOf, fireOf } = following;
  const aheadOf = new Map<string, ReadAhead>();
  return startRounds({
    items: triggers,
    nameOf: ({ name }) => name,
    run(trigger, stopping) {
      const ahead = aheadOf.get(trigger.name) ?? newReadAhead();
      aheadOf.set(trigger.name, ahead);
      const parts = { pool, log, counts, ahead, isStopping: () => stopping.aborted };
      return followChain({ ...parts, reader: readerOf(trigger), fire: fireOf(trigger) }, trigger);
    },
    pollMs,
    log,
    failureMessage: 'the chains of triggers could not be looked at',
    roundFailureMessage: 'the events of a trigger could not be recorded: they are read again',
    roundFields: ({ name }) => ({ trigger: name }),
  });
}
