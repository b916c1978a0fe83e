import { pipeline, type Readable, Transform, type TransformCallback } from 'node:stream';

/** A right that was read within this time is not read again. */
const knownMs = 1_000;

/**
 * A stream for somebody who may lose the right to it while it lasts: the right is read again before bytes are sent. Without it the
 * stream breaks, so that no client takes what it has for the whole.
 */
export function admittedStream(body: Readable, isAdmitted: () => Promise<boolean>): Readable {
  let readAtMs = performance.now();
  const isStillAdmitted = async (): Promise<boolean> => {
    if (performance.now() - readAtMs < knownMs) return true;
    readAtMs = performance.now();
    return isAdmitted();
  };
  const pass = async (chunk: Buffer, done: TransformCallback): Promise<void> => {
    try {
      if (await isStillAdmitted()) done(null, chunk);
      else sent.destroy();
    } catch (error) {
      sent.destroy(error instanceof Error ? error : undefined);
    }
  };
  const sent = new Transform({
    highWaterMark: 1,
    transform: (chunk: Buffer, _encoding, done) => void pass(chunk, done),
  });
  // where one of them ends, the other one does
  pipeline(body, sent, () => undefined);
  return sent;
}
