import type pg from 'pg';
import { publishNewestHead } from '../use-cases/log/anchors.ts';
import type { NoteSigner } from '../../base/values/log/checkpoint.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { Anchor } from '../peers/anchors/anchor.ts';
import type { KnownHead } from '../use-cases/log/known-head.ts';
import type { Lane } from '../../ledger/store/lane.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

const pollMs = 1_000;

/** Publishes checkpoints to every anchor, each in a separate loop: a slow one does not delay the others. */
export function startAnchorer(
  {
    pool,
    lane,
    log,
  }: { readonly pool: pg.Pool; readonly lane: Pick<Lane, 'halt'>; readonly log: OperatorLog },
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
            'an anchor holds what is no checkpoint of this log: nothing is published over it',
          );
        if (published.kind === 'failed')
          log.warn(
            { anchor: anchor.name, ...published },
            'an anchor did not take the checkpoint: it is tried again',
          );
      },
      {
        pollMs: Math.min(pollMs, anchor.everyMs),
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
