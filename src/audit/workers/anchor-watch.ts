import type pg from 'pg';
import type { NoteSigner } from '../../base/values/log/checkpoint.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import { type AnchorLag, readAnchorLags } from '../use-cases/log/anchor-lag.ts';
import type { Anchor } from '../peers/anchors/anchor.ts';
import type { Since } from '../../base/runtime/since.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

const pollMs = 5_000;

/** Reads how many events each anchor lacks, for `/status` and the metrics. */
export function startAnchorWatch(
  { pool, log }: { readonly pool: pg.Pool; readonly log: OperatorLog },
  first: NoteSigner,
  anchors: readonly Anchor[],
  onLags: (lags: ReadonlyMap<string, AnchorLag>) => void,
): Loop {
  return startLoop(async () => onLags(await readAnchorLags(pool, first, anchors)), {
    pollMs,
    log,
    failureMessage: 'how far the anchors are could not be read',
  });
}

const unread: AnchorLag = { size: 0, behindEvents: 0, behindMs: 0, isLate: false };

/** `ok` while no anchor is late. */
export function logStatus(anchors: readonly Anchor[], lags: ReadonlyMap<string, AnchorLag>, since: Since) {
  const checks = anchors.map(({ name }) => {
    const { size, behindEvents, isLate } = lags.get(name) ?? unread;
    const detail = isLate ? { detail: 'it does not take the checkpoints' } : {};
    const check = { ok: !isLate, ...detail, since: since.of(`anchor ${name}`, !isLate) };
    return [name, { ...check, size, behind_events: behindEvents }] as const;
  });
  const areOk = checks.every(([, { ok }]) => ok);
  const status = areOk ? ('ok' as const) : ('degraded' as const);
  return { status, since: since.of('log', areOk), anchors: Object.fromEntries(checks) };
}
