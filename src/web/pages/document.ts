import { html, type Html, type Shown } from '../../base/values/html.ts';
import type { PageAddition, PageHost, View } from './visit.ts';
import type { AssetName } from './assets.ts';
import type { Tone } from './notices.ts';

export interface Notice {
  readonly tone: Tone;
  readonly text: string;
}

/** Why a form was refused. */
export interface Refusal {
  readonly status: number;
  readonly text: string;
  readonly retryAfterSecs?: number;
}

/** A view with a form that was refused has the refusal's status. */
export function refusedView(view: View, refusal: Refusal | undefined): View {
  if (!refusal) return view;
  const { status, retryAfterSecs } = refusal;
  return { ...view, status, ...(retryAfterSecs !== undefined && { retryAfterSecs }) };
}

interface SheetParts extends Partial<Omit<View, 'kind' | 'title' | 'body' | 'isNarrow'>> {
  /** Default: the title. */
  readonly heading?: Shown;
  readonly refusal?: Refusal | undefined;
  /** What stands below the sheet. */
  readonly below?: Shown;
}

/** A page of one narrow sheet: its heading, the refusal of its form, the content. */
export function sheetView(title: string, content: Shown, parts: SheetParts = {}): View {
  const { heading = title, refusal, below, ...more } = parts;
  const body = html`<div class="sheet">
      <h1>${heading}</h1>
      ${refusal && noticeOf({ tone: 'bad', text: refusal.text })} ${content}
    </div>
    ${below}`;
  return refusedView({ kind: 'view', title, isNarrow: true, body, ...more }, refusal);
}

/** What differs between the documents of customers and of operators. */
export interface DocumentParts {
  readonly title: string;
  readonly stylesheets: readonly AssetName[];
  /** Before those of the view. */
  readonly scripts: readonly AssetName[];
  readonly bodyClass?: string;
  /** The link of the name at the top, and its text. */
  readonly home: string;
  readonly brand: Shown;
  readonly navigation: Shown;
  readonly footer: Shown;
  /** After all other content, such as a dialog. */
  readonly end?: Shown;
}

/** A whole document: head, navigation, notice, the view, footer. */
export function renderWhole(
  { assets, addition }: Pick<PageHost, 'assets' | 'addition'>,
  view: View,
  notice: Notice | undefined,
  parts: DocumentParts,
): string {
  const { bodyClass } = parts;
  return String(
    html`<!doctype html>
      <html lang="en">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          <meta name="color-scheme" content="light dark" />
          <title>${parts.title}</title>
          <link rel="icon" type="image/svg+xml" href="${assets.href('icon.svg')}" />
          ${parts.stylesheets.map((file) => html`<link rel="stylesheet" href="${assets.href(file)}" />`)}
          ${addition && additionLinks(addition)}
          ${[...parts.scripts, ...(view.scripts ?? [])].map(
            (file) => html`<script type="module" src="${assets.href(file)}"></script>`,
          )}
        </head>
        <body ${bodyClass !== undefined && html`class="${bodyClass}"`}>
          <a class="skip" href="#main">Skip to the content</a>
          <header class="top">
            <div class="wrap">
              <a class="brand" href="${parts.home}"
                ><img src="${assets.href('icon.svg')}" width="26" height="26" alt="" />${parts.brand}</a
              >
              ${parts.navigation}
            </div>
          </header>
          ${addition?.notice}
          <main id="main" class="wrap${view.isNarrow ? ' narrow' : ''}" tabindex="-1">
            ${notice && noticeOf(notice)} ${view.body}
          </main>
          <footer class="wrap">
            ${parts.footer}
            <p>All days and times are UTC<span data-zone></span>.</p>
          </footer>
          ${parts.end}
        </body>
      </html> `,
  );
}

function additionLinks({ stylesheet, script }: PageAddition): Html {
  return html`<link rel="stylesheet" href="${stylesheet}" />
    <script type="module" src="${script}"></script>`;
}

export function noticeOf({ tone, text }: Notice): Html {
  const role = tone === 'bad' || tone === 'warn' ? 'alert' : 'status';
  return html`<p class="notice ${tone}" role="${role}">${text}</p>`;
}
