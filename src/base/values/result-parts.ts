/**
 * A large result travels and is stored in parts of this size, the last one shorter: no process ever holds the whole, a part that is lost on
 * its way is sent again by itself, and any gateway takes any part.
 */
export const resultPartBytes = 4_194_304;

/** How many parts a result of this many bytes has. */
export function partsOf(bytes: number): number {
  return Math.ceil(bytes / resultPartBytes);
}

/** The header of a call by which a gateway tells its runner how long a result may be. */
export const maxResultHeader = 'x-net-max-result-bytes';
