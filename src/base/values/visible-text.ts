/**
 * A text of which everything can be seen: marks that turn text around, or that are invisible, stand there as their code point, such as
 * `\u{202e}`. Line breaks and tabs stay.
 */
export function visibleText(text: string): string {
  return text
    .replaceAll(/\r\n?/g, '\n')
    .replaceAll(/[\p{Bidi_Control}\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (mark) =>
      keptMarks.has(mark) ? mark : `\\u{${(mark.codePointAt(0) ?? 0).toString(16)}}`,
    );
}

/** A name in one line, without marks that turn text around and without control characters. */
export function withoutMarks(name: string): string {
  return name.replaceAll(/[\p{Bidi_Control}\p{Cc}]/gu, '');
}

/** The joiners make letters and emoji of many scripts. */
const keptMarks: ReadonlySet<string> = new Set(['\n', '\t', '\u200c', '\u200d']);
