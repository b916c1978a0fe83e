import { html, type Html } from '../../base/values/html.ts';

/** What a mail says. */
export interface MailContent {
  readonly subject: string;
  readonly paragraphs: readonly string[];
  /** What the reader is to open. */
  readonly link?: { readonly label: string; readonly url: string } | undefined;
  /** What the reader is to copy. */
  readonly code?: string | undefined;
  readonly after: readonly string[];
}

function paragraph(words: string): Html {
  return html`<p style="margin:0 0 16px">${words}</p>`;
}

/** The same mail as text and as HTML. Mail programs need the styles inside the elements; nothing is loaded. */
export function writeMail({ subject, paragraphs, link, code, after }: MailContent): {
  readonly subject: string;
  readonly text: string;
  readonly html: string;
} {
  const text = [...paragraphs, link?.url, code, ...after].filter((part) => part !== undefined).join('\n\n');
  const markup = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="color-scheme" content="light dark" />
        <title>${subject}</title>
      </head>
      <body style="margin:0;padding:24px;font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif">
        <div style="max-width:560px;margin:0 auto">
          <h1 style="font-size:22px;margin:0 0 16px">${subject}</h1>
          ${paragraphs.map(paragraph)}
          ${
            link &&
            html`<p style="margin:0 0 16px">
                <a
                  href="${link.url}"
                  style="display:inline-block;padding:10px 18px;border-radius:8px;background:#3b4cca;color:#ffffff;text-decoration:none;font-weight:600"
                  >${link.label}</a
                >
              </p>
              <p style="margin:0 0 16px;font-size:13px;word-break:break-all">${link.url}</p>`
          }
          ${code !== undefined && html`<p style="margin:0 0 16px"><code style="font-size:16px">${code}</code></p>`}
          ${after.map(paragraph)}
        </div>
      </body>
    </html> `;
  return { subject, text, html: String(markup) };
}
