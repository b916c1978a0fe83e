import { html, type Html } from '../../base/values/html.ts';

/** The marks that the descriptions have: paragraphs, lists, code and bold. */
export function prose(text: string): Html[] {
  return text
    .split(/\n\n+/)
    .filter((part) => part !== '')
    .map((part) =>
      part.startsWith('- ')
        ? html`<ul>
            ${part
              .split(/^- /m)
              .slice(1)
              .map((item) => html`<li>${inline(item)}</li>`)}
          </ul>`
        : html`<p>${inline(part)}</p>`,
    );
}

export function inline(text: string): Html[] {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) => {
    if (/^`.+`$/s.test(part)) return html`<code>${part.slice(1, -1)}</code>`;
    return part.startsWith('**') ? html`<b>${part.slice(2, -2)}</b>` : html`${part}`;
  });
}

/** A description after what it describes. */
export function described(text: string | undefined): Html | undefined {
  return text === undefined ? undefined : html`: ${inline(text)}`;
}
