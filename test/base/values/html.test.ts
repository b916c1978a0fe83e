import { expect, test } from 'vitest';
import { html } from '../../../src/base/values/html.ts';

test('a text in a template is escaped, in an element and within quotes', () => {
  const text = `<b a="1" b='2'>&\``;
  expect(String(html`<p title="${text}">${text}</p>`)).toBe(
    '<p title="&#60;b a=&#34;1&#34; b=&#39;2&#39;&#62;&#38;&#96;">&#60;b a=&#34;1&#34; b=&#39;2&#39;&#62;&#38;&#96;</p>',
  );
});

const item = (text: string) => html`<li>${text}</li>`;

test('markup, lists of it, and nothing are shown unchanged', () => {
  expect(
    String(
      html`<ul>
          ${['<', '>'].map(item)}${undefined}${false}
        </ul>
        <input ${html`checked`} />`,
    ).replaceAll(/\s*\n\s*/g, ''),
  ).toBe('<ul><li>&#60;</li><li>&#62;</li></ul><input checked />');
});

test.each([
  ['an attribute without quotes', (text: string) => html`<p title=${text}></p>`],
  ['the name of an attribute', (text: string) => html`<p ${text}=""></p>`],
  ['the name of an element', (text: string) => html`<${text}>`],
  [
    'an inline script',
    (text: string) =>
      html`<script>
        ${text};
      </script>`,
  ],
  [
    'an inline style',
    (text: string) =>
      html`<style>
        ${text}
      </style>`,
  ],
])('a template with a text in %s fails', (_place, make) => {
  expect(() => make('x')).toThrow(TypeError);
});
