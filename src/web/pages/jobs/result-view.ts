import { mediaTypeOf } from '../../../base/values/job-input.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { indentedJson } from '../../../base/values/indented-json.ts';
import { visibleText } from '../../../base/values/visible-text.ts';
import type { Receipt } from '../../../jobs/http/schemas/receipt.ts';
import { copyButton, count, time } from '../elements.ts';
import { isJson } from './form-values.ts';

/** A page shows this much of a result; the rest is in the file. */
const maxShownChars = 16_000;
const maxShownBytes = 4 * maxShownChars;

/**
 * A runner's result, as text that the browser does not read as markup; JSON has one value a line. Bytes that are not text are a file
 * alone.
 */
export function resultView(
  {
    result,
    result_pruned: isPruned,
    result_pruned_at: prunedAt,
    result_altered: isAltered,
  }: Pick<Receipt, 'result' | 'result_pruned' | 'result_pruned_at' | 'result_altered'>,
  fileUrl: string,
): Html {
  if (isPruned)
    return html`<p class="muted">
      There was a result, and its time here has ended: it was
      deleted${prunedAt !== undefined && html` (${time(new Date(prunedAt))})`}.
    </p>`;
  if (isAltered)
    return html`<p class="muted">
      What is stored is not the result that the ledger has, and is not shown. Tell the operator of this
      gateway.
    </p>`;
  if (!result) return html`<p class="muted">There is no result.</p>`;
  const file = html`<a href="${fileUrl}" download>Keep it as a file</a>`;
  const type = html`<code>${visibleText(result.content_type ?? 'no type').slice(0, 80)}</code>`;
  if ('url' in result)
    return html`<p>${count(result.bytes)} <span class="unit">bytes</span> of ${type}. ${file}</p>`;
  const bytes = Buffer.from(result.body_base64, 'base64');
  if (bytes.length === 0) return html`<p class="muted">It is empty.</p>`;
  const text = shownText(bytes, result.content_type);
  const size = html`${count(bytes.length)} <span class="unit">bytes</span> of ${type}`;
  if (text === undefined) return html`<p>${size}, which are not text. ${file}</p>`;
  const isWhole = bytes.length <= maxShownBytes && text.length < maxShownChars;
  return html`<div class="snippet">
      <pre class="code" tabindex="0"><code>${text}</code></pre>
      ${isWhole && copyButton(text, 'the result')}
    </div>
    <p class="hint">${!isWhole && 'This is its beginning. '}${size}. ${file}</p>`;
}

/** Undefined for bytes that are not text. */
function shownText(bytes: Buffer, contentType: string | null): string | undefined {
  const isWhole = bytes.length <= maxShownBytes;
  // a character may be cut at the end
  const text = decoded(isWhole ? bytes : bytes.subarray(0, maxShownBytes), !isWhole);
  if (text === undefined || text.includes('\0')) return undefined;
  const isShownAsJson = isWhole && /[/+]json$/.test(mediaTypeOf(contentType ?? '')) && isJson(text);
  return visibleText(isShownAsJson ? indentedJson(text, maxShownChars) : text.slice(0, maxShownChars));
}

function decoded(bytes: Buffer, isCut: boolean): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: isCut });
  } catch {
    return undefined;
  }
}
