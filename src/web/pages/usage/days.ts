import { html, type Html } from '../../../base/values/html.ts';
import { visibleText } from '../../../base/values/visible-text.ts';
import { day, maxDaysApart } from '../../../chat/http/schemas/usage.ts';
import { dayText, field } from '../elements.ts';
import { daysApart, daysBefore } from './periods.ts';

/** What is wrong with two days, by the field that names it. */
export interface DayMistakes {
  readonly from?: string;
  readonly to?: string;
}

const maxShownChars = 40;

/**
 * Why no page can be made of the days that were typed; undefined if one can. An empty field is no mistake.
 * @param today the last day where none was typed, and there is a limit on the days between; undefined: neither of it
 */
export function dayMistakes(query: URLSearchParams, today?: string): DayMistakes | undefined {
  const [from, to] = [query.get('from') ?? '', query.get('to') ?? ''];
  const unread: DayMistakes = {
    ...(!isReadable(from) && { from: notADay(from) }),
    ...(!isReadable(to) && { to: notADay(to) }),
  };
  if (unread.from !== undefined || unread.to !== undefined) return unread;
  const last = to === '' ? today : to;
  if (from === '' || last === undefined) return undefined;
  const apart = daysApart(from, last);
  if (apart < 0)
    return {
      from: `${dayText(from)} is after the last day, ${dayText(last)}. Choose an earlier first day or a later last day.`,
    };
  if (today !== undefined && apart > maxDaysApart)
    return {
      from: `From ${dayText(from)} to ${dayText(last)} are ${apart + 1} days, and this page shows at most ${maxDaysApart + 1}. Choose ${dayText(daysBefore(last, maxDaysApart))} or a later first day.`,
    };
  return undefined;
}

function isReadable(text: string): boolean {
  return text === '' || day.safeParse(text).success;
}

function notADay(text: string): string {
  return `“${visibleText(text.slice(0, maxShownChars))}” is not a day. Choose one that exists, or write it as 2026-11-23.`;
}

/** The fields for both days, with what was typed: a browser shows no text in a field for days but a day. */
export function dayFields(
  { from, to }: { readonly from?: string | null | undefined; readonly to?: string | null | undefined },
  mistakes: DayMistakes = {},
  isOptional = false,
): Html {
  const typed = (label: string, name: 'from' | 'to', value: string): Html =>
    field({
      label,
      name,
      value,
      isOptional,
      error: mistakes[name],
      ...(isReadable(value) && { type: 'date' }),
    });
  return html`${typed('First day', 'from', from ?? '')}${typed('Last day', 'to', to ?? '')}`;
}
