import type pg from 'pg';
import type { KnownHead } from '../use-cases/log/history.ts';
import { sealNext, type SealOptions } from '../use-cases/log/seal.ts';
import type { NoteSigner } from '../../base/values/log/checkpoint.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';
import { currentSigner, publishNewestHead, findInconsistency } from '../use-cases/log/anchors.ts';
import type { Backlog } from '../../ledger/store/backlogs.ts';
import { readUnsealed } from '../store/log.ts';
import type { Anchor } from '../peers/anchors/anchor.ts';
import type { Lane } from '../../ledger/store/lane.ts';
import { type AnchorLag, readAnchorLags } from '../use-cases/log/anchor-lag.ts';
import type { Since } from '../../base/runtime/since.ts';

const checkMs = 1_000;
const watchMs = 5_000;

interface Context {
  readonly pool: pg.Pool;
  readonly log: OperatorLog;
}

/** Seals new events. `onSealed` runs after each step, when the new tree head is committed and may be published. */
export function startSealer(
  { pool, log }: Context,
  signer: NoteSigner,
  options: SealOptions,
  known: KnownHead,
  onSealed: () => Promise<void>,
): Loop {
  // twice per interval: several processes share the work, so no head is late if one of them is slow
  const pollMs = Math.max(10, Math.floor(options.everyMs / 2));
  return startLoop(
    async () => {
      const sealed = await sealNext(pool, signer, options, known);
      await onSealed();
      return sealed === 'again';
    },
    { pollMs, log, failureMessage: 'the ledger could not be sealed' },
  );
}

/** Reads how many events the newest checkpoint lacks. Any process may be the one that seals. */
export function startSealerWatch(
  { pool, log }: Context,
  first: NoteSigner,
  onUnsealed: (unsealed: Backlog) => void,
): Loop {
  return startLoop(
    async () => {
      const { name: origin } = await currentSigner(pool, first);
      onUnsealed(await readUnsealed(pool, origin));
    },
    { pollMs: watchMs, log, failureMessage: 'how far the log is could not be read' },
  );
}

/** Publishes checkpoints to every anchor, each in a separate loop: a slow one does not delay the others. */
export function startAnchorer(
  { pool, lane, log }: Context & { readonly lane: Pick<Lane, 'halt'> },
  first: NoteSigner,
  anchors: readonly Anchor[],
  known: KnownHead,
): Loop {
  const loops = anchors.map((anchor) =>
    startLoop(
      async () => {
        const published = await publishNewestHead(pool, first, anchor, known);
        if (published.kind === 'inconsistent') lane.halt(published.halt);
        if (published.kind === 'unverifiable')
          log.error(
            { anchor: anchor.name, ...published },
            'an anchor holds data that is not a checkpoint of this log: nothing is published over it',
          );
        if (published.kind === 'failed')
          log.warn(
            { anchor: anchor.name, ...published },
            'an anchor did not take the checkpoint: it is tried again',
          );
      },
      {
        pollMs: Math.min(checkMs, anchor.everyMs),
        log,
        failureMessage: 'the checkpoint for an anchor could not be read',
        fields: { anchor: anchor.name },
      },
    ),
  );
  return {
    wake: () => loops.forEach((loop) => loop.wake()),
    async stop() {
      await Promise.all(loops.map((loop) => loop.stop()));
    },
  };
}

/** Reads how many events each anchor lacks, for `/status` and the metrics. */
export function startAnchorWatch(
  { pool, log }: Context,
  first: NoteSigner,
  anchors: readonly Anchor[],
  onLags: (lags: ReadonlyMap<string, AnchorLag>) => void,
): Loop {
  return startLoop(async () => onLags(await readAnchorLags(pool, first, anchors)), {
    pollMs: watchMs,
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

const knownEveryMs = 5_000;
const anchorsEveryMs = 60_000;

/**
 * Compares the database with the knowledge of this process and the anchors: immediately after the database could not be reached,
 * since it may be another one then, and from time to time. Halts the ledger if they differ.
 */
export function startHistoryChecker(
  { pool, lane, log }: Context & { readonly lane: Lane },
  first: NoteSigner,
  known: KnownHead,
  anchors: readonly Anchor[],
): Loop {
  let checkedMs = performance.now();
  let anchorsCheckedMs = checkedMs;
  let interruptions = 0;
  return startLoop(
    async () => {
      const { state } = lane;
      const nowMs = performance.now();
      const isOther = state.interruptions !== interruptions;
      if (state.halt || (!isOther && nowMs - checkedMs < knownEveryMs)) return;
      const withAnchors = isOther || nowMs - anchorsCheckedMs >= anchorsEveryMs;
      // also notices a lost append while nothing is appended
      void lane.refresh();
      const found = await findInconsistency(pool, first, known, withAnchors ? anchors : []);
      if (found) lane.halt(found);
      ({ interruptions } = state);
      checkedMs = nowMs;
      if (withAnchors) anchorsCheckedMs = nowMs;
    },
    { pollMs: checkMs, log, failureMessage: 'the database could not be compared with the checkpoints' },
  );
}
