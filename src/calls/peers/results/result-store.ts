export type Put = { readonly kind: 'put' } | { readonly kind: 'failed'; readonly cause: string };
export type Got =
  | { readonly kind: 'got'; readonly bytes: Buffer }
  | { readonly kind: 'none' }
  | { readonly kind: 'failed'; readonly cause: string };
export type Removed = { readonly kind: 'removed' } | { readonly kind: 'failed'; readonly cause: string };

/** Keeps the parts of results that are too large for the database. Never rejects. */
export interface ResultStore {
  /** Replaces what the key holds. */
  put(key: string, bytes: Buffer): Promise<Put>;
  /** Up to `maxBytes` of it from a byte on; fewer if it ends. */
  get(key: string, from: number, maxBytes: number): Promise<Got>;
  /** Also done if the key holds nothing. */
  remove(key: string): Promise<Removed>;
  close(): Promise<void>;
}

/** Digits, letters, dashes and single slashes: no part of a key leads out of the store. */
export function requireKey(key: string): string {
  if (!/^[a-z0-9-]+(?:\/[a-z0-9-]+)*$/.test(key)) throw new Error('a key of the result store is out of form');
  return key;
}
