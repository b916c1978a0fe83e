import type { Funds } from '../../../payments/peers/chain/transaction-sender.ts';
import type { TreeHead } from '../../../base/values/log/checkpoint.ts';
import type { RpcAnswer } from '../../../base/peers/rpc/json-rpc.ts';

/** A checkpoint to publish. */
export interface AnchoredHead extends TreeHead {
  readonly note: string;
}

export type AnchorAnswer =
  | { readonly kind: 'done' }
  /** A machine-readable cause; `overtaken`: another process has published since the anchor was read. */
  | { readonly kind: 'failed'; readonly cause: string };

/**
 * The newest checkpoint of an anchor. A `note` is only as trustworthy as its signature, which the caller checks. A `head` has
 * none: the chain vouches for it.
 */
export type AnchorReading =
  /** `version`: the anchor's name for this content, if it replaces contents by their version. */
  | { readonly kind: 'note'; readonly note: string; readonly version?: string }
  | { readonly kind: 'head'; readonly size: number; readonly root: Buffer }
  | { readonly kind: 'none' }
  | { readonly kind: 'failed'; readonly cause: string };

/** A place outside the database that stores checkpoints of the log. */
export interface Anchor {
  readonly name: string;
  readonly everyMs: number;
  /** Its place, for messages. */
  readonly place: string;
  /** Publishing costs nothing, so it may happen at any time, not only every `everyMs`. */
  readonly isFree: boolean;
  /**
   * Publishes a larger checkpoint than `over`, the newest one when the caller compared it with the database. A process that
   * stalled in between replaces nothing newer.
   */
  publish(head: AnchoredHead, over: AnchorReading): Promise<AnchorAnswer>;
  /** The newest checkpoint that was published to it; undefined if it cannot be read. */
  readonly newest: ((origin: string) => Promise<AnchorReading>) | undefined;
  /** The ether of its key, and the cost of publishing one head; absent if publishing is free. */
  readonly funds?: () => Promise<RpcAnswer<Funds>>;
  close(): Promise<void>;
}

/** The directory of one log within an anchor. */
export function directoryOf(origin: string): string {
  return origin.replaceAll(/[^A-Za-z0-9.-]/g, '_');
}

/** Names sort by size. Every checkpoint has its own file: none is overwritten. */
export function fileNameOf({ size }: Pick<AnchoredHead, 'size'>): string {
  return String(size).padStart(16, '0');
}

/** A copy of the newest checkpoint. */
export const newestName = 'checkpoint';
