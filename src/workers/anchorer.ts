import type pg from 'pg';
import { publishNewestHead } from '../log/anchors.ts';
import type { OperatorLog } from '../domain/values/operator-log.ts';
import type { Anchor } from '../peers/anchors/anchor.ts';
import { type Loop, startLoop } from './loop.ts';

const pollMs = 1_000;

/** Hands every anchor its checkpoints: a slow one holds up no other. */
export function startAnchorer(
  { pool, log }: { readonly pool: pg.Pool; readonly log: OperatorLog },
  origin: string,
  anchors: readonly Anchor[],
): Loop {
  const loops = anchors.map((anchor) =>
    startLoop(
      async () => {
        const told = await publishNewestHead(pool, origin, anchor);
        if (told.kind === 'failed')
          log.warn(
            { anchor: anchor.name, ...told },
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
