import { html } from '../domain/values/html.ts';
import type { View } from './site.ts';

/** A page for what cannot be shown or done. */
export function problemView(status: number, text: string, title = 'This did not work'): View {
  return {
    kind: 'view',
    status,
    title,
    isNarrow: true,
    body: html`<h1>${title}</h1>
      <p class="notice bad" role="alert">${text}</p>
      <p><a href="/">To the first page</a></p>`,
  };
}

export function notFound(what = 'page'): View {
  return problemView(404, `There is no such ${what}.`, 'Not found');
}
