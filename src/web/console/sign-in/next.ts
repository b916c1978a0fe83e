import { ownPath } from '../../pages/own-path.ts';
import type { VisitOf } from '../../pages/visit.ts';
import type { ConsoleSite } from '../visit.ts';

/** Any visit of the console, signed in or not. */
export type AnyVisit = VisitOf<ConsoleSite>;

/** Where a sign-in leads: a page of the console, and nowhere else. */
export function nextOf({ site }: AnyVisit, values: URLSearchParams): string {
  const path = ownPath(values.get('next'), site.publicUrl());
  return /^\/console(?:[/?]|$)/.test(path) ? path : '/console';
}

export function anyone(visit: AnyVisit) {
  return { kind: 'admitted', visit } as const;
}
