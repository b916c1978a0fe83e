/** A list in chunks of at most `most` members, in order. `most` is 1 or above. */
export function* chunksOf<T>(all: readonly T[], most: number): Generator<T[]> {
  for (let from = 0; from < all.length; from += most) yield all.slice(from, from + most);
}
