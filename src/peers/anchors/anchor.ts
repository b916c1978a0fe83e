/** A checkpoint to publish. */
export interface AnchoredHead {
  readonly origin: string;
  readonly size: number;
  readonly root: Buffer;
  readonly note: string;
}

export type AnchorAnswer =
  | { readonly kind: 'done' }
  /** A machine-readable cause. */
  | { readonly kind: 'failed'; readonly cause: string };

/**
 * The newest checkpoint of an anchor. A `note` is only as trustworthy as its signature, which the caller checks. A `head` has
 * none: the chain vouches for it.
 */
export type AnchorReading =
  | { readonly kind: 'note'; readonly note: string }
  | { readonly kind: 'head'; readonly size: number; readonly root: Buffer }
  | { readonly kind: 'none' }
  | { readonly kind: 'failed'; readonly cause: string };

/** A place outside the database that stores checkpoints of the log. */
export interface Anchor {
  readonly name: string;
  readonly everyMs: number;
  /** Where it is, for messages. */
  readonly place: string;
  /** Publishing costs nothing, so it may happen at any time, not only every `everyMs`. */
  readonly isFree: boolean;
  publish(head: AnchoredHead): Promise<AnchorAnswer>;
  /** The newest checkpoint that was published to it; undefined where it cannot be read. */
  readonly newest: ((origin: string) => Promise<AnchorReading>) | undefined;
  close(): Promise<void>;
}
