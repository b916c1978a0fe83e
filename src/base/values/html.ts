/** Markup in which every value was escaped. Only the tag `html` makes it. */
export class Html {
  readonly #markup: string;

  constructor(key: typeof trusted, markup: string) {
    if (key !== trusted) throw new TypeError('markup is made by the tag html, which escapes');
    this.#markup = markup;
  }

  toString(): string {
    return this.#markup;
  }
}

const trusted = Symbol('made by the tag html');

/** What may stand in a template. Undefined and false show nothing. */
export type Shown = string | number | bigint | Html | undefined | false | readonly Shown[];

/**
 * Markup from a template: `html`, with texts, numbers, other markup or lists of these as values. Texts are escaped, in an element as in
 * a quoted attribute; elsewhere in a tag stands markup alone.
 * @throws TypeError for a text that is neither in an element nor within quotes, and for a template with a script or a style
 */
export function html(parts: TemplateStringsArray, ...values: readonly Shown[]): Html {
  const places = known.get(parts) ?? placesIn(parts);
  known.set(parts, places);
  const written = parts.map((part, index) => {
    const value = values[index];
    const isMarkup = value === undefined || value === false || value instanceof Html;
    if (places[index] === 'tag' && !isMarkup)
      throw new TypeError(`a text stands in an element or within quotes, not after: ${part.slice(-40)}`);
    return part + markupOf(value);
  });
  return new Html(trusted, written.join(''));
}

type Place = 'text' | 'tag' | 'quoted';

/** Templates of the program: each is one object, however often it is used. */
const known = new WeakMap<TemplateStringsArray, readonly Place[]>();

/** Where each value stands. */
function placesIn(parts: readonly string[]): readonly Place[] {
  if (/<script(?![^>]*\ssrc=")[\s>]|<style[\s>]/i.test(parts.join(' ')))
    throw new TypeError('a page has no inline script or style');
  let place: Place = 'text';
  return parts.map((part) => {
    for (const mark of part) {
      if (place === 'text' && mark === '<') place = 'tag';
      else if (place === 'tag' && mark === '>') place = 'text';
      else if (mark === '"' && place !== 'text') place = place === 'tag' ? 'quoted' : 'tag';
    }
    return place;
  });
}

function markupOf(value: Shown): string {
  if (value === undefined || value === false) return '';
  if (value instanceof Html) return value.toString();
  if (typeof value === 'object') return value.map(markupOf).join('');
  return String(value).replaceAll(/[&<>"'`]/g, (mark) => `&#${mark.charCodeAt(0)};`);
}
