import { html } from '../../domain/values/html.ts';
import type { Pages } from '../serve.ts';

/** The first page. */
export function homePages(pages: Pages): void {
  pages.show('/', (visit) => ({
    kind: 'view',
    title: visit.site.settings.name,
    section: 'home',
    body: html`<h1>${visit.site.settings.name}</h1>`,
  }));
}
