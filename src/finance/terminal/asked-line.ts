import { visibleText } from '../../base/values/visible-text.ts';

/** What a payer asks for, with its own words, which cannot change the terminal. */
export function askedLine({
  at,
  reason,
}: {
  readonly at: string;
  readonly reason: string | null | undefined;
}): string {
  const words = typeof reason !== 'string' ? 'its reason is deleted' : JSON.stringify(visibleText(reason));
  return `  its payer asks for it since ${at}: ${words}`;
}
