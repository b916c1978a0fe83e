import type { View } from '../site.ts';

/** A view with a form that was refused has the refusal's status. */
export interface Refusal {
  readonly status: number;
  readonly text: string;
  readonly retryAfterSecs?: number;
}

export function refusedView(view: View, result: Refusal | undefined): View {
  if (!result) return view;
  const { status, retryAfterSecs } = result;
  return { ...view, status, ...(retryAfterSecs !== undefined && { retryAfterSecs }) };
}
