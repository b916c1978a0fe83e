/** What differs from one run to the next, on the page and in a pattern. */
const changing: readonly (readonly [RegExp, string])[] = [
  [/0x[0-9a-f]+(?:…[0-9a-f]*)?/, '0x[0-9a-f]{4,}'],
  [/\d{4}-\d\d-\d\dT[\d:.]+Z/, '\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z'],
  [/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/, '[0-9a-f-]{36}'],
  [/(?<=root )\S+=/, '\\S+='],
  [/(?<=\()\d+(?= s\))/, '\\d+'],
  [/(?<=^|first |events |blocks \d* to |block |\d to )\d+(?=,| events| to |$| {2})/, '\\d+'],
  [/(?<=events )\d+ to \d+/, '\\d+ to \\d+'],
  [/…/, '.*'],
];
const anyChanging = new RegExp(changing.map(([form]) => `(${form.source})`).join('|'), 'g');

/** The pattern of an output as a page shows it. A line of only `…` stands for any number of lines. */
export function patternOf(shown: string): RegExp {
  const lines = shown.split('\n').map((line) => (line === '…' ? '(?:.*\\n)*?' : `${linePattern(line)}\\n`));
  return new RegExp(`^${lines.slice(0, -1).join('')}$`);
}

function linePattern(line: string): string {
  let pattern = '';
  let end = 0;
  for (const match of line.trimEnd().matchAll(anyChanging)) {
    const form = match.slice(1, changing.length + 1).findIndex((group) => group !== undefined);
    pattern += RegExp.escape(line.slice(end, match.index)) + (changing[form]?.[1] ?? '');
    end = match.index + match[0].length;
  }
  return pattern + RegExp.escape(line.slice(end).trimEnd());
}
