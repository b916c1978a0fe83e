import { discardByPolicy, type PolicyPorts } from '../use-cases/discard-calls.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

const pollMs = 5_000;

/** Gives up the dead letters that the policies of their jobs do not keep. */
export function startDeadLetterDiscarder(current: () => PolicyPorts): Loop {
  return startLoop(() => discardByPolicy(current()), {
    pollMs,
    log: current().log,
    failureMessage: 'dead letters could not be given up by policy',
  });
}
