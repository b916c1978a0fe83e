import type pg from 'pg';
import type { NoteSigner } from '../domain/log/checkpoint.ts';
import { signerIn } from '../domain/log/log-generation.ts';
import type { OperatorLog } from '../domain/values/operator-log.ts';
import type { Anchor } from '../peers/anchors/anchor.ts';
import type { Since } from '../runtime/since.ts';
import { type AnchorState, readAnchorStates, readLogGeneration } from '../store/log.ts';
import { type Loop, startLoop } from './loop.ts';

const pollMs = 5_000;
/** Beyond the time between two checkpoints: an anchor that fails is tried again within it. */
const lateMs = 300_000;

/** Reads how far each anchor is behind, for `/status`. Any process may be the one that copies the checkpoints. */
export function startAnchorWatch(
  { pool, log }: { readonly pool: pg.Pool; readonly log: OperatorLog },
  first: NoteSigner,
  onStates: (states: readonly AnchorState[]) => void,
): Loop {
  return startLoop(
    async () => {
      const { generation } = await readLogGeneration(pool);
      onStates(await readAnchorStates(pool, signerIn(first, generation).name));
    },
    { pollMs, log, failureMessage: 'how far the anchors are could not be read' },
  );
}

/** `ok` while every anchor has taken each checkpoint in time. */
export function logStatus(anchors: readonly Anchor[], states: readonly AnchorState[], since: Since) {
  const known = new Map(states.map((state) => [state.name, state]));
  const checks = anchors.map(({ name, everyMs }) => {
    const { size = 0, behindEvents = 0, behindMs = 0 } = known.get(name) ?? {};
    const ok = behindMs <= everyMs + lateMs;
    const detail = ok ? {} : { detail: 'it does not take the checkpoints' };
    const check = { ok, ...detail, since: since.of(`anchor ${name}`, ok) };
    return [name, { ...check, size, behind_events: behindEvents }] as const;
  });
  const areOk = checks.every(([, { ok }]) => ok);
  const status = areOk ? ('ok' as const) : ('degraded' as const);
  return { status, since: since.of('log', areOk), anchors: Object.fromEntries(checks) };
}
