import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { Replicas } from '../use-cases/replicas.ts';
import { type Loop, startLoop } from './loop.ts';

const pollMs = 1_000;

/** Looks at the replicas again and again: whether they are the ledger's, and how far behind. */
export function startReplicaWatch(replicas: Pick<Replicas, 'look'>, log: OperatorLog): Loop {
  return startLoop(() => replicas.look(), {
    pollMs,
    log,
    failureMessage: 'the replicas could not be looked at',
  });
}
