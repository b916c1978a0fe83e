import { html, type Html, type Shown } from '../../../base/values/html.ts';

export interface Bar {
  readonly value: bigint;
  /** What is said about it where the pointer is. */
  readonly text: string;
}

export interface BarChart {
  /** Unique in the page; a name as in an attribute `id`. */
  readonly id: string;
  readonly title: string;
  /** For screen readers: the chart's subject, and where its numbers are. */
  readonly description: string;
  readonly bars: readonly Bar[];
  /** A value as the scale shows it. */
  readonly scale: (value: bigint) => Shown;
  /** Below the bars, from the first to the last. */
  readonly below: readonly Shown[];
}

/** Of the drawing: it is stretched to the size that the stylesheet gives it. */
const barWidth = 12;
const height = 100;
const gap = 2;

/** A bar chart as a drawing. Its texts are outside it: inside they would be stretched, and too small on a phone. */
export function barChart({ id, title, description, bars, scale, below }: BarChart): Html {
  const top = scaleTop(bars.reduce((most, { value }) => (value > most ? value : most), 0n));
  const width = Math.max(1, bars.length) * barWidth;
  const lines = [0, 25, 50, 75, 100].map((y) => `M0 ${y}H${width}`).join('');
  return html`<figure class="chart">
    <figcaption>${title}</figcaption>
    <p class="axis values" aria-hidden="true">
      <span>${scale(top)}</span>${top % 2n === 0n && html`<span>${scale(top / 2n)}</span>`}<span>0</span>
    </p>
    <svg
      viewBox="0 0 ${width} ${height}"
      preserveAspectRatio="none"
      role="img"
      aria-labelledby="${id}-title"
      aria-describedby="${id}-description"
    >
      <title id="${id}-title">${title}</title>
      <desc id="${id}-description">${description}</desc>
      <path class="lines" d="${lines}" />
      ${bars.map((bar, index) => drawnBar(bar, index, top))}
    </svg>
    <p class="axis" aria-hidden="true">${below.map((text) => html`<span>${text}</span>`)}</p>
  </figure>`;
}

/** The bar, on top of the whole column, which takes the pointer. */
function drawnBar({ value, text }: Bar, index: number, top: bigint): Html {
  const x = index * barWidth;
  const size = barHeight(value, top);
  const bar = html`<rect
    class="bar"
    x="${x + gap}"
    y="${height - size}"
    width="${barWidth - 2 * gap}"
    height="${size}"
  />`;
  return html`<g
    ><title>${text}</title
    ><rect class="column" x="${x}" y="0" width="${barWidth}" height="${height}" />${size > 0 && bar}</g
  >`;
}

/** Of 100, to a tenth; values above zero stay visible. */
export function barHeight(value: bigint, top: bigint): number {
  if (value <= 0n) return 0;
  return Math.max(1, Math.min(height, Number((value * 1_000n) / top) / 10));
}

/** The end of the scale: 1, 2 or 5 with zeros, and at least the highest value. */
export function scaleTop(highest: bigint): bigint {
  for (let power = 1n; ; power *= 10n) {
    const top = [power, 2n * power, 5n * power].find((one) => one >= highest);
    if (top !== undefined) return top;
  }
}
