import { ownPath, pathWith } from '../own-path.ts';
import type { Visit } from '../site.ts';

/** Where a sign-in leads: a page of this gateway, and nowhere else. */
export function nextOf({ site }: Visit, values: URLSearchParams): string {
  return ownPath(values.get('next'), site.publicUrl());
}

export function signInPath(next: string): string {
  return pathWith('/sign-in', { next: next === '/' ? '' : next });
}
