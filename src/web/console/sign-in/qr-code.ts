import { encode } from 'uqr';
import { html, type Html } from '../../../base/values/html.ts';

/** Modules around a code without which cameras do not find it. */
const quiet = 4;

/** A text as a QR code: a drawing, for the camera of a phone. `label`: for screen readers. */
export function qrCode(text: string, label: string): Html {
  const { data, size } = encode(text, { ecc: 'M', border: quiet });
  return html`<svg
    class="qr"
    viewBox="0 0 ${size} ${size}"
    role="img"
    aria-label="${label}"
    shape-rendering="crispEdges"
  >
    <path d="${data.map(rowPath).join('')}" />
  </svg>`;
}

/** The dark modules of a row, each run of them as one rectangle. */
function rowPath(row: readonly boolean[], y: number): string {
  const modules = row.map((isDark) => (isDark ? '1' : '0')).join('');
  return [...modules.matchAll(/1+/g)]
    .map(({ index, 0: run }) => `M${index} ${y}h${run.length}v1h-${run.length}z`)
    .join('');
}
