import { Readable } from 'node:stream';

const keepAlive = Buffer.from(': keep-alive\n\n');

/**
 * A response body that pulls events one at a time: nothing is read ahead of a slow client, and a client that leaves ends the
 * events. During a long silence a comment keeps proxies from closing the connection. Resolves once the first event has
 * arrived: an iterator that has not begun could not be ended.
 * @param events each ends in a blank line; they never throw
 * @param isCutShort checked at the end: true breaks the connection instead of ending the body, so that no client takes the
 * answer for complete
 */
export async function eventStream(
  events: AsyncIterable<Buffer>,
  { keepAliveMs, isCutShort }: { readonly keepAliveMs: number; readonly isCutShort: () => boolean },
): Promise<Readable> {
  const iterator = events[Symbol.asyncIterator]();
  let first: IteratorResult<Buffer> | undefined = await iterator.next();
  let isPulling = false;

  const pull = async (stream: Readable): Promise<void> => {
    // reading a comment triggers another read while the event is still awaited
    if (isPulling) return;
    isPulling = true;
    const timer = setInterval(() => {
      if (stream.readableLength === 0 && !stream.destroyed) stream.push(keepAlive);
    }, keepAliveMs);
    const { done, value } = first ?? (await iterator.next().finally(() => clearInterval(timer)));
    clearInterval(timer);
    first = undefined;
    isPulling = false;
    if (!done) stream.push(value);
    else if (isCutShort()) stream.destroy(new Error('the gateway is shutting down'));
    else stream.push(null);
  };
  return new Readable({
    highWaterMark: 1,
    read() {
      pull(this).catch((error: unknown) => this.destroy(error instanceof Error ? error : undefined));
    },
    destroy(error, done) {
      void end(iterator, () => done(error));
    },
  });
}

async function end(iterator: AsyncIterator<Buffer>, done: () => void): Promise<void> {
  try {
    await iterator.return?.();
  } finally {
    done();
  }
}
