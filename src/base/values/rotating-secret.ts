/**
 * A secret that can be replaced while it is in use. The first one signs issued and sent values; the others, at most one from the
 * configuration, are accepted too: the next secret before the change, the last one after it.
 */
export type RotatingSecret<T = string> = readonly [inUse: T, ...accepted: T[]];

/** The same for a value derived from each. */
export function mapSecrets<A, B>(
  [inUse, ...accepted]: RotatingSecret<A>,
  derive: (secret: A) => B,
): RotatingSecret<B> {
  return [derive(inUse), ...accepted.map((secret) => derive(secret))];
}
