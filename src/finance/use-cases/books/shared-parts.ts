/**
 * Readers of one sequence, each of which gets every item: the next item is read once all have asked for it. So several formats are
 * written in one pass, and memory does not grow. A reader that leaves early does not hold the others up.
 */
export function sharedParts<T>(source: AsyncIterable<T>, readers: number): AsyncIterable<T>[] {
  const items = source[Symbol.asyncIterator]();
  let present = readers;
  let waiting = 0;
  let turn = Promise.withResolvers<IteratorResult<T>>();
  const advance = (): void => {
    if (waiting === 0 || waiting < present) return;
    const { resolve, reject } = turn;
    waiting = 0;
    turn = Promise.withResolvers();
    items.next().then(resolve, reject);
  };
  const next = async (): Promise<IteratorResult<T>> => {
    waiting += 1;
    const { promise } = turn;
    advance();
    return promise;
  };
  async function* reader(): AsyncGenerator<T> {
    try {
      for (let read = await next(); !read.done; read = await next()) yield read.value;
    } finally {
      present -= 1;
      advance();
    }
  }
  return Array.from({ length: readers }, reader);
}
